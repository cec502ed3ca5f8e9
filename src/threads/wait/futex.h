// Sleeping of kernel threads on a word.
#pragma once

#include <atomic>
#include <cstdint>

namespace sterna::threads {

/// Sleeps while `word` is `expected`, until futex_wake() or the deadline (monotonic clock; kNever:
/// none). May return without a reason.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::uint64_t deadline_ns) noexcept;

/// `word` may be gone already: its address counts, not what is there.
void futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept;

}  // namespace sterna::threads
