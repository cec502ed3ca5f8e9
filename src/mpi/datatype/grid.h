// Datatypes of arrays: a part of an array that is given by its corners (subarray) or by how the
// array is spread over a grid of processes (darray).
#pragma once

#include <cstdint>
#include <span>

#include "mpi/datatype/assembly.h"

namespace sterna::mpi {

/// Joins the part to the assembly. `values`: dimensions, sizes, subsizes, starts, order.
[[nodiscard]] int assemble_subarray(Assembly& assembly, std::span<const std::int64_t> values,
                                    const Datatype& child) noexcept;

/// `values`: processes, rank, dimensions, sizes, distributions, arguments, grid, order.
[[nodiscard]] int assemble_darray(Assembly& assembly, std::span<const std::int64_t> values,
                                  const Datatype& child) noexcept;

}  // namespace sterna::mpi
