// Waiting until a word of the program changes, as with the kernel's futex, for user threads and
// kernel threads alike: the waiters hang on an object of the caller, not in a global table.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/sync/wait_list.h"

namespace sterna::threads {

class WordWait {
 public:
  constexpr WordWait() noexcept = default;
  WordWait(const WordWait&) = delete;
  WordWait& operator=(const WordWait&) = delete;

  /// Waits while (word & mask) == value, until wake(); `has_waited` is false when it was different
  /// at once. Who changes the word and then calls wake() misses nobody. signalled, or timed_out. A
  /// cancellation point. Switches.
  Wake wait(const std::atomic<std::uint64_t>& word, std::uint64_t mask, std::uint64_t value,
            std::uint64_t deadline_ns, bool& has_waited) noexcept;

  /// Wakes up to `count`, those who wait longest; returns how many. Does not switch.
  std::uint32_t wake(std::uint32_t count) noexcept;

 private:
  SpinLock lock_;
  WaitList waiters_;  // Guard: lock_.
};

}  // namespace sterna::threads
