// See kept.h.
#include "threads/queues/kept.h"

#include <algorithm>

#include "threads/flags.h"
#include "threads/preemption/preempt.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

constexpr std::uint32_t kKeptFlags = ThreadFlag::kept | ThreadFlag::bound;
constexpr std::uint32_t kExposedMax = 256;  // Bounds the time in a foreign lock.

/// From kept to managed; the thread is the caller's.
void unmark(Thread& thread) noexcept {
  Worker& worker = *thread.worker.load(std::memory_order_relaxed);
  worker.kept_count.fetch_sub(1, std::memory_order_relaxed);
  set_flags(thread, (thread.flags & ~kKeptFlags) | ThreadFlag::managed);
}

Dispatch& dispatch_of(const Thread& thread) noexcept {
  return *thread.team->state()->options.dispatch;
}

}  // namespace

bool can_keep(const Thread& thread) noexcept {
  // Acquire: its registers are saved (C of scheduler.cc).
  return (thread.flags & ThreadFlag::bound) == 0 &&
         thread.on_processor.load(std::memory_order_acquire) == 0;
}

void mark_kept(Thread& thread, Worker& worker) noexcept {
  worker.kept_count.fetch_add(1, std::memory_order_relaxed);
  thread.worker_first = worker.index;
  thread.worker_count = 1;
  set_flags(thread, (thread.flags & ~ThreadFlag::managed) | kKeptFlags);
  thread.worker.store(&worker, std::memory_order_relaxed);
}

void keep(Team& team, Thread& thread, std::uint32_t worker) noexcept {
  Worker& home = *team.state()->workers[worker];
  mark_kept(thread, home);
  // Always by way of the inbox: the caller may be inside the section of that queue.
  send_home(home, thread);
}

void recall(Thread& thread) noexcept {
  change_hold(thread, [](Hold word) { return word | Hold::recalled; });
}

void give_back(Thread& thread) noexcept {
  Worker* const home = thread.worker.load(std::memory_order_relaxed);
  change_hold(thread, [](Hold word) { return without(word, Hold::recalled); });
  if ((thread.flags & ThreadFlag::kept) != 0) {
    // It may be the one that leaves its processor in this very section: whoever takes it from
    // Dispatch waits until the switch is over.
    if (home->current.load(std::memory_order_relaxed) == &thread) {
      thread.on_processor.store(1, std::memory_order_relaxed);
    }
    unmark(thread);
  }
  dispatch_of(thread).ready(thread, home);
}

void expose(Thread& thread) noexcept {
  unmark(thread);
  dispatch_of(thread).expose(thread);
}

bool is_running(const Thread& thread) noexcept {
  const Worker* const worker = thread.worker.load(std::memory_order_relaxed);
  // Acquire: what it did before it left the processor is seen (released by the lock it held).
  return (worker != nullptr && worker->current.load(std::memory_order_acquire) == &thread) ||
         thread.is_taken.load(std::memory_order_acquire);
}

bool is_ready(const Thread& thread) noexcept {
  return thread.activity.load(std::memory_order_relaxed) == Activity::ready;
}

bool is_unserved(const Thread& thread, bool is_kept) noexcept {
  const Worker* const home = thread.worker.load(std::memory_order_relaxed);
  return is_ready(thread) &&
         !has(thread.hold.load(std::memory_order_relaxed), Hold::wanted | Hold::held) &&
         (!is_kept || (home != nullptr && home->queue.count() == 0 && home->inbox.looks_empty()));
}

void ask_to_leave(Team& team, std::uint32_t worker) noexcept {
  if (Preemptor* const preemptor = team.state()->preemptor.get(); preemptor != nullptr) {
    preemptor->ask(worker);
  }
}

void end_placed(TeamState& team, Thread& thread) noexcept {
  if ((thread.flags & ThreadFlag::kept) != 0) {
    thread.worker.load(std::memory_order_relaxed)
        ->kept_count.fetch_sub(1, std::memory_order_relaxed);
  }
  team.options.dispatch->ended(thread);
}

std::uint32_t Worker::expose_kept(Worker& victim) noexcept {
  if (!victim.lock.try_lock_from_outside()) {
    return 0;
  }
  victim.inbox.drain_to(victim.queue);
  const std::uint32_t present = std::min(victim.queue.count(), kExposedMax);
  Thread* exposed = nullptr;
  Thread** exposed_end = &exposed;
  std::uint32_t count = 0;
  // The others return at the end only: the most urgent one would be found again and again.
  Thread* others = nullptr;
  Thread** others_end = &others;
  for (std::uint32_t i = 0; i < present; ++i) {
    Thread* const thread = victim.queue.pop_front();
    if (thread == nullptr) {
      break;  // The rest was held, or recalled.
    }
    const bool is_kept = (thread->flags & ThreadFlag::kept) != 0;
    count += is_kept ? 1 : 0;
    Thread**& end = is_kept ? exposed_end : others_end;
    thread->next = nullptr;
    *end = thread;
    end = &thread->next;
  }
  while (others != nullptr) {
    Thread* const next = others->next;
    victim.queue.push_back(*others);
    others = next;
  }
  victim.lock.unlock_from_outside();
  while (exposed != nullptr) {
    Thread* const next = exposed->next;
    unmark(*exposed);
    team.options.dispatch->expose(*exposed);
    exposed = next;
  }
  return count;
}

}  // namespace sterna::threads
