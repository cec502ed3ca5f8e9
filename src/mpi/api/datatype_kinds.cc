// Datatypes by what they hold: by class and size, by the kinds of Fortran, by value and index; and
// their attributes.
#include <mpi.h>

#include "mpi/api/entry.h"
#include "mpi/datatype/recipe.h"
#include "mpi/datatype/type_space.h"

namespace {

using namespace sterna::mpi;

/// The real type with that many decimal digits and that decimal range, as SELECTED_REAL_KIND.
int real_bytes(int digits, int range) noexcept {
  const bool any_digits = digits == MPI_UNDEFINED;
  const bool any_range = range == MPI_UNDEFINED;
  if ((any_digits || digits <= 6) && (any_range || range <= 37)) {
    return 4;
  }
  if ((any_digits || digits <= 15) && (any_range || range <= 307)) {
    return 8;
  }
  return (any_digits || digits <= 33) && (any_range || range <= 4931) ? 16 : 0;
}

int integer_bytes(int range) noexcept {
  const int ranges[] = {2, 4, 9, 18, 38};
  int bytes = 1;
  for (const int digits : ranges) {
    if (range <= digits) {
      return bytes;
    }
    bytes *= 2;
  }
  return 0;
}

int make_kind(const char* function, int combiner, std::initializer_list<std::int64_t> values,
              MPI_Datatype base, MPI_Datatype* newtype) noexcept {
  return enter(function, [&](const Call& call) {
    if (base == MPI_DATATYPE_NULL) {
      return call.fail(MPI_ERR_ARG, "no type of this machine has that precision and range");
    }
    return call.pass(
        kind_type(call.state, combiner, {values.begin(), values.size()}, base, *newtype));
  });
}

template <typename Body>
int enter_attributes(const char* function, MPI_Datatype datatype, Body body) noexcept {
  return enter(function, [&](const Call& call) {
    if (find_datatype(datatype) == nullptr) {
      return call.fail_plain(MPI_ERR_TYPE);
    }
    AttributeSet* attributes = attributes_of(call.state, datatype);
    return attributes == nullptr ? call.fail_plain(MPI_ERR_NO_MEM)
                                 : call.pass(body(call.state, *attributes));
  });
}

}  // namespace

int PMPI_Type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  return enter("MPI_Type_match_size", [&](const Call& call) {
    const MPI_Datatype found = match_size(typeclass, size);
    if (found == MPI_DATATYPE_NULL) {
      return call.fail(MPI_ERR_ARG, "no type of this class has %d bytes", size);
    }
    *datatype = found;
    return int{MPI_SUCCESS};
  });
}

int PMPI_Type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type,
                              MPI_Datatype* pair_type) {
  return enter("MPI_Type_get_value_index", [&](const Call& call) {
    if (find_datatype(value_type) == nullptr || find_datatype(index_type) == nullptr) {
      return call.fail(MPI_ERR_TYPE, "the datatype is not valid");
    }
    *pair_type = match_pair(value_type, index_type);
    return int{MPI_SUCCESS};
  });
}

int PMPI_Type_create_f90_integer(int r, MPI_Datatype* newtype) {
  return make_kind("MPI_Type_create_f90_integer", MPI_COMBINER_F90_INTEGER, {r},
                   match_size(MPI_TYPECLASS_INTEGER, integer_bytes(r)), newtype);
}

int PMPI_Type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  return make_kind("MPI_Type_create_f90_real", MPI_COMBINER_F90_REAL, {p, r},
                   match_size(MPI_TYPECLASS_REAL, real_bytes(p, r)), newtype);
}

int PMPI_Type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  return make_kind("MPI_Type_create_f90_complex", MPI_COMBINER_F90_COMPLEX, {p, r},
                   match_size(MPI_TYPECLASS_COMPLEX, 2 * real_bytes(p, r)), newtype);
}

int PMPI_Type_create_keyval(MPI_Type_copy_attr_function* type_copy_attr_fn,
                            MPI_Type_delete_attr_function* type_delete_attr_fn, int* type_keyval,
                            void* extra_state) {
  return enter("MPI_Type_create_keyval", [&](const Call& call) {
    return call.pass(create_keyval(
        call.state, AttributeOwner::datatype, reinterpret_cast<void*>(type_copy_attr_fn),
        reinterpret_cast<void*>(type_delete_attr_fn), extra_state, type_keyval));
  });
}

int PMPI_Type_free_keyval(int* type_keyval) {
  return enter("MPI_Type_free_keyval", [&](const Call& call) {
    return call.pass(free_keyval(call.state, AttributeOwner::datatype, type_keyval));
  });
}

int PMPI_Type_set_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val) {
  return enter_attributes("MPI_Type_set_attr", datatype,
                          [&](RankState& state, AttributeSet& attributes) {
                            return set_attribute(state, AttributeOwner::datatype, datatype,
                                                 attributes, type_keyval, attribute_val);
                          });
}

int PMPI_Type_delete_attr(MPI_Datatype datatype, int type_keyval) {
  return enter_attributes(
      "MPI_Type_delete_attr", datatype, [&](RankState& state, AttributeSet& attributes) {
        return delete_attribute(state, AttributeOwner::datatype, datatype, attributes, type_keyval);
      });
}

int PMPI_Type_get_attr(MPI_Datatype datatype, int type_keyval, void* attribute_val, int* flag) {
  return enter_attributes(
      "MPI_Type_get_attr", datatype, [&](RankState& state, AttributeSet& attributes) {
        bool is_set = false;
        void* value = nullptr;
        const int error = get_attribute(state, AttributeOwner::datatype, attributes, type_keyval,
                                        &value, &is_set);
        if (error == MPI_SUCCESS) {
          *flag = is_set ? 1 : 0;
          if (is_set) {
            *static_cast<void**>(attribute_val) = value;
          }
        }
        return error;
      });
}
