// message.h and session.h: messages at once; over the transport, in contexts of the C API.
#include <sterna/message.h>

#include "net/endpoint.h"
#include "net/transport.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_data.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"
#include "threads/direct.h"

namespace sterna::runtime::capi {

sterna_status send_message(std::uint32_t rank, std::uint32_t context, std::int32_t tag,
                           const void* data, std::size_t bytes) noexcept {
  RankContext& self = current_rank();
  net::SendRequest request;
  request.is_awaited = threads::is_caller_alone();
  self.transport->send(*self.endpoint, request, {.rank = rank, .context = context, .tag = tag},
                       net::Buffer::of(data, bytes));
  (void)wait_until(self, request.done, kNever);
  return to_status(request.fault);
}

sterna_status receive_message(std::uint32_t rank, std::uint32_t context, std::int32_t tag,
                              void* buffer, std::size_t bytes, net::Envelope& envelope) noexcept {
  RankContext& self = current_rank();
  const net::Pattern pattern{.source = rank, .context = context, .tag = tag};
  net::Fault fault = net::Fault::none;
  if (self.slot != nullptr) {  // As in wait_until(): what comes at once is not waited for.
    safe_point(self);
    call_ended_of_mobile(self);
  }
  if (self.transport->try_receive_short(*self.endpoint, pattern,
                                        {static_cast<std::byte*>(buffer), bytes}, envelope,
                                        &fault)) {
    return to_status(fault);
  }
  net::RecvRequest request;
  self.transport->receive(*self.endpoint, request, pattern, net::Buffer::of(buffer, bytes));
  (void)wait_until(self, request.done, kNever);
  envelope = request.envelope;
  return to_status(request.fault);
}

namespace {

/// What all of these calls look at first. `session` is null for that without a name.
class Caller {
 public:
  Caller(const char* call, const MessageSession* session) noexcept
      : call_{call}, session_{session}, rank_{find_current_rank()} {}

  [[nodiscard]] RankContext& rank() const noexcept { return *rank_; }
  [[nodiscard]] std::uint32_t context() const noexcept {
    return context_of(session_, ContextUse::messages);
  }

  /// SUCCESS, or why not, with a text that names the session.
  [[nodiscard]] sterna_status check(bool is_good, std::uint32_t rank,
                                    std::int32_t tag) const noexcept {
    return is_good ? STERNA_SUCCESS
                   : refuse(STERNA_INVALID_ARGUMENT,
                            "{}: rank {} or tag {}{} is out of range (ranks are 0 to {}), a "
                            "pointer is NULL, or a message longer than 2^47 bytes",
                            call_, rank, tag, words_for(session_), rank_->size - 1);
  }
  [[nodiscard]] sterna_status check_wait() const noexcept {
    return !is_in_callback(*rank_)
               ? STERNA_SUCCESS
               : refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", call_);
  }

  /// How a message has ended, with a text if it failed: "from", "to".
  [[nodiscard]] sterna_status told(sterna_status status, const char* way, std::uint32_t rank,
                                   std::int32_t tag) const noexcept {
    return status == STERNA_SUCCESS
               ? status
               : refuse(status, "{}: {} rank {} with tag {}{}: {}", call_, way,
                        rank == STERNA_ANY_RANK ? -1 : static_cast<std::int64_t>(rank), tag,
                        words_for(session_), sterna_status_text(status));
  }

  [[nodiscard]] sterna_status send(std::uint32_t to, std::int32_t tag, const void* data,
                                   std::size_t bytes) const noexcept;
  [[nodiscard]] sterna_status receive(std::uint32_t from, std::int32_t tag, void* buffer,
                                      std::size_t bytes, sterna_envelope* envelope) const noexcept;

 private:
  const char* call_;
  const MessageSession* session_;
  RankContext* rank_;
};

sterna_status Caller::send(std::uint32_t to, std::int32_t tag, const void* data,
                           std::size_t bytes) const noexcept {
  if (rank_ == nullptr) {
    return refuse_not_started(call_);
  }
  const bool is_good =
      to < rank_->size && tag >= 0 && (data != nullptr || bytes == 0) && bytes <= kMessageBytesMax;
  sterna_status status = check(is_good, to, tag);
  status = status == STERNA_SUCCESS ? check_wait() : status;
  if (status != STERNA_SUCCESS) {
    return status;
  }
  safe_point(*rank_);
  return told(send_message(to, context(), tag, data, bytes), "to", to, tag);
}

sterna_status Caller::receive(std::uint32_t from, std::int32_t tag, void* buffer, std::size_t bytes,
                              sterna_envelope* envelope) const noexcept {
  if (rank_ == nullptr) {
    return refuse_not_started(call_);
  }
  const bool is_good = is_pattern(*rank_, from, tag) && (buffer != nullptr || bytes == 0);
  sterna_status status = check(is_good, from, tag);
  status = status == STERNA_SUCCESS ? check_wait() : status;
  if (status != STERNA_SUCCESS) {
    return status;
  }
  safe_point(*rank_);
  net::Envelope found;
  status = receive_message(from, context(), tag, buffer, bytes, found);
  if (status == STERNA_SUCCESS || status == STERNA_TRUNCATED) {
    store_envelope(found, envelope);
  }
  return told(status, "from", from, tag);
}

/// use(caller), if the session is open.
template <typename Use>
sterna_status in_session(sterna_session* storage, const char* call, Use use) noexcept {
  const MessageSession* const session = session_in(storage);
  return session == nullptr
             ? refuse(STERNA_INVALID_ARGUMENT, "{}: the session is NULL, or not open", call)
             : use(Caller{call, session});
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::Caller;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

static_assert(STERNA_ANY_RANK == sterna::net::kAnySource);
static_assert(STERNA_ANY_TAG == sterna::net::kAnyTag);

sterna_status sterna_message_send(uint32_t rank, int32_t tag, const void* data,
                                  size_t bytes) noexcept {
  const RuntimeScope scope;
  return Caller{__func__, nullptr}.send(rank, tag, data, bytes);
}

sterna_status sterna_message_receive(uint32_t rank, int32_t tag, void* buffer, size_t bytes_max,
                                     sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return Caller{__func__, nullptr}.receive(rank, tag, buffer, bytes_max, envelope);
}

sterna_status sterna_session_send(sterna_session* session, uint32_t rank, int32_t tag,
                                  const void* data, size_t bytes) noexcept {
  const RuntimeScope scope;
  return capi::in_session(session, __func__, [&](const Caller& caller) noexcept {
    return caller.send(rank, tag, data, bytes);
  });
}

sterna_status sterna_session_receive(sterna_session* session, uint32_t rank, int32_t tag,
                                     void* buffer, size_t bytes_max,
                                     sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return capi::in_session(session, __func__, [&](const Caller& caller) noexcept {
    return caller.receive(rank, tag, buffer, bytes_max, envelope);
  });
}

sterna_status sterna_message_receive_matched(sterna_matched_message* message, void* buffer,
                                             size_t bytes_max, sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  RankContext* const self = sterna::runtime::find_current_rank();
  if (self == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  if (message == nullptr || (buffer == nullptr && bytes_max != 0)) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_callback(*self)) {  // The message stays the caller's.
    return capi::refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", __func__);
  }
  sterna::net::RecvRequest request;
  self->transport->receive_matched(*self->endpoint, request,
                                   *reinterpret_cast<sterna::net::Message*>(message),
                                   sterna::net::Buffer::of(buffer, bytes_max));
  (void)capi::wait_until(*self, request.done, sterna::kNever);
  const sterna_status status = capi::to_status(request.fault);
  if (status == STERNA_SUCCESS || status == STERNA_TRUNCATED) {
    capi::store_envelope(request.envelope, envelope);
  }
  return status == STERNA_SUCCESS
             ? status
             : capi::refuse(status, "{}: {}", __func__, sterna_status_text(status));
}
