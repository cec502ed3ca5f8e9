// Making derived datatypes from the arguments of their constructors, and giving the arguments back.
#pragma once

#include <cstdint>
#include <span>

#include <mpi.h>

#include "memory/heap.h"
#include "mpi/datatype/datatype.h"

namespace sterna::mpi {

/// The arguments of a constructor, in the order of its int form in MPI_Type_get_contents: first the
/// integers, then the addresses. For example an hindexed type: count, block lengths, displacements.
struct RecipeView {
  int combiner;
  bool is_large = false;
  std::span<const std::int64_t> values;
  std::span<const MPI_Datatype> types;
  bool gives_values = false;  // They are a block of the heap: a type that is made takes it over.
};

/// Makes a derived type with one reference, not committed. An error class, and then no type:
/// lengths that are negative, handles that are no types, arrays that cannot be, overflow, no
/// memory.
[[nodiscard]] int create_datatype(memory::Heap& heap, const RecipeView& recipe,
                                  Datatype*& made) noexcept;

/// An object of its own that is made in the same way as `type`, a derived one, and committed if
/// that is; no attributes, no name. An error class.
[[nodiscard]] int copy_datatype(memory::Heap& heap, const Datatype& type,
                                Datatype*& made) noexcept;

/// How many of its arguments are integers, addresses, large counts and types: of predefined types,
/// none. As MPI_Type_get_envelope_c.
struct Envelope {
  std::uint32_t integer_count = 0;
  std::uint32_t address_count = 0;
  std::uint32_t large_count = 0;
  std::uint32_t type_count = 0;
};
[[nodiscard]] Envelope envelope_of(const Recipe& recipe) noexcept;

/// Which of the three arrays of MPI_Type_get_contents_c a value of the recipe belongs to.
enum class ValueKind : std::uint8_t { integer, address, large };
[[nodiscard]] ValueKind kind_of_value(const Recipe& recipe, std::uint32_t index) noexcept;

/// The predefined type of the class (MPI_TYPECLASS_*) and size, or MPI_DATATYPE_NULL.
[[nodiscard]] MPI_Datatype match_size(int type_class, int bytes) noexcept;
/// The pair type of two predefined types, or MPI_DATATYPE_NULL.
[[nodiscard]] MPI_Datatype match_pair(MPI_Datatype value, MPI_Datatype index) noexcept;

}  // namespace sterna::mpi
