// Constructors of derived datatypes: each gathers its arguments in the order of
// MPI_Type_get_contents and hands them to the engine. Both forms of a pair are one template; which
// form made a type is kept.
#include <span>
#include <type_traits>

#include <mpi.h>

#include "mpi/api/entry.h"
#include "mpi/datatype/recipe.h"
#include "mpi/datatype/type_space.h"

namespace {

using namespace sterna::mpi;

/// The values of a recipe, in the rank's system heap while the type is made.
class ValueList {
 public:
  ValueList(const Call& call, std::size_t count) noexcept
      : state_{call.state}, values_{call.state.allocate_array<std::int64_t>(count)} {}
  ~ValueList() { state_.deallocate(values_); }
  ValueList(const ValueList&) = delete;
  ValueList& operator=(const ValueList&) = delete;

  [[nodiscard]] bool has_memory() const noexcept { return values_ != nullptr; }
  void push(std::int64_t value) noexcept {
    values_[count_] = value;
    ++count_;
  }
  template <typename Integer>
  void push(const Integer* values, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      push(values[i]);
    }
  }
  [[nodiscard]] std::span<const std::int64_t> values() const noexcept { return {values_, count_}; }
  /// They belong to a type now.
  void release() noexcept { values_ = nullptr; }

 private:
  RankState& state_;
  std::int64_t* values_;
  std::size_t count_ = 0;
};

int make(const Call& call, const RecipeView& recipe, MPI_Datatype* newtype) noexcept {
  Datatype* made = nullptr;
  const int error = create_datatype(call.state.heap(), recipe, made);
  if (error != MPI_SUCCESS) {
    return call.fail_plain(error);
  }
  *newtype = reinterpret_cast<MPI_Datatype>(made);
  return MPI_SUCCESS;
}

/// With the values of the list, which go over to the type.
int make(const Call& call, int combiner, bool is_large, ValueList& list,
         std::span<const MPI_Datatype> types, MPI_Datatype* newtype) noexcept {
  const int error = make(call, {combiner, is_large, list.values(), types, true}, newtype);
  if (error == MPI_SUCCESS) {
    list.release();
  }
  return error;
}

template <typename Count>
constexpr bool kIsLarge = std::is_same_v<Count, MPI_Count>;

/// Recipes of a few numbers.
template <typename Count>
int make_plain(const char* function, int combiner, std::initializer_list<std::int64_t> values,
               MPI_Datatype child, MPI_Datatype* newtype) noexcept {
  return enter(function, [&](const Call& call) {
    return make(call, {combiner, kIsLarge<Count>, {values.begin(), values.size()}, {&child, 1}},
                newtype);
  });
}

/// count, then an array or two of `count` numbers; `head` are the numbers before the arrays.
template <typename Count, typename Displacement>
int make_indexed(const char* function, int combiner, Count count, const Count* lengths,
                 const Displacement* displacements, std::span<const MPI_Datatype> types,
                 MPI_Datatype* newtype) noexcept {
  return enter(function, [&](const Call& call) {
    if (count < 0) {
      return call.fail(MPI_ERR_COUNT, "the count is negative");
    }
    const auto elements = static_cast<std::size_t>(count);
    ValueList list{call, 1 + 2 * elements};
    if (!list.has_memory()) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    list.push(count);
    list.push(lengths, elements);
    list.push(displacements, elements);
    return make(call, combiner, kIsLarge<Count>, list, types, newtype);
  });
}

template <typename Count, typename Displacement>
int make_block(const char* function, int combiner, Count count, Count length,
               const Displacement* displacements, MPI_Datatype child,
               MPI_Datatype* newtype) noexcept {
  return enter(function, [&](const Call& call) {
    if (count < 0) {
      return call.fail(MPI_ERR_COUNT, "the count is negative");
    }
    const auto elements = static_cast<std::size_t>(count);
    ValueList list{call, 2 + elements};
    if (!list.has_memory()) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    list.push(count);
    list.push(length);
    list.push(displacements, elements);
    return make(call, combiner, kIsLarge<Count>, list, {&child, 1}, newtype);
  });
}

template <typename Count>
int make_subarray(int dimensions, const Count* sizes, const Count* parts, const Count* starts,
                  int order, MPI_Datatype child, MPI_Datatype* newtype) noexcept {
  return enter("MPI_Type_create_subarray", [&](const Call& call) {
    if (dimensions < 1) {
      return call.fail(MPI_ERR_ARG, "an array has at least one dimension, not %d", dimensions);
    }
    const auto count = static_cast<std::size_t>(dimensions);
    ValueList list{call, 2 + 3 * count};
    if (!list.has_memory()) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    list.push(dimensions);
    list.push(sizes, count);
    list.push(parts, count);
    list.push(starts, count);
    list.push(order);
    return make(call, {MPI_COMBINER_SUBARRAY, kIsLarge<Count>, list.values(), {&child, 1}},
                newtype);
  });
}

/// What MPI_Type_create_darray says of each dimension beside its size.
struct Distribution {
  int size;
  int rank;
  int dimensions;
  const int* kinds;
  const int* arguments;
  const int* grid;
  int order;
};

template <typename Count>
int make_darray(const Distribution& how, const Count* sizes, MPI_Datatype child,
                MPI_Datatype* newtype) noexcept {
  return enter("MPI_Type_create_darray", [&](const Call& call) {
    if (how.dimensions < 1) {
      return call.fail(MPI_ERR_ARG, "an array has at least one dimension, not %d", how.dimensions);
    }
    const auto count = static_cast<std::size_t>(how.dimensions);
    ValueList list{call, 4 + 4 * count};
    if (!list.has_memory()) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    list.push(how.size);
    list.push(how.rank);
    list.push(how.dimensions);
    list.push(sizes, count);
    list.push(how.kinds, count);
    list.push(how.arguments, count);
    list.push(how.grid, count);
    list.push(how.order);
    return make(call, {MPI_COMBINER_DARRAY, kIsLarge<Count>, list.values(), {&child, 1}}, newtype);
  });
}

}  // namespace

int PMPI_Type_contiguous(int count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return make_plain<int>("MPI_Type_contiguous", MPI_COMBINER_CONTIGUOUS, {count}, oldtype, newtype);
}
int PMPI_Type_contiguous_c(MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return make_plain<MPI_Count>("MPI_Type_contiguous", MPI_COMBINER_CONTIGUOUS, {count}, oldtype,
                               newtype);
}

int PMPI_Type_vector(int count, int blocklength, int stride, MPI_Datatype oldtype,
                     MPI_Datatype* newtype) {
  return make_plain<int>("MPI_Type_vector", MPI_COMBINER_VECTOR, {count, blocklength, stride},
                         oldtype, newtype);
}
int PMPI_Type_vector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                       MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return make_plain<MPI_Count>("MPI_Type_vector", MPI_COMBINER_VECTOR, {count, blocklength, stride},
                               oldtype, newtype);
}

int PMPI_Type_create_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                             MPI_Datatype* newtype) {
  return make_plain<int>("MPI_Type_create_hvector", MPI_COMBINER_HVECTOR,
                         {count, blocklength, stride}, oldtype, newtype);
}
int PMPI_Type_create_hvector_c(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                               MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return make_plain<MPI_Count>("MPI_Type_create_hvector", MPI_COMBINER_HVECTOR,
                               {count, blocklength, stride}, oldtype, newtype);
}

int PMPI_Type_create_resized(MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent,
                             MPI_Datatype* newtype) {
  return make_plain<int>("MPI_Type_create_resized", MPI_COMBINER_RESIZED, {lb, extent}, oldtype,
                         newtype);
}
int PMPI_Type_create_resized_c(MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent,
                               MPI_Datatype* newtype) {
  return make_plain<MPI_Count>("MPI_Type_create_resized", MPI_COMBINER_RESIZED, {lb, extent},
                               oldtype, newtype);
}

int PMPI_Type_indexed(int count, const int array_of_blocklengths[],
                      const int array_of_displacements[], MPI_Datatype oldtype,
                      MPI_Datatype* newtype) {
  return make_indexed("MPI_Type_indexed", MPI_COMBINER_INDEXED, count, array_of_blocklengths,
                      array_of_displacements, {&oldtype, 1}, newtype);
}
int PMPI_Type_indexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                        const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                        MPI_Datatype* newtype) {
  return make_indexed("MPI_Type_indexed", MPI_COMBINER_INDEXED, count, array_of_blocklengths,
                      array_of_displacements, {&oldtype, 1}, newtype);
}

int PMPI_Type_create_hindexed(int count, const int array_of_blocklengths[],
                              const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return make_indexed("MPI_Type_create_hindexed", MPI_COMBINER_HINDEXED, count,
                      array_of_blocklengths, array_of_displacements, {&oldtype, 1}, newtype);
}
int PMPI_Type_create_hindexed_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                                const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                MPI_Datatype* newtype) {
  return make_indexed("MPI_Type_create_hindexed", MPI_COMBINER_HINDEXED, count,
                      array_of_blocklengths, array_of_displacements, {&oldtype, 1}, newtype);
}

int PMPI_Type_create_indexed_block(int count, int blocklength, const int array_of_displacements[],
                                   MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return make_block("MPI_Type_create_indexed_block", MPI_COMBINER_INDEXED_BLOCK, count, blocklength,
                    array_of_displacements, oldtype, newtype);
}
int PMPI_Type_create_indexed_block_c(MPI_Count count, MPI_Count blocklength,
                                     const MPI_Count array_of_displacements[], MPI_Datatype oldtype,
                                     MPI_Datatype* newtype) {
  return make_block("MPI_Type_create_indexed_block", MPI_COMBINER_INDEXED_BLOCK, count, blocklength,
                    array_of_displacements, oldtype, newtype);
}

int PMPI_Type_create_hindexed_block(int count, int blocklength,
                                    const MPI_Aint array_of_displacements[], MPI_Datatype oldtype,
                                    MPI_Datatype* newtype) {
  return make_block("MPI_Type_create_hindexed_block", MPI_COMBINER_HINDEXED_BLOCK, count,
                    blocklength, array_of_displacements, oldtype, newtype);
}
int PMPI_Type_create_hindexed_block_c(MPI_Count count, MPI_Count blocklength,
                                      const MPI_Count array_of_displacements[],
                                      MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return make_block("MPI_Type_create_hindexed_block", MPI_COMBINER_HINDEXED_BLOCK, count,
                    blocklength, array_of_displacements, oldtype, newtype);
}

int PMPI_Type_create_struct(int count, const int array_of_blocklengths[],
                            const MPI_Aint array_of_displacements[],
                            const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
  const auto types = static_cast<std::size_t>(count < 0 ? 0 : count);
  return make_indexed("MPI_Type_create_struct", MPI_COMBINER_STRUCT, count, array_of_blocklengths,
                      array_of_displacements, {array_of_types, types}, newtype);
}
int PMPI_Type_create_struct_c(MPI_Count count, const MPI_Count array_of_blocklengths[],
                              const MPI_Count array_of_displacements[],
                              const MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
  const auto types = static_cast<std::size_t>(count < 0 ? 0 : count);
  return make_indexed("MPI_Type_create_struct", MPI_COMBINER_STRUCT, count, array_of_blocklengths,
                      array_of_displacements, {array_of_types, types}, newtype);
}

int PMPI_Type_create_subarray(int ndims, const int array_of_sizes[], const int array_of_subsizes[],
                              const int array_of_starts[], int order, MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return make_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype,
                       newtype);
}
int PMPI_Type_create_subarray_c(int ndims, const MPI_Count array_of_sizes[],
                                const MPI_Count array_of_subsizes[],
                                const MPI_Count array_of_starts[], int order, MPI_Datatype oldtype,
                                MPI_Datatype* newtype) {
  return make_subarray(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, oldtype,
                       newtype);
}

int PMPI_Type_create_darray(int size, int rank, int ndims, const int array_of_gsizes[],
                            const int array_of_distribs[], const int array_of_dargs[],
                            const int array_of_psizes[], int order, MPI_Datatype oldtype,
                            MPI_Datatype* newtype) {
  return make_darray({size, rank, ndims, array_of_distribs, array_of_dargs, array_of_psizes, order},
                     array_of_gsizes, oldtype, newtype);
}
int PMPI_Type_create_darray_c(int size, int rank, int ndims, const MPI_Count array_of_gsizes[],
                              const int array_of_distribs[], const int array_of_dargs[],
                              const int array_of_psizes[], int order, MPI_Datatype oldtype,
                              MPI_Datatype* newtype) {
  return make_darray({size, rank, ndims, array_of_distribs, array_of_dargs, array_of_psizes, order},
                     array_of_gsizes, oldtype, newtype);
}
