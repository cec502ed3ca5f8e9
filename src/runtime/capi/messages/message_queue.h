// Queues of requests that have ended, in memory of the program.
#pragma once

#include <sterna/message.h>

#include "base/annotate.h"
#include "base/spin_lock.h"
#include "progress/completion.h"

namespace sterna::runtime::capi {

struct MessageRequest;

/// Who waits at a queue; on its stack.
struct QueueWaiter {
  progress::Completion done;          // `request` is there.
  MessageRequest* request = nullptr;  // Guard, as of the links: the lock of the queue.
  QueueWaiter* next = nullptr;
};

/// Valid when it is all zero. The lock is taken inside that of a rank (docs/rules/locking.md).
struct MessageQueue {
  SpinLock lock;
  MessageRequest* first STERNA_GUARDED_BY(lock) = nullptr;  // Ended, the oldest one first.
  MessageRequest* last STERNA_GUARDED_BY(lock) = nullptr;
  // Nobody waits while there are requests: who comes takes one, who ends gives it to a waiter.
  QueueWaiter* waiter_first STERNA_GUARDED_BY(lock) = nullptr;
  QueueWaiter* waiter_last STERNA_GUARDED_BY(lock) = nullptr;
};
static_assert(sizeof(MessageQueue) <= sizeof(sterna_message_queue) &&
              alignof(MessageQueue) <= alignof(sterna_message_queue));

/// The request has ended. Any thread, also inside the lock of a rank. When it returns both may be
/// gone.
void add_ended(MessageQueue& queue, MessageRequest& request) noexcept;

}  // namespace sterna::runtime::capi
