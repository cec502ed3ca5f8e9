// job_barrier.h, and how the ranks meet at the start.
#include <atomic>
#include <cstddef>
#include <new>

#include <sterna/job_barrier.h>
#include <sterna/sync.h>

#include "base/clock.h"
#include "net/endpoint.h"
#include "net/transport.h"
#include "progress/progress.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/messages/session.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {

namespace {

constexpr std::uint64_t kSoonNs = 1'000'000;  // Only who waits for longer asks for losses, too.
constexpr std::uint32_t kLossContext = 0xffff'fff7;  // As those of program.h. Nobody sends there.

/// Completes `request` if it has not been: what had come for it is taken.
void end_receive(RankContext& self, net::RecvRequest& request) noexcept {
  if (!request.done.done() && !self.transport->cancel_receive(*self.endpoint, request)) {
    (void)wait_until(self, request.done, kNever);  // It is just coming.
  }
}

/// The first that is done. Switches; may move the rank.
void wait_for_one(RankContext& self, progress::Completion& one,
                  progress::Completion& other) noexcept {
  progress::Completion* const both[] = {&one, &other};
  const bool is_mobile = self.slot != nullptr;
  while (!one.done() && !other.done()) {
    if (is_mobile) {
      safe_point(self);
      call_ended_of_mobile(self);
    }
    (void)progress::Completion::wait_any(*self.progress, both, {.is_interruptible = is_mobile});
  }
}

/// The word of one rank. CLOSED: any rank is gone, so that this one may never come.
sterna_status hear(RankContext& self, const net::Pattern& pattern, std::byte& word) noexcept {
  const auto is_any_lost = [&] { return net::Transport::loss_count(*self.endpoint) != 0; };
  net::Envelope envelope;
  net::Fault fault = net::Fault::none;
  // A rank that may move does so where it waits.
  if (self.slot == nullptr && !is_any_lost() &&
      self.transport->try_receive_short(*self.endpoint, pattern, {&word, 1}, envelope, &fault)) {
    return to_status(fault);
  }
  net::RecvRequest request;
  self.transport->receive(*self.endpoint, request, pattern, net::Buffer::of(&word, 1));
  if (!is_any_lost() && !wait_until(self, request.done, now_ns() + kSoonNs)) {
    net::RecvRequest loss;  // Nobody sends anything there: it ends when a rank is lost.
    self.transport->receive(
        *self.endpoint, loss,
        net::Pattern{.source = net::kAnySource, .context = kLossContext, .tag = net::kAnyTag}, {});
    if (!is_any_lost()) {  // Of losses before its start it does not hear.
      wait_for_one(self, request.done, loss.done);
    }
    end_receive(self, loss);
  }
  end_receive(self, request);
  return request.fault == net::Fault::cancelled ? STERNA_CLOSED : to_status(request.fault);
}

}  // namespace

/// By dissemination: in round k each rank tells the one 2^k further, and hears from the one 2^k
/// before. Who hears of a loss tells it on in all rounds that are left, and does not wait any more:
/// nobody waits for a message that does not come, and all hear of it.
sterna_status meet_all(const RankContext& rank, std::uint32_t context, std::int32_t tag) noexcept {
  sterna_status result = STERNA_SUCCESS;
  for (std::uint32_t distance = 1; distance < rank.size; distance *= 2) {
    const std::uint32_t to = (rank.rank + distance) % rank.size;
    const std::uint32_t from = (rank.rank + rank.size - distance) % rank.size;
    const std::byte told{static_cast<unsigned char>(result == STERNA_SUCCESS ? 0 : 1)};
    const sterna_status sent = send_message(to, context, tag, &told, sizeof told);
    std::byte heard{};
    sterna_status received =
        hear(current_rank(), {.source = from, .context = context, .tag = tag}, heard);
    if (received == STERNA_SUCCESS && heard != std::byte{}) {
      received = STERNA_CLOSED;
    }
    for (const sterna_status status : {sent, received}) {
      result = result == STERNA_SUCCESS ? status : result;
    }
  }
  return result;
}

namespace {

struct JobBarrier {
  static constexpr std::uint32_t kMade = 0x0b'a441e4;

  std::uint32_t state = 0;  // kMade: it is.
  std::int32_t number = 0;
  std::uint32_t context = kJobBarrierContext;  // Of its session, whose number stays when it closes.
  sterna_barrier threads{};
  // Of the last round: written by the one that meets the other ranks, while the others wait for it.
  sterna_status result = STERNA_SUCCESS;
};
static_assert(sizeof(JobBarrier) <= sizeof(sterna_job_barrier) &&
              alignof(JobBarrier) <= alignof(sterna_job_barrier));

JobBarrier* barrier_in(sterna_job_barrier* storage) noexcept {
  auto* const barrier = reinterpret_cast<JobBarrier*>(storage);
  return barrier != nullptr && barrier->state == JobBarrier::kMade ? barrier : nullptr;
}

sterna_status refuse_unmade(const char* call) noexcept {
  return refuse(STERNA_INVALID_ARGUMENT,
                "{}: the barrier is NULL, or sterna_job_barrier_init was not called for it", call);
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

extern "C" {

sterna_status sterna_job_barrier_init(sterna_job_barrier* barrier, uint32_t threads,
                                      int32_t number) noexcept {
  const RuntimeScope scope;
  if (barrier == nullptr || threads == 0 || number < 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{}: it has memory, 1 thread or more, and a number from 0 on; these are {} "
                        "threads and the number {}",
                        __func__, threads, number);
  }
  if (sterna::runtime::find_current_rank() == nullptr) {
    return capi::refuse(STERNA_NOT_STARTED, "{}: before sterna_start, or after its end", __func__);
  }
  auto* const made = ::new (static_cast<void*>(barrier)) capi::JobBarrier;
  made->number = number;
  const sterna_status status = sterna_barrier_init(&made->threads, threads);
  made->state = status == STERNA_SUCCESS ? capi::JobBarrier::kMade : 0;
  return status;
}

sterna_status sterna_job_barrier_set_session(sterna_job_barrier* barrier,
                                             sterna_session* session) noexcept {
  const RuntimeScope scope;
  capi::JobBarrier* const its = capi::barrier_in(barrier);
  if (its == nullptr) {
    return capi::refuse_unmade(__func__);
  }
  const capi::MessageSession* const own = capi::session_in(session);
  if (session != nullptr && own == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: the session is not open", __func__);
  }
  its->context = own == nullptr ? capi::kJobBarrierContext
                                : capi::context_of(own, capi::ContextUse::job_barriers);
  return STERNA_SUCCESS;
}

sterna_status sterna_job_barrier_destroy(sterna_job_barrier* barrier) noexcept {
  const RuntimeScope scope;
  capi::JobBarrier* const its = capi::barrier_in(barrier);
  if (its == nullptr) {
    return capi::refuse_unmade(__func__);
  }
  const sterna_status status = sterna_barrier_destroy(&its->threads);
  its->state = status == STERNA_SUCCESS ? 0 : its->state;
  return status;
}

sterna_status sterna_job_barrier_wait(sterna_job_barrier* barrier, int* is_last) noexcept {
  const RuntimeScope scope;
  capi::JobBarrier* const its = capi::barrier_in(barrier);
  if (its == nullptr) {
    return capi::refuse_unmade(__func__);
  }
  RankContext* const rank = sterna::runtime::find_current_rank();
  if (rank == nullptr) {
    return capi::refuse(STERNA_NOT_STARTED, "{}: after the end of sterna", __func__);
  }
  if (capi::is_in_callback(*rank)) {
    return capi::refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", __func__);
  }
  int is_one = 0;
  sterna_status status = sterna_barrier_wait(&its->threads, &is_one);
  if (status != STERNA_SUCCESS) {
    return status;
  }
  if (is_one != 0) {
    its->result = capi::meet_all(*rank, its->context, its->number);
  }
  status = sterna_barrier_wait(&its->threads, nullptr);
  if (status == STERNA_SUCCESS) {
    status = its->result;
  }
  if (is_last != nullptr) {
    *is_last = is_one;
  }
  return status == STERNA_CLOSED
             ? capi::refuse(STERNA_CLOSED, "{}: barrier {}: the process of a rank has ended",
                            __func__, its->number)
             : status;
}

}  // extern "C"
