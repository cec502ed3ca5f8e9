// Those who wait at one synchronisation object: a first-in first-out list whose links lie on their
// stacks.
#pragma once

#include <cstdint>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "threads/waiter.h"

namespace sterna::threads {

/// Guarded by the lock of the object it belongs to, all of it.
struct WaitNode {
  WaitNode* previous = nullptr;
  WaitNode* next = nullptr;
  Waiter waiter;
  KernelWaiter kernel;       // When the waiter is a kernel thread.
  bool is_linked = false;
  bool is_granted = false;   // What it waited for was handed to it when it was taken off the list.
  std::uint32_t kind = 0;    // For the object: reader or writer.
};

class WaitList {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] WaitNode* front() const noexcept { return head_; }
  void push_back(WaitNode& node) noexcept;
  void push_front(WaitNode& node) noexcept;
  void erase(WaitNode& node) noexcept;
  /// Null when empty.
  WaitNode* pop_front() noexcept;
  /// Takes all: a chain by `next`, in order.
  WaitNode* take_all() noexcept;

 private:
  WaitNode* head_ = nullptr;
  WaitNode* tail_ = nullptr;
};

/// Fills in node.waiter for the caller, user thread or kernel thread.
void init_wait(WaitNode& node) noexcept;

/// Waits for the signal of `node`, which is in `list`; `lock` is free. On timed_out the node is off
/// the list; if it was taken off before, its signal has been awaited and the answer is signalled.
/// Switches.
Wake wait_on(WaitNode& node, WaitList& list, SpinLock& lock,
             std::uint64_t deadline_ns = kNever) noexcept;

/// Signals a chain of take_all(); reads each link before its signal.
void signal_chain(WaitNode* first) noexcept;

}  // namespace sterna::threads
