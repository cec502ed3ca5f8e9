// The end of a row of loops: what is regular becomes few loops, what is irregular lists of places.
#include <algorithm>
#include <cstring>
#include <limits>

#include "mpi/datatype/assembly.h"

namespace sterna::mpi {
namespace {

// Alike blocks among unlike ones from which on they are a list of their own, which costs less to
// walk.
constexpr std::uint32_t kAlikeMin = 32;

/// Whether both repeat the same thing.
bool is_same_body(const Loop& a, const Loop& b) noexcept {
  return a.block_bytes == b.block_bytes && a.inner_count == b.inner_count &&
         a.inner_first == b.inner_first && a.basic == b.basic && a.has_blocks == b.has_blocks;
}

/// Whether they differ in their place alone.
bool is_alike(const Loop& a, const Loop& b) noexcept {
  return a.count == b.count && a.stride == b.stride && is_same_body(a, b) &&
         a.is_listed == b.is_listed && a.places_first == b.places_first;
}

/// Makes `last` say what `last` then `next` say, if one loop can.
bool try_merge(Loop& last, const Loop& next) noexcept {
  if (is_single_block(last) && is_single_block(next) && last.basic == next.basic &&
      is_adjacent(last, next.displacement)) {
    last.block_bytes += next.block_bytes;
    return true;
  }
  std::int64_t distance = 0;
  if (last.is_listed || next.is_listed || !is_same_body(last, next) ||
      __builtin_sub_overflow(next.displacement, last.displacement, &distance)) {
    return false;
  }
  if (last.count == 1) {
    if (next.count > 1 && next.stride != distance) {
      return false;
    }
    last.stride = distance;
  } else if (!reaches(last.stride, last.count, distance) ||
             (next.count > 1 && next.stride != last.stride)) {
    return false;
  }
  last.count += next.count;
  fuse_blocks(last);
  return true;
}

/// The end of those from `first` on that are alike.
std::uint32_t end_of_alike(const Row& row, std::uint32_t first, std::uint32_t end) noexcept {
  const Row::Waiting* const waiting = row.waiting.data();
  std::uint32_t next = first + 1;
  while (next < end && waiting[next].block_bytes == waiting[first].block_bytes) {
    ++next;
  }
  return next;
}

/// The end of those from `first` on that are alike and equally far apart.
std::uint32_t end_of_even(const Row& row, std::uint32_t first, std::int64_t& distance) noexcept {
  const Row::Waiting* const waiting = row.waiting.data();
  std::uint32_t next = first + 1;
  for (; next < row.waiting.size(); ++next) {
    std::int64_t step = 0;
    if (waiting[next].block_bytes != waiting[first].block_bytes ||
        __builtin_sub_overflow(waiting[next].displacement, waiting[next - 1].displacement, &step) ||
        (next > first + 1 && step != distance)) {
      break;
    }
    distance = step;
  }
  return next;
}

std::uint64_t as_number(std::int64_t displacement) noexcept {
  return static_cast<std::uint64_t>(displacement);
}

/// Whether kManyLoops or more in a row are even somewhere: without a branch for each, which nobody
/// could predict.
bool has_even(const Row& row) noexcept {
  const Row::Waiting* const waiting = row.waiting.data();
  std::uint32_t length = 2;
  std::uint32_t longest = row.waiting.size() < kManyLoops ? 0 : 2;
  for (std::uint32_t i = 2; i < row.waiting.size(); ++i) {
    // Sums that wrap are looked at again.
    const std::uint64_t unlike = ((waiting[i].block_bytes ^ waiting[i - 1].block_bytes) |
                                  (waiting[i - 1].block_bytes ^ waiting[i - 2].block_bytes)) |
                                 ((as_number(waiting[i].displacement) -
                                   as_number(waiting[i - 1].displacement)) ^
                                  (as_number(waiting[i - 1].displacement) -
                                   as_number(waiting[i - 2].displacement)));
    length = unlike == 0 ? length + 1 : 2;
    longest = std::max(longest, length);
  }
  return longest >= kManyLoops;
}

Loop loop_at(Row& row, std::uint32_t index) noexcept {
  Loop loop = row.figure;
  loop.displacement = row.waiting[index].displacement;
  loop.block_bytes = row.waiting[index].block_bytes;
  return loop;
}

/// As a place, from `base` on. False: too far.
bool to_place(std::int64_t displacement, std::int64_t base, std::int32_t& place) noexcept {
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(displacement, base, &distance) ||
      distance != static_cast<std::int32_t>(distance)) {
    return false;
  }
  place = static_cast<std::int32_t>(distance);
  return true;
}

/// The end of those from `first` on that may have places from `base` on; `first` may.
std::uint32_t end_of_near(const Row& row, std::uint32_t first, std::uint32_t end,
                          std::int64_t base) noexcept {
  const Row::Waiting* const waiting = row.waiting.data();
  std::int64_t low = waiting[first].displacement;
  std::int64_t high = low;
  for (std::uint32_t i = first; i < end; ++i) {
    low = std::min(low, waiting[i].displacement);
    high = std::max(high, waiting[i].displacement);
  }
  std::int32_t place = 0;
  if (to_place(low, base, place) && to_place(high, base, place)) {
    return end;
  }
  std::uint32_t next = first + 1;
  while (next < end && to_place(waiting[next].displacement, base, place)) {
    ++next;
  }
  return next;
}

}  // namespace

// Only what is alike, or single blocks of one basic type, waits together.
void Assembly::prepare(Row& row, const Loop& figure) noexcept {
  if (row.waiting.size() != 0) {
    const bool fits = is_single_block(figure)
                          ? is_single_block(row.figure) && figure.basic == row.figure.basic
                          : is_alike(figure, row.figure);
    if (fits) {
      return;
    }
    settle(row);
  }
  row.figure = figure;
}

void Assembly::add(Row& row, const Loop& loop) noexcept {
  prepare(row, loop);
  if (is_single_block(loop) && row.waiting.size() != 0) {
    Row::Waiting& last = row.waiting.back();
    if (is_adjacent(last, loop.displacement)) {
      last.block_bytes += loop.block_bytes;
      return;
    }
  }
  add(row, loop.displacement, loop.block_bytes);
}

void Assembly::add(Row& row, std::int64_t displacement, std::uint64_t block_bytes) noexcept {
  if (row.waiting.size() == Row::kWaitingMax) [[unlikely]] {
    settle(row);
  }
  is_out_of_memory_ |= !row.waiting.push({displacement, block_bytes});
}

void Assembly::push_merged(LoopArray& row, const Loop& loop) noexcept {
  if (row.size() == 0 || !try_merge(row.back(), loop)) {
    is_out_of_memory_ |= !row.push(loop);
  }
}

void Assembly::settle(Row& row) noexcept {
  const std::uint32_t count = row.waiting.size();
  std::uint32_t uneven = 0;
  for (std::uint32_t i = has_even(row) ? 0 : count; i < count;) {
    std::int64_t distance = 0;
    const std::uint32_t end = end_of_even(row, i, distance);
    if (end - i >= kManyLoops) {
      settle_uneven(row, uneven, i);
      push_merged(row.settled, repeated(loop_at(row, i), end - i, distance));
      uneven = end;
      i = end;
    } else {
      i = std::max(i + 1, end - 1);  // The last one may begin what is even.
    }
  }
  settle_uneven(row, uneven, count);
  row.waiting.clear();
}

void Assembly::settle_uneven(Row& row, std::uint32_t first, std::uint32_t end) noexcept {
  const bool are_many = end - first >= kManyLoops;
  while (first < end && !is_out_of_memory_) {
    const std::uint32_t next = end_of_alike(row, first, end);
    if (are_many && (next - first >= kAlikeMin || (next == end && next - first >= kManyLoops))) {
      push_listed(row, first, next);
      first = next;
      continue;
    }
    std::uint32_t blocks = next;  // Until many are alike.
    while (blocks < end) {
      const std::uint32_t alike = end_of_alike(row, blocks, end);
      if (alike - blocks >= kAlikeMin) {
        break;
      }
      blocks = alike;
    }
    if (blocks - first >= kManyLoops) {
      push_blocks(row, first, blocks);
    } else {
      for (std::uint32_t i = first; i < blocks; ++i) {
        push_merged(row.settled, loop_at(row, i));
      }
    }
    first = blocks;
  }
}

/// Whether each repetition of the list is what `loop` is.
bool Assembly::is_list_of(const Loop& list, const Loop& loop) noexcept {
  if (!list.is_listed) {
    return false;
  }
  if (loop.count == 1) {
    return is_same_body(list, loop);
  }
  return list.inner_count == 1 && !list.has_blocks && is_alike(pool_[list.inner_first], loop);
}

void Assembly::push_listed(Row& row, std::uint32_t first, std::uint32_t end) noexcept {
  while (first < end && !is_out_of_memory_) {
    const Loop loop = loop_at(row, first);
    LoopArray& settled = row.settled;
    const bool may_go_on =
        settled.size() != 0 && is_list_of(settled.back(), loop) &&
        std::uint64_t{settled.back().places_first} + settled.back().count == places_.size();
    std::int64_t base = may_go_on ? settled.back().displacement : loop.displacement;
    std::int32_t place = 0;
    const bool goes_on = may_go_on && to_place(loop.displacement, base, place);
    base = goes_on ? base : loop.displacement;
    const std::uint32_t next = end_of_near(row, first, end, base);
    if (!goes_on && next - first < kManyLoops) {  // Far from one another.
      push_merged(settled, loop);
      ++first;
      continue;
    }
    if (!goes_on) {
      Loop list = loop.count == 1 ? loop : boxed(loop);
      list.count = 0;
      list.is_listed = true;
      list.places_first = places_.size();
      is_out_of_memory_ |= !settled.push(list);
    }
    std::int32_t* const places = places_.extend(next - first);
    is_out_of_memory_ |= places == nullptr;
    const Row::Waiting* const waiting = row.waiting.data();
    for (std::uint32_t i = first; i < next && !is_out_of_memory_; ++i) {
      places[i - first] = static_cast<std::int32_t>(waiting[i].displacement - base);
    }
    settled.back().count += next - first;
    first = next;
  }
}

void Assembly::push_blocks(Row& row, std::uint32_t first, std::uint32_t end) noexcept {
  while (first < end) {
    const Loop base = loop_at(row, first);
    // How far they are near one another, and the sum of their bytes fits.
    std::uint64_t bytes = 0;
    std::uint32_t next = first;
    for (std::int32_t place = 0; next < end; ++next) {
      const std::uint64_t sum = bytes + row.waiting[next].block_bytes;
      if (!to_place(row.waiting[next].displacement, base.displacement, place) ||
          sum > std::numeric_limits<std::uint32_t>::max()) {
        break;
      }
      bytes = sum;
    }
    if (next - first < kManyLoops) {
      push_merged(row.settled, base);
      ++first;
      continue;
    }
    const std::uint32_t count = next - first;
    const std::uint32_t places_first = places_.size();
    std::int32_t* const places = places_.extend(2 * count + 1);
    if (places == nullptr) {
      is_out_of_memory_ = true;
      return;
    }
    std::uint32_t start = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Row::Waiting& block = row.waiting[first + i];
      (void)to_place(block.displacement, base.displacement, places[i]);
      std::memcpy(&places[count + i], &start, sizeof start);
      start += static_cast<std::uint32_t>(block.block_bytes);
    }
    std::memcpy(&places[2 * count], &start, sizeof start);
    Loop loop{base.displacement, 0, 1, bytes, 0, places_first, count, base.basic};
    loop.has_blocks = true;
    is_out_of_memory_ |= !row.settled.push(loop);
    first = next;
  }
}

}  // namespace sterna::mpi
