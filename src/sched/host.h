// Who runs the threads of the engine: a team of workers (scheduler.h), or virtual ones
// (simulator.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/trace.h"
#include "sched/entity.h"

namespace sterna::sched {

/// A thread as its host sees it.
struct ThreadLook {
  std::uint64_t id = 0;      // Its number; 0: it has not started.
  std::uint64_t cpu_ns = 0;  // Processor time: a count of which two looks make a rate.
};

/// What the engine asks of whoever runs its threads. No call may switch or call the engine back.
class Host {
 public:
  /// Something is ready for one of the workers [first, first + count).
  virtual void wake(std::uint32_t first, std::uint32_t count) noexcept = 0;
  /// The thread that runs there should leave soon: it is wanted elsewhere, or another one is more
  /// urgent. A hint.
  virtual void preempt(std::uint32_t worker) noexcept = 0;
  [[nodiscard]] virtual bool is_running(const Entity& thread) const noexcept = 0;
  /// For a host that keeps threads (Engine::keep): that one is wanted elsewhere, and is to come to
  /// ready() when it would run next. From then on it is not kept.
  virtual void recall(Entity&) noexcept {}
  /// For a host whose threads plant seeds: those may wait where no policy sees them, or may no
  /// longer. With the lock of the engine held.
  virtual void allow_seeds(bool) noexcept {}
  /// A kept thread is not blocked: it runs or waits for its processor.
  [[nodiscard]] virtual bool is_kept_ready(const Entity&) const noexcept { return false; }
  /// It is ready, does not run, and no queue of the host's own that somebody serves has it: unless
  /// one of the engine's does, it is lost. A hint.
  [[nodiscard]] virtual bool is_unserved(const Entity&) const noexcept { return false; }
  /// What records of a trace are about, for that thread; trace::kNobody: none.
  [[nodiscard]] virtual std::uint64_t trace_key(const Entity&) const noexcept {
    return trace::kNobody;
  }
  /// Its bubbles are those of a program, which a trace tells of.
  [[nodiscard]] virtual bool has_traced_bubbles() const noexcept { return true; }
  /// The name of a thread, for people; empty: it has none.
  [[nodiscard]] virtual std::string name_of(const Entity&) const { return {}; }
  /// The memory of that entity should come to the memory node. A hint; not at once.
  virtual void move_memory(Entity& entity, std::uint32_t node) noexcept = 0;
  /// It runs a thread, of the engine or not: a hint.
  [[nodiscard]] virtual bool is_busy(std::uint32_t worker) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t now_ns() const noexcept = 0;
  /// What list() tells of a thread beside what the engine knows. One caller at a time.
  [[nodiscard]] virtual ThreadLook look_at(const Entity&) const noexcept { return {}; }

 protected:
  ~Host() = default;
};

}  // namespace sterna::sched
