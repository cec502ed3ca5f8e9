// Small functions that are polled with the network: when a worker is idle, at switches, at ticks of
// a team that computes, when somebody asks; for ever, or once. After the polling tasks of PIOMan
// (Trahay, Brunet, Denis, "An analysis of the impact of multi-threading on communication
// performance", 2009, 4.1: "ltasks").
//
// The list is guarded by lock_, which is not held while a function is called: it may add and remove
// tasks, also itself. One poller at a time goes along the list (the poller's turn of Progress), so
// one place in it is enough; who takes a task out moves that place on. What is added meanwhile
// waits for the next round, as each task knows in which round it was added: two that add each
// other, or themselves, would else never let a round end.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/spin_lock.h"
#include "progress/progress.h"
#include "progress/source.h"

namespace sterna::threads {
class TeamState;
}

namespace sterna::progress {

struct PollTask {
  // Returns how many events it has handled. As Source::poll(): it must not switch or block.
  std::uint32_t (*function)(void*) = nullptr;
  void* argument = nullptr;
  std::uint32_t points = 0;  // Bits, by number of threads::SchedulingPoint.
  // Only workers of this range call it, as those of a place of the machine; at ticks, which are no
  // worker's, whoever ticks.
  std::uint32_t worker_first = 0;
  std::uint32_t worker_end = kAllWorkers;
  bool is_repeated = true;  // False: it is called once, then it is out.
  // Of tasks that are due at once those of a higher one are called first.
  std::int8_t priority = 0;
  // Workers that sleep get up so often to poll it; 0: they need not.
  std::uint64_t period_ns = 0;

  static constexpr std::uint32_t kAllWorkers = ~0U;

  bool is_masked = false;  // It is passed over. Guard of these: PollTasks::lock_.
  bool is_in_list = false;
  std::uint64_t added_in = 0;  // PollTasks::round_ at that time.
  PollTask* next = nullptr;
  PollTask* previous = nullptr;
};

[[nodiscard]] constexpr std::uint32_t bit_of(threads::SchedulingPoint point) noexcept {
  return 1U << static_cast<unsigned>(point);
}

class PollTasks final : public Source {
 public:
  /// Makes the call of a task, for who has to know of it: returns function(argument).
  using Around = std::uint32_t (*)(void* context, std::uint32_t (*function)(void*), void* argument);

  /// Polled by `progress` from the first task on, until it is destroyed. `around` null: calls are
  /// plain.
  static Result<std::unique_ptr<PollTasks>> open(Progress& progress, Around around = nullptr,
                                                 void* context = nullptr) noexcept;
  /// What is in it is out then.
  ~PollTasks();
  PollTasks(const PollTasks&) = delete;
  PollTasks& operator=(const PollTasks&) = delete;

  /// False: it is in already. From anywhere, also from a function of a task.
  bool add(PollTask& task) noexcept;
  /// No call begins after it and none is under way, unless that is the caller. False: it was not
  /// in. Switches, while there is a call to wait for.
  bool remove(PollTask& task) noexcept;
  /// It stays in, but is not called before unmask(): no call begins after it and none is under way,
  /// unless that is the caller. Any number of times; also before it is added. Switches as
  /// remove().
  void mask(PollTask& task) noexcept;
  void unmask(PollTask& task) noexcept;
  /// It is to be called: added, and neither removed nor, if it is called once, called.
  [[nodiscard]] bool is_in(const PollTask& task) noexcept;

  std::uint32_t poll() noexcept override;
  [[nodiscard]] std::uint64_t next_deadline_ns() noexcept override;

 private:
  PollTasks(Progress& progress, Around around, void* context) noexcept
      : progress_{progress}, around_{around}, context_{context} {}
  void link(PollTask& task) noexcept;
  void unlink(PollTask& task) noexcept;
  PollTask* next_due(std::uint32_t point, std::uint32_t worker) noexcept;
  void wake_place(threads::TeamState& team) noexcept;
  [[nodiscard]] bool is_called_elsewhere(const PollTask& task) const noexcept;

  Progress& progress_;
  const Around around_;
  void* const context_;
  std::atomic<bool> is_polled_{false};  // Set by who adds the first task, and then a source.
  // Relaxed: without it each round of the network would take the lock. Who adds wakes a sleeper
  // afterwards; others see it a round later.
  std::atomic<std::uint32_t> count_{0};
  SpinLock lock_;
  PollTask* first_ = nullptr;  // Guard of all below: lock_. Descends by priorities.
  PollTask* last_ = nullptr;
  std::uint64_t round_ = 0;     // The round that is under way, or was the last.
  PollTask* cursor_ = nullptr;  // The next one of the round that is under way.
  PollTask* called_ = nullptr;  // Null: none.
  std::uintptr_t caller_ = 0;   // The kernel thread that calls it.
  // The poller only: a place whose workers should have called a task in this round, that of the
  // shortest period, and when they are woken for one again.
  std::uint32_t missed_first_ = 0;
  std::uint32_t missed_end_ = 0;
  std::uint64_t missed_period_ns_ = 0;
  std::uint64_t wake_at_ns_ = 0;
};

}  // namespace sterna::progress
