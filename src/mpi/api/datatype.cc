// The life of datatypes, what they are, and what they were made of.
#include <climits>
#include <cstring>

#include <mpi.h>

#include "mpi/api/entry.h"
#include "mpi/datatype/recipe.h"
#include "mpi/datatype/type_space.h"

namespace {

using namespace sterna::mpi;

/// Runs the body with the type behind the handle, or reports that there is none.
template <typename Body>
int enter_type(const char* function, MPI_Datatype handle, Body body) noexcept {
  return enter(function, [&](const Call& call) {
    const Datatype* type = find_datatype(handle);
    return type == nullptr ? call.fail_plain(MPI_ERR_TYPE) : body(call, *type);
  });
}

/// A value in an output parameter: what does not fit an int is MPI_UNDEFINED.
void put(std::int64_t value, int* out) noexcept {
  *out = value < INT_MIN || value > INT_MAX ? int{MPI_UNDEFINED} : static_cast<int>(value);
}
void put(std::int64_t value, std::int64_t* out) noexcept {
  *out = value;
}

template <typename Number>
int get_size(MPI_Datatype datatype, Number* size) noexcept {
  return enter_type("MPI_Type_size", datatype, [&](const Call& /*call*/, const Datatype& type) {
    put(type.bytes, size);
    return int{MPI_SUCCESS};
  });
}

int get_extent(MPI_Datatype datatype, std::int64_t* lb, std::int64_t* extent) noexcept {
  return enter_type("MPI_Type_get_extent", datatype,
                    [&](const Call& /*call*/, const Datatype& type) {
                      *lb = type.lb;
                      *extent = type.extent;
                      return int{MPI_SUCCESS};
                    });
}

int get_true_extent(MPI_Datatype datatype, std::int64_t* lb, std::int64_t* extent) noexcept {
  return enter_type("MPI_Type_get_true_extent", datatype,
                    [&](const Call& /*call*/, const Datatype& type) {
                      *lb = type.true_lb;
                      *extent = type.true_extent;
                      return int{MPI_SUCCESS};
                    });
}

/// The arrays that the program gave to MPI_Type_get_contents.
struct Contents {
  MPI_Count integer_max;
  MPI_Count address_max;
  MPI_Count large_max;
  MPI_Count type_max;
  int* integers;
  MPI_Aint* addresses;
  MPI_Count* large;
  MPI_Datatype* types;
};

/// Counts as predefined: the program cannot free it.
bool is_kind(const Datatype& type) noexcept {
  const int combiner = type.recipe.combiner;
  return combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX;
}

/// Derived types as new ones, which the program frees: the old ones keep their attributes.
int give_types(const Call& call, const Recipe& recipe, std::uint32_t count,
               MPI_Datatype* types) noexcept {
  auto& heap = call.state.heap();
  for (std::uint32_t i = 0; i < count; ++i) {
    const Datatype& type = *find_datatype(recipe.types[i]);
    types[i] = recipe.types[i];
    if (type.is_predefined || is_kind(type)) {
      continue;
    }
    Datatype* made = nullptr;
    if (const int error = copy_datatype(heap, type, made)) {
      while (i-- > 0) {
        const Datatype& given = *find_datatype(types[i]);
        if (!given.is_predefined && !is_kind(given)) {
          release_datatype(heap, types[i]);
        }
      }
      return call.pass(error);
    }
    types[i] = reinterpret_cast<MPI_Datatype>(made);
  }
  return MPI_SUCCESS;
}

int get_contents(const Call& call, const Datatype& type, const Contents& into) noexcept {
  const Recipe& recipe = type.recipe;
  const Envelope envelope = envelope_of(recipe);
  if (recipe.combiner == MPI_COMBINER_NAMED) {
    return call.fail(MPI_ERR_TYPE, "a predefined datatype has no contents");
  }
  if (into.integer_max < envelope.integer_count || into.address_max < envelope.address_count ||
      into.large_max < envelope.large_count || into.type_max < envelope.type_count) {
    return call.fail(MPI_ERR_ARG, "an array is too short: MPI_Type_get_envelope gives the lengths");
  }
  std::size_t integer = 0;
  std::size_t address = 0;
  std::size_t large = 0;
  for (std::uint32_t i = 0; i < recipe.value_count; ++i) {
    switch (kind_of_value(recipe, i)) {
      case ValueKind::integer:
        into.integers[integer++] = static_cast<int>(recipe.values[i]);
        break;
      case ValueKind::address:
        into.addresses[address++] = recipe.values[i];
        break;
      case ValueKind::large:
        into.large[large++] = recipe.values[i];
        break;
    }
  }
  return give_types(call, recipe, envelope.type_count, into.types);
}

}  // namespace

int PMPI_Type_commit(MPI_Datatype* datatype) {
  return enter_type("MPI_Type_commit", *datatype, [&](const Call& /*call*/, const Datatype& type) {
    if (!type.is_predefined) {
      reinterpret_cast<Datatype*>(*datatype)->is_committed = true;
    }
    return int{MPI_SUCCESS};
  });
}

int PMPI_Type_free(MPI_Datatype* datatype) {
  return enter_type("MPI_Type_free", *datatype, [&](const Call& call, const Datatype& type) {
    if (type.is_predefined || is_kind(type)) {
      return call.fail(MPI_ERR_TYPE, "a predefined datatype cannot be freed");
    }
    auto* own = reinterpret_cast<Datatype*>(*datatype);
    const int error = delete_all_attributes(call.state, *datatype, own->attributes);
    if (error != MPI_SUCCESS) {
      return call.pass(error);
    }
    release_datatype(call.state.heap(), *datatype);
    *datatype = MPI_DATATYPE_NULL;
    return int{MPI_SUCCESS};
  });
}

int PMPI_Type_dup(MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return enter_type("MPI_Type_dup", oldtype, [&](const Call& call, const Datatype& type) {
    Datatype* made = nullptr;
    const RecipeView recipe{MPI_COMBINER_DUP, false, {}, {&oldtype, 1}};
    int error = create_datatype(call.state.heap(), recipe, made);
    if (error != MPI_SUCCESS) {
      return call.pass(error);
    }
    made->is_committed = type.is_committed;
    const auto handle = reinterpret_cast<MPI_Datatype>(made);
    const AttributeSet* attributes = attributes_of(call.state, oldtype);
    error = attributes == nullptr
                ? int{MPI_ERR_NO_MEM}
                : copy_attributes(call.state, oldtype, *attributes, handle, made->attributes);
    if (error != MPI_SUCCESS) {
      release_datatype(call.state.heap(), handle);
      return call.pass(error);
    }
    *newtype = handle;
    return int{MPI_SUCCESS};
  });
}

int PMPI_Type_size(MPI_Datatype datatype, int* size) {
  return get_size(datatype, size);
}
int PMPI_Type_size_c(MPI_Datatype datatype, MPI_Count* size) {
  return get_size(datatype, size);
}
int PMPI_Type_size_x(MPI_Datatype datatype, MPI_Count* size) {
  return get_size(datatype, size);
}

int PMPI_Type_get_extent(MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent) {
  return get_extent(datatype, lb, extent);
}
int PMPI_Type_get_extent_c(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return get_extent(datatype, lb, extent);
}
int PMPI_Type_get_extent_x(MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  return get_extent(datatype, lb, extent);
}

int PMPI_Type_get_true_extent(MPI_Datatype datatype, MPI_Aint* true_lb, MPI_Aint* true_extent) {
  return get_true_extent(datatype, true_lb, true_extent);
}
int PMPI_Type_get_true_extent_c(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return get_true_extent(datatype, true_lb, true_extent);
}
int PMPI_Type_get_true_extent_x(MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  return get_true_extent(datatype, true_lb, true_extent);
}

int PMPI_Type_get_envelope(MPI_Datatype datatype, int* num_integers, int* num_addresses,
                           int* num_datatypes, int* combiner) {
  return enter_type("MPI_Type_get_envelope", datatype, [&](const Call& call, const Datatype& type) {
    const Envelope envelope = envelope_of(type.recipe);
    if (envelope.large_count != 0) {
      return call.fail(MPI_ERR_TYPE,
                       "the datatype was made with large counts: use the _c function");
    }
    put(envelope.integer_count, num_integers);
    put(envelope.address_count, num_addresses);
    put(envelope.type_count, num_datatypes);
    *combiner = type.recipe.combiner;
    return int{MPI_SUCCESS};
  });
}
int PMPI_Type_get_envelope_c(MPI_Datatype datatype, MPI_Count* num_integers,
                             MPI_Count* num_addresses, MPI_Count* num_large_counts,
                             MPI_Count* num_datatypes, int* combiner) {
  return enter_type("MPI_Type_get_envelope", datatype,
                    [&](const Call& /*call*/, const Datatype& type) {
                      const Envelope envelope = envelope_of(type.recipe);
                      *num_integers = envelope.integer_count;
                      *num_addresses = envelope.address_count;
                      *num_large_counts = envelope.large_count;
                      *num_datatypes = envelope.type_count;
                      *combiner = type.recipe.combiner;
                      return int{MPI_SUCCESS};
                    });
}

int PMPI_Type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses,
                           int max_datatypes, int array_of_integers[],
                           MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[]) {
  return enter_type("MPI_Type_get_contents", datatype, [&](const Call& call, const Datatype& type) {
    return get_contents(call, type,
                        {max_integers, max_addresses, 0, max_datatypes, array_of_integers,
                         array_of_addresses, nullptr, array_of_datatypes});
  });
}
int PMPI_Type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                             MPI_Count max_large_counts, MPI_Count max_datatypes,
                             int array_of_integers[], MPI_Aint array_of_addresses[],
                             MPI_Count array_of_large_counts[], MPI_Datatype array_of_datatypes[]) {
  return enter_type("MPI_Type_get_contents", datatype, [&](const Call& call, const Datatype& type) {
    return get_contents(
        call, type,
        {max_integers, max_addresses, max_large_counts, max_datatypes, array_of_integers,
         array_of_addresses, array_of_large_counts, array_of_datatypes});
  });
}

int PMPI_Type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
  return enter("MPI_Type_get_name", [&](const Call& call) {
    // The standard gives the null handle a name too.
    const bool is_null = datatype == MPI_DATATYPE_NULL;
    if (!is_null && find_datatype(datatype) == nullptr) {
      return call.fail_plain(MPI_ERR_TYPE);
    }
    const char* name = is_null ? "MPI_DATATYPE_NULL" : name_of(call.state, datatype);
    const std::size_t length = std::strlen(name);
    std::memcpy(type_name, name, length + 1);
    *resultlen = static_cast<int>(length);
    return int{MPI_SUCCESS};
  });
}

int PMPI_Type_set_name(MPI_Datatype datatype, const char* type_name) {
  return enter_type("MPI_Type_set_name", datatype, [&](const Call& call, const Datatype& /*type*/) {
    if (type_name == nullptr) {
      return call.fail(MPI_ERR_ARG, "the name is a null pointer");
    }
    return set_name(call.state, datatype, type_name) ? int{MPI_SUCCESS}
                                                     : call.fail_plain(MPI_ERR_NO_MEM);
  });
}
