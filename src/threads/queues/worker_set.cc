// See worker_set.h.
#include "threads/queues/worker_set.h"

#include <algorithm>
#include <new>
#include <string>

#include "threads/flags.h"
#include "threads/queues/kept.h"
#include "threads/queues/lock_of.h"

namespace sterna::threads {
namespace {

/// What is wrong with a set; null: nothing.
Result<> check_set(const TeamState& team, const WorkerSet& set) {
  const auto count = static_cast<std::uint32_t>(team.workers.size());
  bool has_one = false;
  bool has_enabled = false;
  for (std::uint32_t worker = 0; worker < kWorkerWords * 64; ++worker) {
    if (!set.has(worker)) {
      continue;
    }
    if (worker >= count) {
      return Error{Errc::invalid_argument, "worker " + std::to_string(worker) +
                                               " is in the set, but there are " +
                                               std::to_string(count) + ", counted from 0"};
    }
    has_one = true;
    has_enabled = has_enabled || !team.workers[worker]->is_disabled.load(std::memory_order_relaxed);
  }
  if (!has_one) {
    return Error{
        Errc::invalid_argument,
        "a thread needs a worker to run on: the set is empty (to stop a thread, freeze it)"};
  }
  if (!has_enabled) {
    return Error{Errc::refused, "all workers of the set are disabled: enable one, or name another"};
  }
  return Done{};
}

/// The team's own copy; null: no memory.
const WorkerSet* intern(TeamState& team, const WorkerSet::Words& words) noexcept {
  const SpinGuard guard{team.sets_lock};
  for (const auto& set : team.sets) {
    if (set->words() == words) {
      return set.get();
    }
  }
  try {
    return team.sets.emplace_back(std::make_unique<const WorkerSet>(words)).get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// If it waits in the queue of its home: it is where it may run at once.
void move_waiting(Thread& thread) noexcept {
  Worker* const home = thread.worker.load(std::memory_order_relaxed);
  if (home == nullptr || thread.activity.load(std::memory_order_relaxed) != Activity::ready ||
      is_running(thread)) {
    return;
  }
  bool must_go = false;
  with_lock_of(*home, [&]() noexcept {
    home->inbox.drain_to(home->queue);
    if (home->queue.remove(thread)) {
      must_go = !apply_restriction(thread);
      if (!must_go) {
        home->queue.push_back(thread);
      }
    }
  });
  if (must_go) {
    pass_on(thread);
  }
}

}  // namespace

Worker* enabled_worker_for(TeamState& team, const Thread& thread) noexcept {
  const auto count = static_cast<std::uint32_t>(team.workers.size());
  const std::uint32_t turn = team.next_worker.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Worker& worker = *team.workers[(turn + i) % count];
    if (!worker.is_disabled.load(std::memory_order_relaxed) && may_run_on(thread, worker.index)) {
      return &worker;
    }
  }
  return nullptr;
}

bool apply_restriction(Thread& thread) noexcept {
  // Cleared first: an order that comes meanwhile sets it again.
  change_hold(thread, [](Hold word) { return without(word, Hold::restricted); });
  const WorkerSet* const set = thread.wanted_workers.load(std::memory_order_acquire);
  thread.workers.store(set, std::memory_order_release);  // For may_perhaps_run_on().
  constexpr std::uint32_t kTied = ThreadFlag::bound | ThreadFlag::assorted;
  set_flags(thread, (thread.flags & ~kTied) | (set != nullptr ? ThreadFlag::assorted : 0));
  return may_run_on(thread, thread.worker.load(std::memory_order_relaxed)->index);
}

bool is_leaving(const Thread& thread) noexcept {
  // Relaxed: changed in that section only.
  return thread.worker.load(std::memory_order_relaxed)->current.load(std::memory_order_relaxed) ==
         &thread;
}

void pass_on(Thread& thread) noexcept {
  TeamState& team = *thread.team->state();
  Worker* to = enabled_worker_for(team, thread);
  for (std::size_t i = 0; to == nullptr; ++i) {
    // All of them are disabled by now: as if it had been there then (disabled.cc).
    to = may_run_on(thread, team.workers[i]->index) ? team.workers[i].get() : nullptr;
  }
  // Relaxed: its next home; wakers learn of it by way of its next parking.
  thread.worker.store(to, std::memory_order_relaxed);
  send_home(*to, thread);
}

Result<> set_workers(Thread& thread, std::span<const std::uint64_t> words) noexcept {
  TeamState& team = *thread.team->state();
  const bool is_placed = (flags_of(thread) & ThreadFlag::placed) != 0;
  const WorkerSet* set = nullptr;
  if (!words.empty()) {
    WorkerSet::Words all{};
    if (words.size() > all.size()) {
      return Error{Errc::invalid_argument, "a set has 16 words at most, for 1024 workers"};
    }
    std::ranges::copy(words, all.begin());
    if (Result<> checked = check_set(team, WorkerSet{all}); !checked) {
      return checked;
    }
    set = is_placed ? nullptr : intern(team, all);
    if (set == nullptr && !is_placed) {
      return Errc::out_of_memory;
    }
  }
  if (is_placed) {
    return Error{Errc::unsupported, "it belongs to a bubble: its Dispatch says where it runs"};
  }
  thread.wanted_workers.store(set, std::memory_order_release);
  change_hold(thread, [](Hold word) { return word | Hold::restricted; });
  if (&thread != self()) {
    move_waiting(thread);
    return Done{};
  }
  do {
    yield();  // Out of the queue it comes where it may run.
  } while (has(thread.hold.load(std::memory_order_relaxed), Hold::restricted));
  return Done{};
}

WorkerSet::Words workers_of(const Thread& thread) noexcept {
  const WorkerSet* set = nullptr;
  const std::uint32_t flags = flags_of(thread);
  // Acquire: as above, of the order.
  if (has(thread.hold.load(std::memory_order_acquire), Hold::restricted) ||
      (flags & ThreadFlag::assorted) != 0) {
    set = thread.wanted_workers.load(std::memory_order_acquire);
  }
  if (set != nullptr) {
    return set->words();
  }
  WorkerSet::Words words{};
  const std::size_t count =
      std::min(thread.team->state()->workers.size(), kWorkerWords * std::size_t{64});
  const bool is_bound = (flags & ThreadFlag::bound) != 0 &&
                        !has(thread.hold.load(std::memory_order_relaxed), Hold::restricted);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!is_bound || i - thread.worker_first < thread.worker_count) {
      words[i / 64] |= std::uint64_t{1} << i % 64;
    }
  }
  return words;
}

}  // namespace sterna::threads
