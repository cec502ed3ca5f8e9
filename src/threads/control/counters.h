// Counters of the processor, by user thread: perf_event_open(2).
//
// The kernel counts by kernel thread. Each carrier has one file per kind of event that anybody
// wanted on it, opened at the first turn of a thread that counts there and open until the carrier
// ends: as many files as carriers times events, however many threads count. A thread that counts
// notes the value when it goes on and adds the difference when it leaves (switch_hook.h).
//
// By read(2), not by the instruction rdpmc: software events have none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "threads/control/switch_hook.h"
#include "threads/thread.h"

namespace sterna::threads {

enum class Event : std::uint8_t {
  instructions,
  cycles,
  cache_references,
  cache_misses,
  branches,
  branch_misses,
  task_clock,
  page_faults,
};
inline constexpr std::size_t kEventCount = 8;

/// The files of one kernel thread: 0 not opened, else the number + 1; -1: was refused. Only the
/// kernel thread itself uses them.
class EventFiles {
 public:
  EventFiles() = default;
  ~EventFiles() { close_all(); }
  EventFiles(const EventFiles&) = delete;
  EventFiles& operator=(const EventFiles&) = delete;

  /// The value of the free-running counter of the calling kernel thread. False: it cannot be had.
  /// System calls only, and no errno.
  [[nodiscard]] bool read(Event event, std::uint64_t& value) noexcept;
  void close_all() noexcept;

 private:
  std::array<int, kEventCount> files_{};
};

/// Whether such an event can be counted here at all, by a try; else why not and what to do.
[[nodiscard]] Result<> try_event(Event event) noexcept;

/// Lies in memory of the caller until it is stopped or its thread has ended.
class CounterSet {
 public:
  /// Different events.
  explicit CounterSet(std::span<const Event> events) noexcept;
  CounterSet(const CounterSet&) = delete;
  CounterSet& operator=(const CounterSet&) = delete;

  /// The current user thread is counted from now on. It is not, by this set.
  void start() noexcept;
  /// By the thread that is counted.
  void stop() noexcept;
  /// As many as events. By the thread that is counted: as of now. False: turns are missing.
  bool read(std::uint64_t* values) noexcept;
  /// By the thread that is counted, or while nobody is.
  void reset() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Whom it counts, or null; a thread that has ended is not forgotten.
  [[nodiscard]] const Thread* counted() const noexcept {
    return counted_.load(std::memory_order_acquire);
  }

 private:
  struct Counter {
    Event event{};
    bool is_open = false;     // `begin` is that of the present turn.
    std::uint64_t begin = 0;  // Of the thread that is counted.
    // Written by it; relaxed: what others read is of some moment.
    std::atomic<std::uint64_t> sum{0};
  };

  void begin_turn() noexcept;
  void end_turn() noexcept;

  std::array<Counter, kEventCount> counters_;
  std::size_t count_ = 0;
  SwitchHook hook_;
  std::atomic<const Thread*> counted_{nullptr};
  std::atomic<bool> is_incomplete_{false};
};

}  // namespace sterna::threads
