// message.h: waiting for requests, testing them, taking them back.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "net/transport.h"
#include "progress/progress.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

/// The status of `finish`, with a text if it is none of success.
sterna_status finish_with_text(RankContext& rank, MessageRequest& request,
                               sterna_envelope* envelope, const char* call) noexcept {
  const sterna_status status = finish(rank, request, envelope);
  if (status == STERNA_TRUNCATED) {
    return refuse(status, "{}: {}: the message has {} bytes, its buffer {}", call,
                  words_for(request), request.receive.message_bytes,
                  request.receive.envelope.bytes);
  }
  return status == STERNA_SUCCESS
             ? status
             : refuse(status, "{}: {}: {}", call, words_for(request), sterna_status_text(status));
}

/// A request that the caller may wait for, or why not, with a text.
sterna_status find(sterna_message_request* storage, const char* call, RankContext*& rank,
                   MessageRequest*& request) noexcept {
  rank = find_current_rank();
  request = request_in(storage);
  if (rank == nullptr) {
    return refuse_not_started(call);
  }
  if (request == nullptr) {
    return refuse(STERNA_INVALID_ARGUMENT, "{}: the request is NULL, or was not initialised", call);
  }
  if (!request->is_started || request->is_told()) {
    return refuse(STERNA_REFUSED, "{}: {} {}", call, words_for(*request),
                  request->is_told() ? "ends with a callback or in a queue" : "is not started");
  }
  return STERNA_SUCCESS;
}

sterna_status refuse_in_callback(const char* call) noexcept {
  return refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", call);
}

sterna_status wait(sterna_message_request* storage, std::uint64_t timeout_ns,
                   sterna_envelope* envelope, const char* call) noexcept {
  RankContext* rank = nullptr;
  MessageRequest* request = nullptr;
  if (const sterna_status bad = find(storage, call, rank, request); bad != STERNA_SUCCESS) {
    return bad;
  }
  if (!request->done().done() && is_in_callback(*rank)) {
    return refuse_in_callback(call);
  }
  safe_point(*rank);
  if (!wait_until(*rank, request->done(), deadline_of(timeout_ns))) {
    return refuse(STERNA_TIMED_OUT, "{}: {} goes on", call, words_for(*request));
  }
  return finish_with_text(*rank, *request, envelope, call);
}

bool is_awaitable(const MessageRequest* request) noexcept {
  return request != nullptr && request->is_started && !request->is_told();
}

using Requests = std::span<sterna_message_request* const>;

/// The started ones among several, for one wait; on the stack if they are few.
class Watched {
 public:
  Watched(RankContext& rank, Requests requests) noexcept : rank_{rank}, requests_{requests} {
    if (requests.size() > few_.size()) {
      many_ = static_cast<progress::Completion**>(
          rank.heap->allocate(requests.size() * sizeof(progress::Completion*)));
    }
    progress::Completion** const list = many_ != nullptr ? many_ : few_.data();
    has_room_ = many_ != nullptr || requests.size() <= few_.size();
    for (std::size_t i = 0; i < requests.size() && has_room_; ++i) {
      MessageRequest* const request = request_in(requests[i]);
      // One that stands there twice is waited for once.
      const bool is_first = is_awaitable(request) && !std::exchange(request->is_watched, true);
      list[i] = is_first ? &request->done() : nullptr;
    }
    list_ = {list, has_room_ ? requests.size() : 0};
  }
  ~Watched() {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      if (list_[i] != nullptr) {
        request_in(requests_[i])->is_watched = false;
      }
    }
    if (many_ != nullptr) {
      rank_.heap->deallocate(many_);
    }
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  [[nodiscard]] bool has_room() const noexcept { return has_room_; }
  [[nodiscard]] bool is_empty() const noexcept {
    return std::ranges::all_of(list_, [](const auto* done) { return done == nullptr; });
  }
  /// The first that has ended, or the number of all.
  [[nodiscard]] std::size_t first_done() const noexcept {
    return static_cast<std::size_t>(
        std::ranges::find_if(list_, [](const auto* done) { return done && done->done(); }) -
        list_.begin());
  }
  /// Waits until one has ended: which; the number of all: the time is over. Switches.
  [[nodiscard]] std::size_t wait(std::uint64_t deadline_ns) noexcept {
    const bool is_mobile = rank_.slot != nullptr;
    std::size_t index = first_done();
    bool has_time = true;
    while (index == list_.size() && has_time) {
      if (is_mobile) {
        safe_point(rank_);
        call_ended_of_mobile(rank_);
      }
      index = progress::Completion::wait_any(
          *rank_.progress, {list_.data(), list_.size()},
          {.deadline_ns = deadline_ns, .is_interruptible = is_mobile});
      has_time = now_ns() < deadline_ns;
    }
    return index;
  }

 private:
  RankContext& rank_;
  const Requests requests_;
  std::array<progress::Completion*, 32> few_{};
  progress::Completion** many_ = nullptr;  // Owned.
  std::span<progress::Completion*> list_;
  bool has_room_ = false;
};

sterna_status wait_any(RankContext& rank, Requests requests, std::uint64_t deadline_ns,
                       std::size_t& index, sterna_envelope* envelope, const char* call) noexcept {
  Watched watched{rank, requests};
  if (!watched.has_room()) {
    return refuse(STERNA_OUT_OF_MEMORY, "{}: no memory to wait for {} requests", call,
                  requests.size());
  }
  if (watched.is_empty()) {
    return refuse(STERNA_NOT_FOUND, "{}: none of the {} requests is started and to be waited for",
                  call, requests.size());
  }
  std::size_t found = watched.first_done();
  if (found == requests.size()) {
    if (is_in_callback(rank)) {
      return refuse_in_callback(call);
    }
    found = watched.wait(deadline_ns);
  }
  if (found == requests.size()) {
    return refuse(STERNA_TIMED_OUT, "{}: all that are started go on", call);
  }
  index = found;
  return finish_with_text(rank, *request_in(requests[found]), envelope, call);
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::MessageRequest;
using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

sterna_status sterna_message_wait(sterna_message_request* request,
                                  sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return capi::wait(request, STERNA_FOREVER, envelope, __func__);
}

sterna_status sterna_message_wait_for(sterna_message_request* request, uint64_t timeout_ns,
                                      sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return capi::wait(request, timeout_ns, envelope, __func__);
}

sterna_status sterna_message_test(sterna_message_request* request, int* done,
                                  sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  RankContext* rank = nullptr;
  MessageRequest* own = nullptr;
  if (done == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status bad = capi::find(request, __func__, rank, own); bad != STERNA_SUCCESS) {
    return bad;
  }
  if (!own->done().done()) {
    capi::test_in_vain(*rank);
  }
  *done = own->done().done() ? 1 : 0;
  return *done == 0 ? STERNA_SUCCESS : capi::finish_with_text(*rank, *own, envelope, __func__);
}

sterna_status sterna_message_wait_any(sterna_message_request* const* requests, size_t count,
                                      uint64_t timeout_ns, size_t* index,
                                      sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  RankContext* const rank = find_current_rank();
  if (rank == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  if ((requests == nullptr && count != 0) || index == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::wait_any(*rank, {requests, count}, capi::deadline_of(timeout_ns), *index, envelope,
                        __func__);
}

sterna_status sterna_message_wait_all(sterna_message_request* const* requests, size_t count,
                                      uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  RankContext* const rank = find_current_rank();
  if (rank == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  if (requests == nullptr && count != 0) {
    return capi::refuse_argument(__func__);
  }
  const std::uint64_t deadline_ns = capi::deadline_of(timeout_ns);
  sterna_status first = STERNA_SUCCESS;
  for (size_t i = 0; i < count; ++i) {
    MessageRequest* const request = capi::request_in(requests[i]);
    if (!capi::is_awaitable(request)) {
      continue;
    }
    if (!request->done().done() && capi::is_in_callback(*rank)) {
      return capi::refuse_in_callback(__func__);
    }
    sterna_status status = STERNA_TIMED_OUT;
    if (capi::wait_until(*rank, request->done(), deadline_ns)) {
      status = capi::finish_with_text(*rank, *request, nullptr, __func__);
    }
    first = first == STERNA_SUCCESS || status == STERNA_TIMED_OUT ? status : first;
  }
  return first;
}

sterna_status sterna_message_cancel(sterna_message_request* request) noexcept {
  const RuntimeScope scope;
  RankContext* const rank = find_current_rank();
  MessageRequest* const own = capi::request_in(request);
  if (rank == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  if (own == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const bool is_cancelled =
      own->is_started &&
      (own->is_send ? rank->transport->cancel_send(*rank->endpoint, own->send)
                    : rank->transport->cancel_receive(*rank->endpoint, own->receive));
  // With a callback or a queue a cancelled request may be the program's again: no word about it.
  return is_cancelled
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_REFUSED,
                            "{}: it is not started, or a receive that has a message already, or a "
                            "send whose message has gone or is received",
                            __func__);
}

sterna_status sterna_message_call_back(void) noexcept {
  const RuntimeScope scope;
  RankContext* const rank = find_current_rank();
  if (rank == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  capi::test_in_vain(*rank);
  return STERNA_SUCCESS;
}
