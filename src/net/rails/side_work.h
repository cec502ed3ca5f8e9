// A piece of work that a thread offers to the workers without work while it does another one, and
// takes back if none has begun it: pieces of a message that leave by several rails (paper 004
// §4.2).
#pragma once

#include <atomic>

namespace sterna::net {

/// One offer at a time of all threads of a node. Who offers stays with its task until it is done,
/// or is its own again: so a task may lie on a stack, and read what its giver holds.
///
/// The slot has one task or none. It is taken out by one exchange: by a helper, who does it, or by
/// the giver, who then does it itself. tests: side_work_model_test.cc.
class SideWork {
 public:
  struct Task {
    void (*run)(void* object) noexcept;
    void* object;
    std::atomic<bool> is_done{false};
  };

  /// False: another thread's task lies there. Any thread.
  [[nodiscard]] bool offer(Task& task) noexcept {
    Task* none = nullptr;
    // A: releases what the task is to read. Relaxed if it fails: nothing is read.
    return offered_.compare_exchange_strong(none, &task, std::memory_order_release,
                                            std::memory_order_relaxed);
  }
  /// By who has offered it. True: nobody has begun it, and nobody will.
  [[nodiscard]] bool take_back(Task& task) noexcept {
    Task* mine = &task;
    return offered_.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed);
  }
  /// The same, after take_back() was false. All that the task wrote is seen then.
  [[nodiscard]] static bool is_done(const Task& task) noexcept {
    return task.is_done.load(std::memory_order_acquire);  // Pairs with B.
  }

  /// Does what is offered, if anything is. True: it did. Any thread.
  bool help() noexcept {
    if (offered_.load(std::memory_order_relaxed) == nullptr) {  // A hint: it is offered again.
      return false;
    }
    Task* const task = offered_.exchange(nullptr, std::memory_order_acquire);  // Pairs with A.
    if (task == nullptr) {
      return false;
    }
    task->run(task->object);
    task->is_done.store(true, std::memory_order_release);  // B. From here on it is the giver's.
    return true;
  }

 private:
  std::atomic<Task*> offered_{nullptr};
};

}  // namespace sterna::net
