// Those who wait at one synchronisation object: a first-in first-out list whose links lie on their
// stacks.
#pragma once

#include <cstdint>

#include "base/annotate.h"
#include "base/function_ref.h"
#include "base/spin_lock.h"
#include "threads/waiter.h"

namespace sterna::threads {

/// Guarded by the lock of the object it belongs to, all of it.
struct WaitNode {
  WaitNode* previous = nullptr;
  WaitNode* next = nullptr;
  Waiter waiter;
  KernelWaiter kernel;  // When the waiter is a kernel thread.
  bool is_linked = false;
  bool is_granted = false;    // What it waited for was handed to it when it was taken off the list.
  bool is_impatient = false;  // Joins at the front: it has waited before.
};

class WaitList {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  /// With its waiter: constant from here on.
  void push_back(WaitNode& node) noexcept;
  void push_front(WaitNode& node) noexcept;
  void erase(WaitNode& node) noexcept;
  /// Null when empty.
  WaitNode* pop_front() noexcept;
  /// The waiter of pop_front(), none when empty. The node of one that is suspended may keep
  /// saying that it is linked: nobody may ask that, nor list it again.
  Waiter pop_waiter() noexcept;
  /// Takes all: a chain by `next`, in order.
  WaitNode* take_all() noexcept;

 private:
  // Bit 0 of `tail_` says that there is one node, and the rest is its waiter: whoever takes that
  // one off to wake it needs no line of its stack, which another processor has.
  static constexpr std::uintptr_t kLone = 1;

  [[nodiscard]] WaitNode* last() const noexcept;
  void set_last(WaitNode* node) noexcept;

  WaitNode* head_ = nullptr;
  std::uintptr_t tail_ = 0;  // 0: empty. kLone and the waiter, or the last node.
};

/// The slow way into every object of sync/: takes `lock` and asks `must_wait()`; on false it ends
/// (signalled). Else the node joins the end of `list` (or the front), `lock` is given back, and the
/// caller, user thread or kernel thread, waits until somebody takes the node off and signals it.
/// timed_out, or cancelled (`is_cancel_point` only; the caller then ends the thread): the node is
/// off the list, nobody will touch it. Switches.
Wake wait_in(WaitList& list, SpinLock& lock, WaitNode& node, FunctionRef<bool()> must_wait,
             std::uint64_t deadline_ns = kNever, bool is_cancel_point = false) noexcept;

/// Signals a chain of take_all(); reads each link before its signal.
void signal_chain(WaitNode* first) noexcept;

}  // namespace sterna::threads
