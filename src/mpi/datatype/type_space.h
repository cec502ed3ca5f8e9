// What one rank knows beyond its datatypes themselves: names and attributes that it gave to
// predefined types (their objects are constant and shared), and the types of Fortran's kinds.
#pragma once

#include <cstdint>
#include <span>

#include <mpi.h>

#include "mpi/attribute/attribute.h"
#include "mpi/datatype/datatype.h"
#include "mpi/rank_state.h"

namespace sterna::mpi {

/// The type's attributes, wherever they are. Null: no memory.
[[nodiscard]] AttributeSet* attributes_of(RankState& state, MPI_Datatype type) noexcept;

/// The name that MPI_Type_get_name gives.
[[nodiscard]] const char* name_of(RankState& state, MPI_Datatype type) noexcept;
/// Cuts at MPI_MAX_OBJECT_NAME. False: no memory.
[[nodiscard]] bool set_name(RankState& state, MPI_Datatype type, const char* name) noexcept;

/// The type of MPI_Type_create_f90_*: the same for the same arguments, never freed by the program.
/// `values` are precision and range, or range. An error class.
[[nodiscard]] int kind_type(RankState& state, int combiner, std::span<const std::int64_t> values,
                            MPI_Datatype base, MPI_Datatype& type) noexcept;

/// At the end of the rank.
void release_type_space(RankState& state) noexcept;

}  // namespace sterna::mpi
