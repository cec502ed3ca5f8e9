// Parts of arrays as repetitions, from the dimension that varies fastest to the slowest.
#include "mpi/datatype/grid.h"

#include <algorithm>

namespace sterna::mpi {
namespace {

using Values = std::span<const std::int64_t>;

std::uint64_t as_count(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value);
}

std::int64_t times(std::int64_t a, std::int64_t b, Shape& shape) noexcept {
  std::int64_t product = 0;
  shape.is_overflown |= __builtin_mul_overflow(a, b, &product);
  return product;
}

/// The i-th dimension from the fastest on.
std::size_t dimension(std::size_t i, std::size_t count, std::int64_t order) noexcept {
  return order == MPI_ORDER_C ? count - 1 - i : i;
}

/// The unit, placed, is the part; the bounds are those of the whole array.
void close_array(Assembly& assembly, std::int64_t whole_bytes, bool is_overflown) noexcept {
  assembly.join(1, 0, 0);
  Shape& shape = assembly.shape();
  shape.is_overflown |= is_overflown;
  shape.lb = 0;
  shape.ub = whole_bytes;
  shape.has_markers = true;
  shape.is_empty = false;
}

struct Share {
  std::int64_t size;          // Of the array in this dimension.
  std::int64_t distribution;  // MPI_DISTRIBUTE_*.
  std::int64_t argument;
  std::int64_t grid;        // Processes along the dimension.
  std::int64_t coordinate;  // This process's.
};

/// `share` as blocks of `length` that lie `period` apart, the first at `start`: how many are whole,
/// and how long is the last that is not.
struct Blocks {
  std::int64_t start = 0;
  std::int64_t length = 0;
  std::int64_t period = 0;
  std::int64_t whole = 0;
  std::int64_t rest = 0;
};

/// False: no such distribution.
bool blocks_of(const Share& share, Blocks& blocks) noexcept {
  const bool is_default = share.argument == MPI_DISTRIBUTE_DFLT_DARG;
  switch (share.distribution) {
    case MPI_DISTRIBUTE_NONE:
      if (share.grid != 1) {
        return false;
      }
      blocks = {0, share.size, share.size, 1, 0};
      return true;
    case MPI_DISTRIBUTE_BLOCK: {
      const std::int64_t length =
          is_default ? (share.size + share.grid - 1) / share.grid : share.argument;
      if (length <= 0 || length < (share.size + share.grid - 1) / share.grid) {
        return false;  // The blocks of all processes would not cover the array.
      }
      // No overflow: a product as large as the array's size ends beyond the array anyway.
      blocks.start =
          length > share.size / std::max<std::int64_t>(share.coordinate, 1) && share.coordinate > 0
              ? share.size
              : length * share.coordinate;
      blocks.rest = std::clamp<std::int64_t>(share.size - blocks.start, 0, length);
      return true;
    }
    case MPI_DISTRIBUTE_CYCLIC: {
      const std::int64_t length = is_default ? 1 : share.argument;
      std::int64_t period = 0;
      if (length <= 0) {
        return false;
      }
      if (__builtin_mul_overflow(length, share.grid, &period)) {
        return false;
      }
      blocks.start = length * share.coordinate;
      const std::int64_t left = std::max<std::int64_t>(share.size - blocks.start, 0);
      blocks.length = length;
      blocks.period = period;
      blocks.whole = left / period + (left % period >= length ? 1 : 0);
      blocks.rest = left % period >= length ? 0 : left % period;
      return true;
    }
    default:
      return false;
  }
}

/// The unit becomes its share along one dimension, whose elements lie `stride` bytes apart.
void spread_unit(Assembly& assembly, const Blocks& blocks, std::int64_t stride) noexcept {
  Shape overflow;
  const std::int64_t start = times(blocks.start, stride, overflow);
  const std::int64_t period = times(blocks.period, stride, overflow);
  const std::int64_t tail_at = times(blocks.whole, period, overflow);
  if (overflow.is_overflown) {
    assembly.shape().is_overflown = true;
    return;
  }
  if (blocks.whole == 0) {
    assembly.repeat_unit(as_count(blocks.rest), stride);
  } else if (blocks.rest == 0) {
    assembly.repeat_unit(as_count(blocks.length), stride);
    assembly.repeat_unit(as_count(blocks.whole), period);
  } else {
    assembly.join_blocks(as_count(blocks.whole), as_count(blocks.length), stride, period);
    assembly.join(as_count(blocks.rest), stride, tail_at);
    assembly.joined_to_unit();
  }
  assembly.shift_unit(start);
}

}  // namespace

int assemble_subarray(Assembly& assembly, Values values, const Datatype& child) noexcept {
  const std::int64_t dimensions = values[0];
  const std::int64_t order = values.back();
  if (dimensions < 1 || (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)) {
    return MPI_ERR_ARG;
  }
  const auto count = static_cast<std::size_t>(dimensions);
  const Values sizes = values.subspan(1, count);
  const Values parts = values.subspan(1 + count, count);
  const Values starts = values.subspan(1 + 2 * count, count);
  assembly.take_unit(child);
  Shape overflow;
  std::int64_t stride = child.extent;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t d = dimension(i, count, order);
    if (sizes[d] < 1 || parts[d] < 1 || parts[d] > sizes[d] || starts[d] < 0 ||
        starts[d] > sizes[d] - parts[d]) {
      return MPI_ERR_ARG;
    }
    assembly.repeat_unit(as_count(parts[d]), stride);
    assembly.shift_unit(times(starts[d], stride, overflow));
    stride = times(stride, sizes[d], overflow);
  }
  close_array(assembly, stride, overflow.is_overflown);
  return MPI_SUCCESS;
}

int assemble_darray(Assembly& assembly, Values values, const Datatype& child) noexcept {
  const std::int64_t dimensions = values[2];
  const std::int64_t order = values.back();
  std::int64_t processes = values[0];
  std::int64_t rank = values[1];
  if (dimensions < 1 || processes < 1 || rank < 0 || rank >= processes ||
      (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)) {
    return MPI_ERR_ARG;
  }
  const auto count = static_cast<std::size_t>(dimensions);
  const Values sizes = values.subspan(3, count);
  const Values distributions = values.subspan(3 + count, count);
  const Values arguments = values.subspan(3 + 2 * count, count);
  const Values grid = values.subspan(3 + 3 * count, count);
  std::int64_t cells = 1;
  for (const std::int64_t extent : grid) {
    if (extent < 1 || __builtin_mul_overflow(cells, extent, &cells)) {
      return MPI_ERR_ARG;
    }
  }
  if (cells != processes) {
    return MPI_ERR_ARG;
  }
  assembly.take_unit(child);
  Shape overflow;
  std::int64_t stride = child.extent;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t d = dimension(i, count, order);
    // The grid is numbered in row-major order, whatever the array's order is.
    std::int64_t slower = 1;
    for (const std::int64_t extent : grid.subspan(d + 1)) {
      slower *= extent;
    }
    Blocks blocks;
    if (sizes[d] < 1 ||
        !blocks_of({sizes[d], distributions[d], arguments[d], grid[d], rank / slower % grid[d]},
                   blocks)) {
      return MPI_ERR_ARG;
    }
    spread_unit(assembly, blocks, stride);
    stride = times(stride, sizes[d], overflow);
  }
  close_array(assembly, stride, overflow.is_overflown);
  return MPI_SUCCESS;
}

}  // namespace sterna::mpi
