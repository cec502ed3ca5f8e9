// Which of several callers wait as soon as they have started something long, and which compute
// first: by what each did the last times. What is started by who waits at once may be left to him;
// what is started by others has to get on without.
//
// One word for each caller, user thread or kernel thread, found by a hash: who comes upon the word
// of another begins anew in it. All relaxed: hints, and whole words, so that two who share one
// learn nonsense at worst.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "base/cpu.h"
#include "base/hash.h"

namespace sterna::progress {

class WaitHabits {
 public:
  // Of computation that is lost where the habit ends.
  static constexpr std::uint32_t kSoonNs = 3000;
  static constexpr std::uint8_t kTimes = 2;  // One after the other.

  struct Habit {
    bool waits_at_once = false;
    bool is_steady = false;  // And has done so many times in a row.
    bool is_open = false;    // It has started something, and not waited since.
  };

  /// Of the caller with this number, any but 0, or its identity.
  [[nodiscard]] Habit of(std::uintptr_t caller) const noexcept {
    const Word word = place(caller).load(std::memory_order_relaxed);
    if (word.tag != tag_of(caller)) {
      return {};
    }
    return {word.times >= kTimes, word.times == kTimesSteady, word.is_open};
  }
  /// It has started something that it may wait for, or not.
  void started(std::uintptr_t caller, std::uint64_t now_ns) noexcept {
    std::atomic<Word>& its = place(caller);
    Word word = its.load(std::memory_order_relaxed);
    word.times = word.tag == tag_of(caller) ? word.times : std::uint8_t{0};
    word.tag = tag_of(caller);
    word.left_ns = static_cast<std::uint32_t>(now_ns);
    word.is_open = true;
    its.store(word, std::memory_order_relaxed);
  }
  /// It begins to wait, for whatever, with nothing else to run on its processor (`is_alone`).
  void waits(std::uintptr_t caller, bool is_alone, std::uint64_t now_ns) noexcept {
    std::atomic<Word>& its = place(caller);
    Word word = its.load(std::memory_order_relaxed);
    if (word.tag != tag_of(caller) || !word.is_open) {
      return;
    }
    const bool is_soon = static_cast<std::uint32_t>(now_ns) - word.left_ns <= kSoonNs && is_alone;
    word.times = is_soon ? std::min<std::uint8_t>(word.times + 1, kTimesSteady) : 0;
    word.is_open = false;
    its.store(word, std::memory_order_relaxed);
  }

 private:
  struct Word {
    std::uint32_t left_ns;  // Mod 2^32.
    std::uint16_t tag;
    std::uint8_t times;  // That it waited at once, one after the other.
    bool is_open;
  };
  static_assert(std::atomic<Word>::is_always_lock_free);
  static constexpr std::uint8_t kTimesSteady = 16;
  static constexpr std::size_t kWords = 256;

  static std::uint16_t tag_of(std::uintptr_t caller) noexcept {
    return static_cast<std::uint16_t>(mix64(caller) | 1);
  }
  [[nodiscard]] const std::atomic<Word>& place(std::uintptr_t caller) const noexcept {
    return words_[mix64(caller) >> 32 & (kWords - 1)];
  }
  [[nodiscard]] std::atomic<Word>& place(std::uintptr_t caller) noexcept {
    return words_[mix64(caller) >> 32 & (kWords - 1)];
  }

  alignas(kCacheLineBytes) std::array<std::atomic<Word>, kWords> words_{};
};

}  // namespace sterna::progress
