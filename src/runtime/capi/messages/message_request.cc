// message.h: requests: started, ended.
#include "runtime/capi/messages/message_request.h"

#include <new>

#include <fmt/format.h>

#include "net/transport.h"
#include "progress/progress.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_queue.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {

sterna_status to_status(net::Fault fault) noexcept {
  switch (fault) {
    case net::Fault::none:
      return STERNA_SUCCESS;
    case net::Fault::truncated:
      return STERNA_TRUNCATED;
    case net::Fault::peer_lost:
      return STERNA_CLOSED;
    case net::Fault::cancelled:
      return STERNA_CANCELLED;
    case net::Fault::no_memory:
      return STERNA_OUT_OF_MEMORY;
  }
  return STERNA_SYSTEM;
}

bool is_pattern(const RankContext& rank, std::uint32_t source, std::int32_t tag) noexcept {
  return (source < rank.size || source == STERNA_ANY_RANK) && tag >= STERNA_ANY_TAG;
}

void store_envelope(const net::Envelope& from, sterna_envelope* to) noexcept {
  if (to != nullptr) {
    *to = {.source = from.source, .tag = from.tag, .bytes = from.bytes};
  }
}

std::string words_for(const MessageRequest& request) {
  const std::string tag =
      request.tag == STERNA_ANY_TAG ? "any tag" : fmt::format("tag {}", request.tag);
  const std::string rank =
      request.rank == STERNA_ANY_RANK ? "any rank" : fmt::format("rank {}", request.rank);
  return fmt::format("the {} {} with {}{}", request.is_send ? "send to" : "receive from", rank, tag,
                     words_for(request.session));
}

bool wait_until(RankContext& rank, progress::Completion& done, std::uint64_t deadline_ns) noexcept {
  const bool is_mobile = rank.slot != nullptr;
  while (!done.done()) {
    if (is_mobile) {
      safe_point(rank);
      call_ended_of_mobile(rank);
    }
    const threads::Wake wake =
        done.wait_for(*rank.progress, {.deadline_ns = deadline_ns, .is_interruptible = is_mobile});
    if (wake == threads::Wake::timed_out) {
      return done.done();
    }
  }
  return true;
}

bool is_named_and_lost(const RankContext& rank, std::uint32_t source) noexcept {
  return source != STERNA_ANY_RANK && rank.transport->is_rank_lost(source);
}

sterna_status refuse_not_started(const char* call) noexcept {
  return refuse(STERNA_NOT_STARTED, "{}: before the start of the job, or after its end", call);
}

sterna_status refuse_lost(const char* call, std::uint32_t source) noexcept {
  return refuse(STERNA_CLOSED,
                "{}: the process of rank {} has ended, and no such message of it has come", call,
                source);
}

void test_in_vain(RankContext& rank) noexcept {
  if (!is_in_callback(rank)) {
    tested_in_vain(rank);
    call_ended_of_mobile(rank);
  }
}

bool open_callbacks() noexcept {
  if (is_mobile()) {
    return true;
  }
  Program* const its = program();
  if (its == nullptr) {
    return false;
  }
  its->message_callbacks->open();
  return true;
}

sterna_status finish(RankContext& rank, MessageRequest& request,
                     sterna_envelope* envelope) noexcept {
  const net::Fault fault = request.is_send ? request.send.fault : request.receive.fault;
  const bool is_stored =
      !request.is_send && (fault == net::Fault::none || fault == net::Fault::truncated);
  close_bytes(request.data, is_stored ? request.receive.envelope.bytes : 0, *rank.heap,
              request.bytes);
  if (is_stored) {
    store_envelope(request.receive.envelope, envelope);
  }
  if (request.session != nullptr) {
    const_cast<MessageSession*>(request.session)->started.fetch_sub(1, std::memory_order_relaxed);
  }
  request.is_started = false;
  return to_status(fault);
}

void on_ended(threads::Listener& listener) noexcept {
  auto& request = static_cast<MessageRequest&>(listener);
  if (request.queue != nullptr) {
    add_ended(*request.queue, request);
  } else {
    call_soon(request);
  }
}

namespace {

constexpr std::size_t kLongBytes = 64 << 10;

void submit(RankContext& self, MessageRequest& request, net::Message* matched) noexcept {
  net::Transport& transport = *self.transport;
  const std::uint32_t context = context_of(request.session, ContextUse::messages);
  const net::Buffer& buffer = request.bytes.buffer;
  const net::Pattern pattern{request.rank, context, request.tag};
  if (request.is_send) {
    request.send.may_be_left = true;
    transport.send(*self.endpoint, request.send,
                   {.rank = request.rank,
                    .context = context,
                    .tag = request.tag,
                    .priority = request.priority},
                   buffer, request.mode);
  } else if (matched != nullptr) {
    transport.receive_matched(*self.endpoint, request.receive, *matched, buffer);
  } else if (request.has_mask) {
    transport.receive(*self.endpoint, request.receive, net::MaskedPattern{pattern, request.mask},
                      buffer);
  } else {
    transport.receive(*self.endpoint, request.receive, pattern, buffer);
  }
  // The caller may compute now, and the message needs somebody who answers its peer.
  if (buffer.bytes >= kLongBytes && !request.done().done()) {
    self.progress->has_left_open();
  }
}

}  // namespace

sterna_status start(MessageRequest& request, net::Message* matched, const char* call) noexcept {
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return refuse_not_started(call);
  }
  if (request.is_started) {
    return refuse(STERNA_BUSY, "{}: {} is started, and has not been waited for", call,
                  words_for(request));
  }
  if (request.session != nullptr && request.session->state != MessageSession::kOpen) {
    return refuse(STERNA_INVALID_ARGUMENT, "{}: {}, which was closed since", call,
                  words_for(request));
  }
  if (request.callback != nullptr && !open_callbacks()) {
    return refuse(STERNA_NOT_STARTED,
                  "{}: {}: the calls of callbacks come from workers: after sterna_start, before "
                  "sterna_stop",
                  call, words_for(request));
  }
  const sterna_status status =
      open_bytes(request.data, request.is_send, *self->heap, request.bytes);
  if (status != STERNA_SUCCESS) {
    return refuse(status, "{}: {}: {}", call, words_for(request),
                  status == STERNA_OUT_OF_MEMORY ? "no memory for a copy of its pieces"
                  : status == STERNA_REFUSED
                      ? "its layout answers the same question in different ways"
                      : "a piece has no address, or there are too many bytes");
  }
  request.is_started = true;
  request.owner = self;
  if (request.session != nullptr) {
    const_cast<MessageSession*>(request.session)->started.fetch_add(1, std::memory_order_relaxed);
  }
  const bool is_told = request.is_told();
  submit(*self, request, matched);
  // Who completes it either finds the listener, or has come before it. Then the request is not
  // ours.
  if (is_told && !request.done().listen(request)) {
    on_ended(request);
  }
  return STERNA_SUCCESS;
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::MessageRequest;
using sterna::runtime::RuntimeScope;

sterna_status sterna_message_start(sterna_message_request* request) noexcept {
  const RuntimeScope scope;
  MessageRequest* const own = capi::request_in(request);
  return own == nullptr ? capi::refuse(STERNA_INVALID_ARGUMENT,
                                       "sterna_message_start: the request is NULL, or was not "
                                       "initialised")
                        : capi::start(*own, nullptr, __func__);
}

sterna_status sterna_message_start_matched(sterna_message_request* request,
                                           sterna_matched_message* message) noexcept {
  const RuntimeScope scope;
  MessageRequest* const own = capi::request_in(request);
  if (own == nullptr || own->is_send || message == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "sterna_message_start_matched: the message is NULL, or the request is no "
                        "receive that was initialised");
  }
  return capi::start(*own, reinterpret_cast<sterna::net::Message*>(message), __func__);
}
