// Who runs next? The interface through which sched/ steers threads that belong to an entity.
//
// Threads without an entity never come here: they live in the private queues of the workers, and
// cost nothing for bubbles; those that are kept (kept.h) live there for as long as plans want them
// on that worker. All calls run in the scheduler of a worker or in a waker, with no lock
// of threads/ held but, in next(), the private queue of `worker`; they must not switch, block or
// (but for add_sibling()) allocate.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/thread.h"

namespace sterna::threads {

/// Whether a worker would run a thread that is beside another one: not at all; if the policy gives
/// it to an idle one; where it is planned as things are.
enum class Reach : std::uint8_t { no, perhaps, here };

class Dispatch {
 public:
  /// The private queue and the inbox of `worker` are empty: a thread for it, or null. `leaving` is
  /// the thread with an entity that yields, for which less urgent ones are no reason to leave; null
  /// else. The caller waits until the thread has left its former processor.
  virtual Thread* next(Worker& worker, const Thread* leaving) noexcept = 0;

  /// `thread`, which has an entity, became runnable; `hint` is where it ran last, or null.
  /// Implementations queue it and call Team::wake_idle(), or keep() it: kept.h.
  virtual void ready(Thread& thread, Worker* hint) noexcept = 0;

  /// Time passes: asked now and then by workers that switch among private threads.
  virtual void poll() noexcept = 0;
  /// Whether poll() may do something, now or later.
  [[nodiscard]] virtual bool wants_polls() const noexcept { return true; }

  /// `thread`, which was kept, is yours again, because an idle worker looks for work: as ready(),
  /// but it is not kept.
  virtual void expose(Thread& thread) noexcept = 0;
  /// The idle worker has taken what it wanted: what is left of `worker`'s may be kept again.
  virtual void settle(Worker& worker) noexcept = 0;

  /// Thread::priority of `thread`, which has an entity, was set.
  virtual void priority_changed(Thread& thread) noexcept = 0;

  /// `thread` has ended and its context will not run again. Called before its joiner goes on.
  virtual void ended(Thread& thread) noexcept = 0;

  /// Whether next(worker) may find something: asked between "I will sleep" and the sleep. Must see
  /// every ready() whose wake_idle() came before.
  virtual bool has_work(const Worker& worker) const noexcept = 0;
  /// The highest priority that next(worker) may find; -1: has_work() is false. A hint.
  virtual int highest(const Worker& worker) const noexcept = 0;
  /// A worker would sleep, and has_work() is false: does a piece of what can wait. True: it did, so
  /// all is asked again. By workers alone, never by the ticker.
  virtual bool use_idleness() noexcept { return false; }

  /// Seeds of threads with an entity may wait in deques, where no policy sees them. Relaxed: a seed
  /// that comes while this changes is of either kind.
  [[nodiscard]] bool takes_seeds() const noexcept {
    return takes_seeds_.load(std::memory_order_relaxed);
  }
  /// Whether `worker` would run a thread beside `thread`, which has an entity and has not ended.
  /// From any worker, with the lock of a deque of seeds held.
  [[nodiscard]] virtual Reach reach(const Thread& thread, const Worker& worker) const noexcept {
    static_cast<void>(thread);
    static_cast<void>(worker);
    return Reach::no;
  }
  /// Wakes a worker that would run a thread beside `thread`, if one sleeps; with `several` of them,
  /// perhaps another one. As reach().
  virtual void wake_beside(const Thread& thread, bool several) noexcept {
    static_cast<void>(thread);
    static_cast<void>(several);
  }

  /// An entity for a thread that is to run beside `thread`, under the same rules; null: none is to
  /// be had. May allocate. `thread` has not ended.
  [[nodiscard]] virtual void* add_sibling(const Thread& thread) noexcept {
    static_cast<void>(thread);
    return nullptr;
  }
  /// `thread`, whose entity is from add_sibling(), runs for the first time: as ready(), but it is
  /// not kept.
  virtual void start_sibling(Thread& thread) noexcept { static_cast<void>(thread); }
  /// Its thread has ended, or could not be started.
  virtual void remove_sibling(void* entity) noexcept { static_cast<void>(entity); }

 protected:
  ~Dispatch() = default;

  std::atomic<bool> takes_seeds_{false};
};

}  // namespace sterna::threads
