// MPI_Dims_create: sizes of a grid that are as equal as they can be.
#pragma once

#include <span>

namespace sterna::mpi {

/// Replaces the zeros of `sizes` so that the product is `count`, in descending order, as close to
/// each other as possible. False: the sizes that are given do not divide it, or one is negative.
[[nodiscard]] bool choose_dimensions(int count, std::span<int> sizes) noexcept;

}  // namespace sterna::mpi
