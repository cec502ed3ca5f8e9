// What a tasklet is doing, in one word, and all its transitions as pure functions: the model test
// (tasklet_model_test.cc) goes through every interleaving of these same functions. Internal to
// threads/.
//
//   scheduled  It is to run once more. Set by schedule(), which does nothing if it is set:
//              coalesced; taken back just before the function is called.
//   carried    There is a thread for it, about to run it or running it: one at a time.
//   inside     The function is being called.
//   disabled   How often: while that is not 0 the function is not called.
//
// Whoever makes "scheduled, not carried, not disabled" sets `carried` in the same step, and starts
// the carrier: so nothing that is scheduled is forgotten, and there are never two carriers. The
// carrier takes `carried` back in the same step in which it sees that there is nothing to do: who
// schedules or enables later finds it gone and starts another one.
#pragma once

#include <cstdint>

namespace sterna::threads::tasklet {

inline constexpr std::uint64_t kScheduled = 1;
inline constexpr std::uint64_t kCarried = 2;
inline constexpr std::uint64_t kInside = 4;
inline constexpr std::uint64_t kDisabledOne = 1 << 8;
inline constexpr std::uint64_t kDisabledMask = 0xff'ff00;
// Where it is to run: workers [first, first + count); count of 0: on any.
inline constexpr unsigned kFirstShift = 32;
inline constexpr unsigned kCountShift = 48;
inline constexpr std::uint64_t kPlaceMask = ~std::uint64_t{0} << kFirstShift;

struct Place {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

[[nodiscard]] constexpr Place place_of(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word >> kFirstShift & 0xffff),
          static_cast<std::uint32_t>(word >> kCountShift)};
}

[[nodiscard]] constexpr std::uint64_t with_place(std::uint64_t word, Place place) noexcept {
  return (word & ~kPlaceMask) | std::uint64_t{place.first} << kFirstShift |
         std::uint64_t{place.count} << kCountShift;
}

[[nodiscard]] constexpr bool is_disabled(std::uint64_t word) noexcept {
  return (word & kDisabledMask) != 0;
}

/// The word after a step, and what who made it does then.
struct Step {
  std::uint64_t word;
  bool acts;
};

/// acts: starts a carrier.
[[nodiscard]] constexpr Step carried_if_due(std::uint64_t word) noexcept {
  const bool is_due = (word & (kScheduled | kCarried)) == kScheduled && !is_disabled(word);
  return {is_due ? word | kCarried : word, is_due};
}

/// acts: starts a carrier. Where it is scheduled already nothing changes.
[[nodiscard]] constexpr Step schedule(std::uint64_t word, Place place) noexcept {
  return (word & kScheduled) != 0 ? Step{word, false}
                                  : carried_if_due(with_place(word | kScheduled, place));
}

/// By the carrier, first, and after each call of the function. acts: calls it; else it is no
/// carrier any more.
[[nodiscard]] constexpr Step next_call(std::uint64_t word) noexcept {
  const std::uint64_t outside = word & ~kInside;
  return (word & kScheduled) != 0 && !is_disabled(word)
             ? Step{(outside & ~kScheduled) | kInside, true}
             : Step{outside & ~kCarried, false};
}

/// acts: it could not be disabled once more.
[[nodiscard]] constexpr Step disable(std::uint64_t word) noexcept {
  return (word & kDisabledMask) == kDisabledMask ? Step{word, true}
                                                 : Step{word + kDisabledOne, false};
}

/// acts: starts a carrier. It is disabled.
[[nodiscard]] constexpr Step enable(std::uint64_t word) noexcept {
  return carried_if_due(word - kDisabledOne);
}

}  // namespace sterna::threads::tasklet
