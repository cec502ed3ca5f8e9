// The list of waiters, and the one way into it for user and kernel threads.
#include "threads/sync/wait_list.h"

#include "base/check.h"
#include "threads/scheduler.h"

namespace sterna::threads {

WaitNode* WaitList::last() const noexcept {
  return (tail_ & kLone) != 0 ? head_ : reinterpret_cast<WaitNode*>(tail_);
}

void WaitList::set_last(WaitNode* node) noexcept {
  tail_ = node != nullptr && node == head_ ? node->waiter.bits() | kLone
                                           : reinterpret_cast<std::uintptr_t>(node);
}

void WaitList::push_back(WaitNode& node) noexcept {
  check(!node.is_linked, "a waiter is in one list at a time");
  node.is_linked = true;
  node.previous = last();
  node.next = nullptr;
  (node.previous == nullptr ? head_ : node.previous->next) = &node;
  set_last(&node);
}

void WaitList::push_front(WaitNode& node) noexcept {
  check(!node.is_linked, "a waiter is in one list at a time");
  WaitNode* const former_last = last();
  node.is_linked = true;
  node.previous = nullptr;
  node.next = head_;
  if (head_ != nullptr) {
    head_->previous = &node;
  }
  head_ = &node;
  set_last(former_last != nullptr ? former_last : &node);
}

void WaitList::erase(WaitNode& node) noexcept {
  check(node.is_linked, "a waiter is erased from the list that holds it");
  WaitNode* const new_last = node.next == nullptr ? node.previous : last();
  node.is_linked = false;
  (node.previous == nullptr ? head_ : node.previous->next) = node.next;
  if (node.next != nullptr) {
    node.next->previous = node.previous;
  }
  set_last(new_last);
}

WaitNode* WaitList::pop_front() noexcept {
  WaitNode* const first = head_;
  if (first != nullptr) {
    erase(*first);
  }
  return first;
}

Waiter WaitList::pop_waiter() noexcept {
  const Waiter lone = Waiter::from_bits(tail_ & ~kLone);
  if ((tail_ & kLone) != 0 && lone.suspended_thread() != nullptr) {
    head_ = nullptr;
    tail_ = 0;
    return lone;
  }
  const WaitNode* const first = pop_front();
  return first != nullptr ? first->waiter : Waiter{};
}

WaitNode* WaitList::take_all() noexcept {
  WaitNode* const first = head_;
  for (WaitNode* node = first; node != nullptr; node = node->next) {
    node->is_linked = false;
  }
  head_ = nullptr;
  tail_ = 0;
  return first;
}

namespace {

bool publish(WaitList& list, SpinLock& lock, WaitNode& node,
             FunctionRef<bool()> must_wait) noexcept {
  const SpinGuard guard{lock};
  if (!must_wait()) {
    return false;
  }
  if (node.is_impatient) {
    list.push_front(node);
  } else {
    list.push_back(node);
  }
  return true;
}

Wake await_node(WaitNode& node, const WaitOptions& options) noexcept {
  return node.waiter.thread() != nullptr ? await_signal(options)
                                         : await_signal(node.kernel, options);
}

}  // namespace

Wake wait_in(WaitList& list, SpinLock& lock, WaitNode& node, FunctionRef<bool()> must_wait,
             std::uint64_t deadline_ns, bool is_cancel_point) noexcept {
  Thread* const me = self();
  if (me != nullptr && deadline_ns == kNever && !(is_cancel_point && me->is_cancellable)) {
    // The short way: who takes the node off the list makes the thread runnable, no word between.
    node.waiter = Waiter::suspended(*me);
    (void)suspend(*me, [&]() noexcept { return publish(list, lock, node, must_wait); });
    return Wake::signalled;
  }
  node.waiter = me != nullptr ? Waiter{*me} : Waiter{node.kernel};
  if (!publish(list, lock, node, must_wait)) {
    return Wake::signalled;
  }
  const Wake wake =
      await_node(node, {.deadline_ns = deadline_ns, .is_cancellable = is_cancel_point});
  if (wake == Wake::signalled) {
    return wake;
  }
  {
    const SpinGuard guard{lock};
    if (node.is_linked) {
      list.erase(node);
      return wake;
    }
  }
  return await_node(node, {});  // Somebody has taken the node, and signals it.
}

void signal_chain(WaitNode* first) noexcept {
  Thread* chain = nullptr;
  Thread** link = &chain;
  while (first != nullptr) {
    WaitNode* const next = first->next;
    if (Thread* const thread = first->waiter.suspended_thread(); thread != nullptr) {
      // Ours since its node is off the list, and so is its link.
      *link = thread;
      link = &thread->next;
    } else {
      first->waiter.signal();
    }
    first = next;
  }
  *link = nullptr;
  if (chain != nullptr) {
    make_chain_runnable(chain);
  }
}

}  // namespace sterna::threads
