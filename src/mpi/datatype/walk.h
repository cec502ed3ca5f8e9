// Walking the loops of a plan from any byte of its stream: the one traversal behind pack, unpack,
// the collection of runs, conversion and counting. What happens to a block is the visitor's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mpi/datatype/datatype.h"
#include "mpi/datatype/loop.h"

namespace sterna::mpi {

/// `count` instances, `extent` bytes apart, as one loop. Needs bytes in the plan.
[[nodiscard]] inline Loop loop_over(const Plan& plan, std::uint64_t count,
                                    std::int64_t extent) noexcept {
  const Loop& top = plan.loops[plan.top_first];
  if (plan.top_count == 1 && top.inner_count == 0 && top.count == 1) {
    if (static_cast<std::int64_t>(top.block_bytes) == extent) {
      return {top.displacement, 0, 1, top.block_bytes * count, 0, 0, 0, top.basic};
    }
    return {top.displacement, extent, count, top.block_bytes, 0, 0, 0, top.basic};
  }
  return {0, extent, count, plan.bytes, 0, plan.top_first, plan.top_count, Basic::none};
}

/// The visitor has
///   bool block(std::byte* address, std::uint64_t bytes, Basic basic)
///   bool blocks(std::byte* address, const Loop& loop, std::uint64_t count)  whole blocks of the
///   loop,
///     the first at `address`
/// and returns false to stop.
template <typename Visitor>
class Walker {
 public:
  Walker(const Loop* loops, Visitor& visitor, std::uint64_t bytes) noexcept
      : loops_{loops}, visitor_{visitor}, left_{bytes} {}

  /// Visits the loop's bytes from `skip` on. `at` is the place of what contains the loop. False:
  /// the visitor stopped, or no bytes are left to visit.
  bool visit(const Loop& loop, std::uintptr_t at, std::uint64_t skip) noexcept {
    std::uint64_t index = 0;
    if (skip != 0) {
      index = skip / loop.block_bytes;
      skip %= loop.block_bytes;
    }
    at += static_cast<std::uintptr_t>(loop.displacement) + index * step(loop);
    return loop.inner_count == 0 ? visit_blocks(loop, at, loop.count - index, skip)
                                 : visit_rows(loop, at, loop.count - index, skip);
  }

 private:
  // Addresses are numbers here: they wrap, and may start at MPI_BOTTOM.
  static std::byte* pointer(std::uintptr_t at) noexcept { return reinterpret_cast<std::byte*>(at); }
  static std::uintptr_t step(const Loop& loop) noexcept {
    return static_cast<std::uintptr_t>(loop.stride);
  }

  bool visit_blocks(const Loop& loop, std::uintptr_t at, std::uint64_t count,
                    std::uint64_t skip) noexcept {
    if (skip != 0) {
      const std::uint64_t bytes = std::min(loop.block_bytes - skip, left_);
      if (!take(at + skip, bytes, loop.basic) || --count == 0) {
        return left_ != 0;
      }
      at += step(loop);
    }
    // A division costs more than a short block.
    const std::uint64_t whole =
        count * loop.block_bytes <= left_ ? count : left_ / loop.block_bytes;
    if (whole != 0) {
      left_ -= whole * loop.block_bytes;
      if (!(whole == 1 ? visitor_.block(pointer(at), loop.block_bytes, loop.basic)
                       : visitor_.blocks(pointer(at), loop, whole))) {
        left_ = 0;
        return false;
      }
    }
    if (whole < count && left_ != 0) {
      at += whole * step(loop);
      return take(at, left_, loop.basic);
    }
    return left_ != 0;
  }

  bool visit_rows(const Loop& loop, std::uintptr_t at, std::uint64_t count,
                  std::uint64_t skip) noexcept {
    const Loop* const row = loops_ + loop.inner_first;
    const Loop* const end = row + loop.inner_count;
    for (; count != 0; --count, at += step(loop)) {
      const Loop* inner = row;
      if (skip != 0) {
        inner = std::upper_bound(row, end, skip,
                                 [](std::uint64_t bytes, const Loop& candidate) {
                                   return bytes < candidate.start;
                                 }) -
                1;
        skip -= inner->start;
      }
      for (; inner != end; ++inner) {
        // Rows of single blocks are what irregular types are made of: in few steps.
        const bool is_block = inner->inner_count == 0 && inner->count == 1 && skip == 0 &&
                              inner->block_bytes <= left_;
        if (is_block ? !take(at + static_cast<std::uintptr_t>(inner->displacement),
                             inner->block_bytes, inner->basic)
                     : !visit(*inner, at, skip)) {
          return false;
        }
        skip = 0;
      }
    }
    return true;
  }

  bool take(std::uintptr_t at, std::uint64_t bytes, Basic basic) noexcept {
    left_ -= bytes;
    if (!visitor_.block(pointer(at), bytes, basic)) {
      left_ = 0;
    }
    return left_ != 0;
  }

  const Loop* const loops_;
  Visitor& visitor_;
  std::uint64_t left_;
};

/// Visits the bytes [offset, offset + bytes) of the stream of `buffer` that exist. Returns how many
/// those are (the visitor may have stopped before).
template <typename Visitor>
std::uint64_t walk(const TypedBuffer& buffer, const Plan& plan, std::uint64_t offset,
                   std::uint64_t bytes, Visitor& visitor) noexcept {
  const std::uint64_t total = buffer.bytes();
  if (offset >= total || bytes == 0) {
    return 0;
  }
  bytes = std::min(bytes, total - offset);
  Walker<Visitor> walker{plan.loops, visitor, bytes};
  walker.visit(loop_over(plan, buffer.count, buffer.type->extent),
               reinterpret_cast<std::uintptr_t>(buffer.address), offset);
  return bytes;
}

}  // namespace sterna::mpi
