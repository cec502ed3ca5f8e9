// Walking the loops of a plan from any byte of its stream: the one traversal behind pack, unpack,
// the collection of runs, conversion and counting. What happens to a block is the visitor's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

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
///     loop, the first at `address`
/// and returns false to stop. It may have, for what is irregular,
///   void listed(std::byte* address, const Loop& loop, const std::int32_t* places,
///               std::uint64_t count)  blocks of one length, at places from `address` on
///   void unlike(std::byte* address, const std::int32_t* places, const std::uint32_t* starts,
///               std::uint64_t count)  blocks, each until the start of the next
///   void rows(std::byte* address, const Loop& loop, const std::int32_t* places,
///             std::uint64_t count, const Loop& inner)  `count` bodies of the loop, at places, or,
///               where those are null, its stride apart, each of `inner`'s blocks
/// or is given their blocks one by one.
template <typename Visitor>
class Walker {
 public:
  Walker(const Plan& plan, Visitor& visitor, std::uint64_t bytes) noexcept
      : loops_{plan.loops}, places_{plan.places}, visitor_{visitor}, left_{bytes} {}

  /// Visits the loop's bytes from `skip` on. `at` is the place of what contains the loop. False:
  /// the visitor stopped, or no bytes are left to visit.
  bool visit(const Loop& loop, std::uintptr_t at, std::uint64_t skip) noexcept {
    std::uint64_t index = 0;
    if (skip != 0) {
      index = skip / loop.block_bytes;
      skip %= loop.block_bytes;
    }
    at += static_cast<std::uintptr_t>(loop.displacement);
    if (loop.inner_count != 0) {
      return visit_bodies(loop, at, index, skip);
    }
    return loop.is_listed
               ? visit_listed(loop, at, index, skip)
               : visit_blocks(loop, at + index * step(loop), loop.count - index, skip);
  }

 private:
  // Addresses are numbers here: they wrap, and may start at MPI_BOTTOM.
  static std::byte* pointer(std::uintptr_t at) noexcept { return reinterpret_cast<std::byte*>(at); }
  static std::uintptr_t step(const Loop& loop) noexcept {
    return static_cast<std::uintptr_t>(loop.stride);
  }
  static std::uintptr_t moved(std::uintptr_t at, std::int32_t place) noexcept {
    return at + static_cast<std::uintptr_t>(std::intptr_t{place});
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

  bool visit_listed(const Loop& loop, std::uintptr_t at, std::uint64_t index,
                    std::uint64_t skip) noexcept {
    const std::int32_t* const places = places_ + loop.places_first;
    if (skip != 0) {
      const std::uint64_t bytes = std::min(loop.block_bytes - skip, left_);
      if (!take(moved(at, places[index]) + skip, bytes, loop.basic)) {
        return false;
      }
      ++index;
    }
    const std::uint64_t count = loop.count - index;
    const std::uint64_t whole =
        count * loop.block_bytes <= left_ ? count : left_ / loop.block_bytes;
    if constexpr (requires { visitor_.listed(pointer(at), loop, places, whole); }) {
      left_ -= whole * loop.block_bytes;
      visitor_.listed(pointer(at), loop, places + index, whole);
    } else {
      for (std::uint64_t i = 0; i < whole; ++i) {
        if (!take(moved(at, places[index + i]), loop.block_bytes, loop.basic)) {
          return false;
        }
      }
    }
    if (whole < count && left_ != 0) {
      return take(moved(at, places[index + whole]), left_, loop.basic);
    }
    return left_ != 0;
  }

  bool visit_bodies(const Loop& loop, std::uintptr_t at, std::uint64_t index,
                    std::uint64_t skip) noexcept {
    const std::int32_t* const places = loop.is_listed ? places_ + loop.places_first : nullptr;
    const auto visit_body = [&] {
      const std::uintptr_t body =
          places == nullptr ? at + index * step(loop) : moved(at, places[index]);
      ++index;
      return loop.has_blocks ? visit_unlike(loop, body, std::exchange(skip, 0))
                             : visit_row(loop, body, std::exchange(skip, 0));
    };
    if (skip != 0 && !visit_body()) {
      return false;  // The rest of one.
    }
    if constexpr (requires { visitor_.rows(pointer(at), loop, places, index, loop); }) {
      const Loop& inner = loops_[loop.inner_first];
      if (loop.inner_count == 1 && index != loop.count && !loop.has_blocks &&
          inner.inner_count == 0 && !inner.is_listed) {
        const std::uint64_t count = loop.count - index;
        const std::uint64_t whole =
            count * loop.block_bytes <= left_ ? count : left_ / loop.block_bytes;
        left_ -= whole * loop.block_bytes;
        visitor_.rows(pointer(places == nullptr ? at + index * step(loop) : at), loop,
                      places == nullptr ? nullptr : places + index, whole, inner);
        index += whole;
        if (left_ == 0) {
          return false;
        }
      }
    }
    while (index != loop.count) {
      if (!visit_body()) {
        return false;
      }
    }
    return true;
  }

  bool visit_row(const Loop& loop, std::uintptr_t at, std::uint64_t skip) noexcept {
    const Loop* inner = loops_ + loop.inner_first;
    const Loop* const end = inner + loop.inner_count;
    if (skip != 0) {
      inner = std::upper_bound(inner, end, skip,
                               [](std::uint64_t bytes, const Loop& candidate) {
                                 return bytes < candidate.start;
                               }) -
              1;
      skip -= inner->start;
    }
    for (; inner != end; ++inner) {
      // Short rows of single blocks are what structures are made of: in few steps.
      const bool is_block = inner->inner_count == 0 && inner->count == 1 && skip == 0 &&
                            inner->block_bytes <= left_;
      if (is_block ? !take(at + static_cast<std::uintptr_t>(inner->displacement),
                           inner->block_bytes, inner->basic)
                   : !visit(*inner, at, skip)) {
        return false;
      }
      skip = 0;
    }
    return true;
  }

  bool visit_unlike(const Loop& loop, std::uintptr_t at, std::uint64_t skip) noexcept {
    const std::int32_t* const places = places_ + loop.inner_first;
    const auto* const starts = reinterpret_cast<const std::uint32_t*>(places + loop.inner_count);
    const std::uint32_t* const end = starts + loop.inner_count;  // The end of the last block.
    const std::uint32_t* next = starts;
    if (skip != 0) {
      next = std::upper_bound(starts, end, skip);
      const std::uint64_t bytes = std::min(*next - skip, left_);
      if (!take(moved(at, places[next - 1 - starts]) + (skip - next[-1]), bytes, loop.basic)) {
        return false;
      }
    }
    const std::uint32_t* const last =
        *end - *next <= left_ ? end : std::upper_bound(next, end, *next + left_) - 1;
    const std::int32_t* const places_next = places + (next - starts);
    const auto whole = static_cast<std::uint64_t>(last - next);
    if constexpr (requires { visitor_.unlike(pointer(at), places_next, next, whole); }) {
      left_ -= *last - *next;
      visitor_.unlike(pointer(at), places_next, next, whole);
    } else {
      for (std::uint64_t i = 0; i < whole; ++i) {
        if (!take(moved(at, places_next[i]), next[i + 1] - next[i], loop.basic)) {
          return false;
        }
      }
    }
    return last == end || left_ == 0 ? left_ != 0
                                     : take(moved(at, places_next[whole]), left_, loop.basic);
  }

  bool take(std::uintptr_t at, std::uint64_t bytes, Basic basic) noexcept {
    left_ -= bytes;
    if (!visitor_.block(pointer(at), bytes, basic)) {
      left_ = 0;
    }
    return left_ != 0;
  }

  const Loop* const loops_;
  const std::int32_t* const places_;
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
  Walker<Visitor> walker{plan, visitor, bytes};
  walker.visit(loop_over(plan, buffer.count, buffer.type->extent),
               reinterpret_cast<std::uintptr_t>(buffer.address), offset);
  return bytes;
}

}  // namespace sterna::mpi
