// Joining a unit at many displacements, in few steps for each.
#include <algorithm>

#include "mpi/datatype/assembly.h"

namespace sterna::mpi {

void Assembly::join_many(std::span<const std::int64_t> lengths,
                         std::span<const std::int64_t> displacements, std::int64_t step,
                         std::int64_t stride) noexcept {
  prepare_unit(displacements.size());
  if (join_fast(lengths, displacements, step, stride)) {
    return;
  }
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    std::int64_t displacement = 0;
    joined_.is_overflown |= __builtin_mul_overflow(displacements[i], step, &displacement);
    join(lengths.empty() ? 1 : static_cast<std::uint64_t>(lengths[i]), stride, displacement);
  }
}

// Most types of many displacements: of blocks, or of copies of one loop, with small numbers, which
// need no look at each sum. False: nothing was done.
bool Assembly::join_fast(std::span<const std::int64_t> lengths,
                         std::span<const std::int64_t> displacements, std::int64_t step,
                         std::int64_t stride) noexcept {
  constexpr std::int64_t kStepMax = std::int64_t{1} << 20;
  constexpr std::int64_t kNumberMax = std::int64_t{1} << 40;
  constexpr std::int64_t kBoundMax = std::int64_t{1} << 60;
  const auto is_within = [](std::int64_t value, std::int64_t limit) {
    return value <= limit && value >= -limit;
  };
  const Shape& unit = unit_shape_;
  if (unit_.size() != 1 || joined_.is_overflown || unit.is_overflown || is_out_of_memory_ ||
      !is_within(step, kStepMax) || !is_within(unit.lb, kBoundMax) ||
      !is_within(unit.ub, kBoundMax) || !is_within(unit.true_lb, kBoundMax) ||
      !is_within(unit.true_ub, kBoundMax)) {
    return false;
  }
  const Loop loop = unit_[0];
  const bool are_blocks = is_single_block(loop);
  if (!lengths.empty() &&
      (!are_blocks || stride != unit.bytes || stride > kStepMax || displacements.empty())) {
    return false;
  }
  std::int64_t low = kBoundMax;
  std::int64_t high = -kBoundMax;
  std::int64_t total = 0;
  bool is_fast = true;
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const std::int64_t length = lengths.empty() ? 1 : lengths[i];
    is_fast &= is_within(displacements[i], kNumberMax) & (length <= kNumberMax);
    is_fast &= !__builtin_add_overflow(total, length, &total);
    const std::int64_t at = displacements[i] * (is_fast ? step : 0);
    low = length == 0 ? low : std::min(low, at);
    high = length == 0 ? high : std::max(high, at + (length - 1) * (is_fast ? stride : 0));
  }
  Shape shape = unit;
  if (!is_fast || total == 0 || __builtin_mul_overflow(total, unit.bytes, &shape.bytes) ||
      __builtin_mul_overflow(total, unit.element_count, &shape.element_count)) {
    return false;
  }
  shape.lb += low;
  shape.true_lb += low;
  shape.ub += high;
  shape.true_ub += high;
  joined_.join(shape);
  if (joined_.is_overflown) {
    return true;
  }
  prepare(row_, loop);
  const auto length_of = [&](std::size_t i) {
    return lengths.empty() ? std::uint64_t{1} : static_cast<std::uint64_t>(lengths[i]);
  };
  for (std::size_t i = 0; i < displacements.size() && !is_out_of_memory_;) {
    if (row_.waiting.size() == Row::kWaitingMax) {
      settle(row_);
    }
    // Straight into the room for them; what is empty, or goes on where another ends, leaves its.
    bool has_last = row_.waiting.size() != 0;
    const auto count = static_cast<std::uint32_t>(
        std::min<std::size_t>(Row::kWaitingMax - row_.waiting.size(), displacements.size() - i));
    Row::Waiting* const room = row_.waiting.extend(count);
    if (room == nullptr) {
      is_out_of_memory_ = true;
      break;
    }
    Row::Waiting* next = room;
    for (const std::size_t end = i + count; i < end; ++i) {
      const std::int64_t at = loop.displacement + displacements[i] * step;
      const std::uint64_t block_bytes = length_of(i) * loop.block_bytes;
      if (are_blocks && has_last && is_adjacent(next[-1], at)) {
        next[-1].block_bytes += block_bytes;
      } else if (block_bytes != 0) {
        *next = {at, block_bytes};
        ++next;
        has_last = true;
      }
    }
    row_.waiting.shrink(static_cast<std::uint32_t>(room + count - next));
  }
  return true;
}

}  // namespace sterna::mpi
