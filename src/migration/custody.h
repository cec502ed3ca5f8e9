// The word of a slot that says whose the rank is while it goes the short way (take.cc).
//
// state (2 bits), node that it is given to (22), number of the attempt (40). The number grows with
// each attempt, so a value that was left is never stored again: of all who would change one attempt
// exactly one does. Release and acquire: with the word goes the slot.
#pragma once

#include <atomic>
#include <cstdint>

namespace sterna::migration {

inline constexpr std::uint64_t kGivenState = std::uint64_t{1} << 62;
inline constexpr int kCustodyNodeShift = 40;
inline constexpr std::uint64_t kCustodyNumberMask = (std::uint64_t{1} << kCustodyNodeShift) - 1;
inline constexpr std::uint64_t kCustodyNodeMask = (std::uint64_t{1} << 22) - 1;

/// By whoever has the rank, which is frozen. The value that says "given", of this attempt.
[[nodiscard]] inline std::uint64_t give_custody(std::atomic<std::uint64_t>& word,
                                                std::uint32_t to_node) noexcept {
  // Relaxed: nobody else changes the word of a rank that is held.
  const std::uint64_t number = (word.load(std::memory_order_relaxed) + 1) & kCustodyNumberMask;
  const std::uint64_t given =
      kGivenState | (to_node & kCustodyNodeMask) << kCustodyNodeShift | number;
  word.store(given, std::memory_order_release);  // A: pairs with B.
  return given;
}

[[nodiscard]] inline bool end_custody(std::atomic<std::uint64_t>& word,
                                      std::uint64_t given) noexcept {
  return word.compare_exchange_strong(given, given & kCustodyNumberMask,
                                      std::memory_order_acq_rel,  // B
                                      std::memory_order_acquire);
}

/// By the node that it was given to. False: it was taken back.
[[nodiscard]] inline bool take_custody(std::atomic<std::uint64_t>& word,
                                       std::uint64_t given) noexcept {
  return end_custody(word, given);
}

/// By the node that gave it. False: it was taken, and the word is not ours to read any more.
[[nodiscard]] inline bool take_back_custody(std::atomic<std::uint64_t>& word,
                                            std::uint64_t given) noexcept {
  return end_custody(word, given);
}

[[nodiscard]] inline bool is_given_to(std::uint64_t given, std::uint32_t node) noexcept {
  return (given & kGivenState) != 0 &&
         ((given >> kCustodyNodeShift) & kCustodyNodeMask) == (node & kCustodyNodeMask);
}

}  // namespace sterna::migration
