// The constructors of derived datatypes, each a few moves of an Assembly.
#include <algorithm>

#include "mpi/datatype/assembly.h"
#include "mpi/datatype/grid.h"
#include "mpi/datatype/recipe.h"

namespace sterna::mpi {
namespace {

using Values = std::span<const std::int64_t>;

std::uint64_t as_count(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value);
}

/// A product that remembers when it does not fit.
std::int64_t times(std::int64_t a, std::int64_t b, Shape& shape) noexcept {
  std::int64_t product = 0;
  shape.is_overflown |= __builtin_mul_overflow(a, b, &product);
  return product;
}

// count, length, stride. The stride of a vector counts elements, that of an hvector bytes.
int assemble_vector(Assembly& assembly, Values values, const Datatype& child,
                    std::int64_t unit) noexcept {
  if (values[0] < 0) {
    return MPI_ERR_COUNT;
  }
  if (values[1] < 0) {
    return MPI_ERR_ARG;
  }
  assembly.take_unit(child);
  assembly.repeat_unit(as_count(values[1]), child.extent);
  const std::int64_t stride = times(values[2], unit, assembly.shape());
  assembly.join(as_count(values[0]), stride, 0);
  return MPI_SUCCESS;
}

// count, lengths, displacements in units of `unit` bytes.
int assemble_indexed(Assembly& assembly, Values values, const Datatype& child,
                     std::int64_t unit) noexcept {
  if (values[0] < 0) {
    return MPI_ERR_COUNT;
  }
  const auto count = as_count(values[0]);
  const Values lengths = values.subspan(1, count);
  const Values displacements = values.subspan(1 + count, count);
  if (std::any_of(lengths.begin(), lengths.end(), [](std::int64_t length) { return length < 0; })) {
    return MPI_ERR_ARG;
  }
  assembly.take_unit(child);
  assembly.join_many(lengths, displacements, unit, child.extent);
  return MPI_SUCCESS;
}

// count, one length, displacements.
int assemble_indexed_block(Assembly& assembly, Values values, const Datatype& child,
                           std::int64_t unit) noexcept {
  if (values[0] < 0) {
    return MPI_ERR_COUNT;
  }
  if (values[1] < 0) {
    return MPI_ERR_ARG;
  }
  assembly.take_unit(child);
  assembly.repeat_unit(as_count(values[1]), child.extent);
  assembly.join_many({}, values.subspan(2), unit, 0);
  return MPI_SUCCESS;
}

// count, lengths, displacements in bytes; a type each.
int assemble_struct(Assembly& assembly, Values values,
                    std::span<const MPI_Datatype> types) noexcept {
  if (values[0] < 0) {
    return MPI_ERR_COUNT;
  }
  const auto count = as_count(values[0]);
  for (std::size_t i = 0; i < count; ++i) {
    const Datatype& child = *find_datatype(types[i]);
    if (values[1 + i] < 0) {
      return MPI_ERR_ARG;
    }
    if (i == 0 || types[i] != types[i - 1]) {
      assembly.take_unit(child);
    }
    assembly.join(as_count(values[1 + i]), child.extent, values[1 + count + i]);
  }
  return MPI_SUCCESS;
}

int assemble_resized(Assembly& assembly, Values values, const Datatype& child) noexcept {
  assembly.take_unit(child);
  assembly.join(1, 0, 0);
  Shape& shape = assembly.shape();
  shape.lb = values[0];
  shape.is_overflown |= __builtin_add_overflow(values[0], values[1], &shape.ub);
  shape.has_markers = true;
  shape.is_empty = false;
  return MPI_SUCCESS;
}

/// A copy of the child under another combiner: MPI_Type_dup and the types of Fortran's kinds.
int assemble_copy(Assembly& assembly, const Datatype& child) noexcept {
  assembly.take_unit(child);
  assembly.join(1, 0, 0);
  return MPI_SUCCESS;
}

int assemble(Assembly& assembly, const RecipeView& recipe) noexcept {
  const Values values = recipe.values;
  if (recipe.combiner == MPI_COMBINER_STRUCT) {
    return assemble_struct(assembly, values, recipe.types);
  }
  const Datatype& child = *find_datatype(recipe.types[0]);
  switch (recipe.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_F90_INTEGER:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
      return assemble_copy(assembly, child);
    case MPI_COMBINER_CONTIGUOUS: {
      if (values[0] < 0) {
        return MPI_ERR_COUNT;
      }
      assembly.take_unit(child);
      assembly.join(as_count(values[0]), child.extent, 0);
      return MPI_SUCCESS;
    }
    case MPI_COMBINER_VECTOR:
      return assemble_vector(assembly, values, child, child.extent);
    case MPI_COMBINER_HVECTOR:
      return assemble_vector(assembly, values, child, 1);
    case MPI_COMBINER_INDEXED:
      return assemble_indexed(assembly, values, child, child.extent);
    case MPI_COMBINER_HINDEXED:
      return assemble_indexed(assembly, values, child, 1);
    case MPI_COMBINER_INDEXED_BLOCK:
      return assemble_indexed_block(assembly, values, child, child.extent);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return assemble_indexed_block(assembly, values, child, 1);
    case MPI_COMBINER_SUBARRAY:
      return assemble_subarray(assembly, values, child);
    case MPI_COMBINER_DARRAY:
      return assemble_darray(assembly, values, child);
    case MPI_COMBINER_RESIZED:
      return assemble_resized(assembly, values, child);
    default:
      return MPI_ERR_ARG;
  }
}

/// Copies the arguments into the type and counts its references to other types.
bool keep_recipe(memory::Heap& heap, const RecipeView& from, Recipe& recipe) noexcept {
  auto* values = from.gives_values
                     ? const_cast<std::int64_t*>(from.values.data())
                     : static_cast<std::int64_t*>(heap.allocate(from.values.size_bytes() + 1));
  auto* types = static_cast<MPI_Datatype*>(heap.allocate(from.types.size_bytes() + 1));
  if (values == nullptr || types == nullptr) {
    if (!from.gives_values) {
      heap.deallocate(values);
    }
    heap.deallocate(types);
    return false;
  }
  if (!from.gives_values) {
    std::copy(from.values.begin(), from.values.end(), values);
  }
  std::copy(from.types.begin(), from.types.end(), types);
  for (const MPI_Datatype type : from.types) {
    retain_datatype(type);
  }
  recipe = {from.combiner,
            from.is_large,
            static_cast<std::uint32_t>(from.values.size()),
            static_cast<std::uint32_t>(from.types.size()),
            values,
            types};
  return true;
}

void destroy(memory::Heap& heap, Datatype* type) noexcept {
  free_plans(heap, *type);
  type->kind = ObjectKind::freed;
  type->~Datatype();
  heap.deallocate(type);
}

}  // namespace

int create_datatype(memory::Heap& heap, const RecipeView& recipe, Datatype*& made) noexcept {
  for (const MPI_Datatype handle : recipe.types) {
    if (find_datatype(handle) == nullptr) {
      return MPI_ERR_TYPE;
    }
  }
  void* place = heap.allocate(sizeof(Datatype));
  if (place == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  auto* type = ::new (place) Datatype;
  int error = MPI_SUCCESS;
  {
    Assembly assembly{heap};
    error = assemble(assembly, recipe);
    if (error == MPI_SUCCESS) {
      error = assembly.finish(*type);
    }
  }
  if (error == MPI_SUCCESS && !keep_recipe(heap, recipe, type->recipe)) {
    error = MPI_ERR_NO_MEM;
  }
  if (error != MPI_SUCCESS) {
    destroy(heap, type);
    return error;
  }
  made = type;
  return MPI_SUCCESS;
}

int copy_datatype(memory::Heap& heap, const Datatype& type, Datatype*& made) noexcept {
  const Recipe& recipe = type.recipe;
  const int error = create_datatype(heap,
                                    {recipe.combiner,
                                     recipe.is_large,
                                     {recipe.values, recipe.value_count},
                                     {recipe.types, recipe.type_count}},
                                    made);
  if (error == MPI_SUCCESS) {
    made->is_committed = type.is_committed;
  }
  return error;
}

void release_datatype(memory::Heap& heap, MPI_Datatype handle) noexcept {
  // A chain of types that each held the last reference of the next may be long: no recursion over
  // the first child; other children are rarely derived and never deep at once.
  while (!is_predefined(handle)) {
    auto* type = reinterpret_cast<Datatype*>(handle);
    if (!type->release()) {
      return;
    }
    const Recipe recipe = type->recipe;
    destroy(heap, type);
    handle = recipe.type_count == 0 ? MPI_DATATYPE_NULL : recipe.types[0];
    for (std::uint32_t i = 1; i < recipe.type_count; ++i) {
      release_datatype(heap, recipe.types[i]);
    }
    heap.deallocate(recipe.values);
    heap.deallocate(recipe.types);
  }
}

}  // namespace sterna::mpi
