// message.h: queues of requests that have ended.
#include "runtime/capi/messages/message_queue.h"

#include <algorithm>

#include "base/clock.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {

void add_ended(MessageQueue& queue, MessageRequest& request) noexcept {
  QueueWaiter* waiter = nullptr;
  {
    const SpinGuard guard{queue.lock};
    waiter = queue.waiter_first;
    if (waiter != nullptr) {
      queue.waiter_first = waiter->next;
      queue.waiter_last = waiter->next == nullptr ? nullptr : queue.waiter_last;
      waiter->request = &request;
    } else {
      request.next = nullptr;
      (queue.last != nullptr ? queue.last->next : queue.first) = &request;
      queue.last = &request;
    }
  }
  // The waiter stays until this; the queue may be gone, since who takes a request has had the lock.
  if (waiter != nullptr) {
    waiter->done.complete();
  }
}

namespace {

MessageRequest* take_first(MessageQueue& queue) noexcept STERNA_REQUIRES(queue.lock) {
  MessageRequest* const request = queue.first;
  if (request != nullptr) {
    queue.first = request->next;
    queue.last = queue.first == nullptr ? nullptr : queue.last;
  }
  return request;
}

MessageRequest* try_take(MessageQueue& queue) noexcept {
  const SpinGuard guard{queue.lock};
  return take_first(queue);
}

/// The request, or null: the waiter is in the list.
MessageRequest* take_or_wait(MessageQueue& queue, QueueWaiter& waiter) noexcept {
  const SpinGuard guard{queue.lock};
  MessageRequest* const request = take_first(queue);
  if (request == nullptr) {
    (queue.waiter_last != nullptr ? queue.waiter_last->next : queue.waiter_first) = &waiter;
    queue.waiter_last = &waiter;
  }
  return request;
}

/// The waiter goes without a request. False: one was given to it meanwhile.
bool leave(MessageQueue& queue, QueueWaiter& waiter) noexcept {
  const SpinGuard guard{queue.lock};
  if (waiter.request != nullptr) {
    return false;
  }
  QueueWaiter* before = nullptr;
  for (QueueWaiter* other = queue.waiter_first; other != &waiter; other = other->next) {
    before = other;
  }
  (before != nullptr ? before->next : queue.waiter_first) = waiter.next;
  queue.waiter_last = queue.waiter_last == &waiter ? before : queue.waiter_last;
  return true;
}

/// Null: the time was over.
MessageRequest* take(RankContext& rank, MessageQueue& queue, std::uint64_t deadline_ns) noexcept {
  QueueWaiter waiter;
  if (MessageRequest* const request = take_or_wait(queue, waiter); request != nullptr) {
    return request;
  }
  if (!wait_until(rank, waiter.done, deadline_ns)) {
    if (leave(queue, waiter)) {
      return nullptr;
    }
    (void)wait_until(rank, waiter.done, kNever);  // Soon: it is being completed.
  }
  return waiter.request;
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::MessageRequest;
using sterna::runtime::RankContext;

namespace {

sterna_status refuse_late(const char* call) noexcept {
  return capi::refuse(STERNA_TIMED_OUT, "{}: no request has ended", call);
}

}  // namespace

sterna_status sterna_message_queue_take(sterna_message_queue* queue, uint64_t timeout_ns,
                                        sterna_message_request** request, sterna_status* ended,
                                        sterna_envelope* envelope) noexcept {
  const sterna::runtime::RuntimeScope scope;
  RankContext* const self = sterna::runtime::find_current_rank();
  if (self == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  if (queue == nullptr || request == nullptr) {
    return capi::refuse_argument(__func__);
  }
  auto& own = *reinterpret_cast<capi::MessageQueue*>(queue);
  MessageRequest* taken = capi::try_take(own);
  if (taken == nullptr && capi::is_in_callback(*self)) {
    return timeout_ns == 0 ? refuse_late(__func__)
                           : capi::refuse(STERNA_DEADLOCK,
                                          "{}: a callback of a message must not wait", __func__);
  }
  if (taken == nullptr && timeout_ns == 0) {
    capi::test_in_vain(*self);
    taken = capi::try_take(own);
  } else if (taken == nullptr) {
    taken = capi::take(*self, own, capi::deadline_of(timeout_ns));
  }
  if (taken == nullptr) {
    return refuse_late(__func__);
  }
  *request = taken->storage;
  sterna_status status = STERNA_SUCCESS;
  (ended != nullptr ? *ended : status) = capi::finish(*self, *taken, envelope);
  return STERNA_SUCCESS;
}
