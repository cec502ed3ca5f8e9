// What the handle of a bubble of a C program points to: bubble.cc builds it, bubble_run.cc runs it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <sterna/bubble.h>

#include "base/spin_lock.h"
#include "runtime/capi/program.h"
#include "threads/sync/barrier.h"

namespace sterna::runtime::capi {

/// A thread of a bubble, to come or running. Its entity is removed when the thread ends.
struct Member {
  sched::Entity entity;
  std::string name;
  std::size_t stack_bytes = 0;
  bool is_preemptible = true;
  sterna_thread_function function = nullptr;
  void* argument = nullptr;
  sterna_bubble* bubble = nullptr;
  // Null: not started yet, or joined. Release by who starts it, acquire by who joins: what the
  // thread's object holds is seen. Who finds null here joins the one that starts it, and looks
  // again.
  std::atomic<threads::Thread*> thread{nullptr};
  // Of the thread: runs last of its cleanups, which may outlive the frame of its function.
  threads::Cleanup leaving;
};

}  // namespace sterna::runtime::capi

/// Before it is submitted: of the program, which builds it from one thread at a time. Afterwards
/// any of its threads may add to it, and one thread joins it.
struct sterna_bubble {
  sterna_bubble() = default;
  ~sterna_bubble() {
    if (sterna::runtime::capi::Program* const its = sterna::runtime::capi::program()) {
      its->scheduler->forget_memory(bubble);
    }
  }
  sterna_bubble(const sterna_bubble&) = delete;
  sterna_bubble& operator=(const sterna_bubble&) = delete;

  sterna::sched::Bubble bubble;
  sterna::SpinLock lock;  // Guard of the next five once it runs.
  std::vector<std::unique_ptr<sterna::runtime::capi::Member>> members;  // Only grows.
  std::vector<std::unique_ptr<sterna_bubble>> children;                 // The same.
  std::uint32_t running = 0;  // Threads of its own that have not ended.
  bool is_submitted = false;
  bool is_joined = false;  // Or somebody is joining it.
  sterna_bubble* holder = nullptr;
  sterna::threads::Barrier barrier{1};  // Of those that run; a place is kept when nobody does.
};

namespace sterna::runtime::capi {

/// All threads of the bubble and of those in it.
void list_all(const sterna_bubble& bubble, std::vector<Member*>& members);
/// Into the tree: the bubble with all it holds.
void insert_all(sched::Engine& engine, sched::Bubble& holder, sterna_bubble& bubble) noexcept;
/// Their entities are in the tree. The first failure; the others run.
sterna_status start_all(Program& program, const std::vector<Member*>& members) noexcept;

}  // namespace sterna::runtime::capi
