// message.h: requests: described, started, ended.
#include "runtime/capi/message_request.h"

#include <new>

#include <fmt/format.h>

#include "net/transport.h"
#include "progress/progress.h"
#include "runtime/capi/handle.h"
#include "runtime/capi/message_callback.h"
#include "runtime/capi/message_queue.h"
#include "runtime/capi/program.h"
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
  its->message_callbacks_once.call([&] {
    if (auto opened = MessageCallbacks::open(*its->rank); opened) {
      its->message_callbacks = std::move(opened.value());
    }
  });
  return its->message_callbacks != nullptr;
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

namespace {

/// Of requests that have a callback or a queue.
void on_ended(threads::Listener& listener) noexcept {
  auto& request = static_cast<MessageRequest&>(listener);
  if (request.queue != nullptr) {
    add_ended(*request.queue, request);
  } else {
    call_soon(request);
  }
}

void submit(RankContext& self, MessageRequest& request, net::Message* matched) noexcept {
  net::Transport& transport = *self.transport;
  const std::uint32_t context = context_of(request.session, ContextUse::messages);
  const net::Buffer& buffer = request.bytes.buffer;
  const net::Pattern pattern{request.rank, context, request.tag};
  if (request.is_send) {
    transport.send(*self.endpoint, request.send,
                   {.rank = request.rank, .context = context, .tag = request.tag}, buffer,
                   request.mode);
  } else if (matched != nullptr) {
    transport.receive_matched(*self.endpoint, request.receive, *matched, buffer);
  } else if (request.has_mask) {
    transport.receive(*self.endpoint, request.receive, net::MaskedPattern{pattern, request.mask},
                      buffer);
  } else {
    transport.receive(*self.endpoint, request.receive, pattern, buffer);
  }
}

}  // namespace

sterna_status start(MessageRequest& request, net::Message* matched, const char* call) noexcept {
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return refuse(STERNA_NOT_STARTED, "{}: before the start of the job, or after its end", call);
  }
  if (request.is_started) {
    return refuse(STERNA_BUSY, "{}: {} is started, and has not been waited for", call,
                  words_for(request));
  }
  const sterna_status status =
      open_bytes(request.data, request.is_send, *self->heap, request.bytes);
  if (status != STERNA_SUCCESS) {
    return refuse(status, "{}: {}: {}", call, words_for(request),
                  status == STERNA_OUT_OF_MEMORY ? "no memory for a copy of its pieces"
                                                 : "a piece has no address, or there are too many "
                                                   "bytes");
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

namespace {

/// A new request in the program's memory, or why there is none.
sterna_status describe(sterna_message_request* storage, const char* call, bool is_send,
                       std::uint32_t rank, std::int32_t tag, const void* data,
                       std::size_t bytes) noexcept {
  const RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return refuse(STERNA_NOT_STARTED, "{}: before the start of the job, or after its end", call);
  }
  const bool is_good = is_send ? rank < self->size && tag >= 0 : is_pattern(*self, rank, tag);
  if (storage == nullptr || !is_good || (data == nullptr && bytes != 0)) {
    return refuse(
        STERNA_INVALID_ARGUMENT,
        "{}: request, rank {}, tag {} or data: one of them is NULL or out of range (ranks "
        "are 0 to {})",
        call, rank, tag, self->size - 1);
  }
  auto* const request = new (place_of(storage)) MessageRequest;
  request->ended = on_ended;
  request->storage = storage;
  request->is_send = is_send;
  request->rank = rank;
  request->tag = tag;
  request->data.address = const_cast<void*>(data);
  request->data.bytes = bytes;
  return STERNA_SUCCESS;
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::MessageRequest;
using sterna::runtime::RuntimeScope;

namespace {

/// change(request), or why not.
template <typename Change>
sterna_status change(sterna_message_request* storage, const char* call, Change change) noexcept {
  MessageRequest* const request = capi::request_in(storage);
  if (request == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: the request is NULL, or was not initialised",
                        call);
  }
  if (request->is_started) {
    return capi::refuse(STERNA_BUSY, "{}: {} is started: it can be changed when it has ended", call,
                        capi::words_for(*request));
  }
  return change(*request);
}

}  // namespace

sterna_status sterna_message_send_init(sterna_message_request* request, uint32_t rank, int32_t tag,
                                       const void* data, size_t bytes) noexcept {
  const RuntimeScope scope;
  return capi::describe(request, __func__, true, rank, tag, data, bytes);
}

sterna_status sterna_message_receive_init(sterna_message_request* request, uint32_t rank,
                                          int32_t tag, void* buffer, size_t bytes_max) noexcept {
  const RuntimeScope scope;
  return capi::describe(request, __func__, false, rank, tag, buffer, bytes_max);
}

sterna_status sterna_message_set_mode(sterna_message_request* request,
                                      sterna_send_mode mode) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    using enum sterna::net::SendMode;
    if (!own.is_send || mode < STERNA_SEND_STANDARD || mode > STERNA_SEND_READY) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "sterna_message_set_mode: {}: sends have a "
                          "mode, one of the three",
                          capi::words_for(own));
    }
    own.mode = mode == STERNA_SEND_SYNCHRONOUS ? synchronous
               : mode == STERNA_SEND_READY     ? ready
                                               : standard;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_mask(sterna_message_request* request, uint32_t mask) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    if (own.is_send || own.tag == STERNA_ANY_TAG) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "sterna_message_set_mask: {}: receives that "
                          "name a tag have a mask",
                          capi::words_for(own));
    }
    own.mask = mask;
    own.has_mask = mask != ~std::uint32_t{0};
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_pieces(sterna_message_request* request, const sterna_piece* pieces,
                                        size_t count) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    if (pieces == nullptr && count != 0) {
      return capi::refuse_argument("sterna_message_set_pieces");
    }
    own.data.kind = capi::MessageData::Kind::pieces;
    own.data.pieces = pieces;
    own.data.count = count;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_strided(sterna_message_request* request, size_t block_bytes,
                                         size_t count, ptrdiff_t stride) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    own.data.kind = capi::MessageData::Kind::strided;
    own.data.bytes = block_bytes;
    own.data.count = count;
    own.data.stride = stride;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_layout(sterna_message_request* request, sterna_next_piece next,
                                        const void* layout) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    if (next == nullptr) {
      return capi::refuse_argument("sterna_message_set_layout");
    }
    own.data.kind = capi::MessageData::Kind::layout;
    own.data.next = next;
    own.data.layout = layout;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_callback(sterna_message_request* request,
                                          sterna_message_callback callback,
                                          void* argument) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    if (callback != nullptr && !capi::open_callbacks()) {
      return capi::refuse(STERNA_NOT_STARTED,
                          "sterna_message_set_callback: the calls come from workers: after "
                          "sterna_start, before sterna_stop");
    }
    own.callback = callback;
    own.argument = argument;
    own.queue = nullptr;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_queue(sterna_message_request* request,
                                       sterna_message_queue* queue) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    own.callback = nullptr;
    own.queue = reinterpret_cast<capi::MessageQueue*>(queue);
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_message_set_session(sterna_message_request* request,
                                         sterna_session* session) noexcept {
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    own.session = capi::session_in(session);
    return session != nullptr && own.session == nullptr
               ? capi::refuse(STERNA_INVALID_ARGUMENT,
                              "sterna_message_set_session: the session is not open")
               : STERNA_SUCCESS;
  });
}

sterna_status sterna_message_start(sterna_message_request* request) noexcept {
  const RuntimeScope scope;
  MessageRequest* const own = capi::request_in(request);
  return own == nullptr ? capi::refuse(STERNA_INVALID_ARGUMENT,
                                       "sterna_message_start: the request is NULL, or was not "
                                       "initialised")
                        : capi::start(*own, nullptr, __func__);
}

sterna_status sterna_message_send_start(sterna_message_request* request, uint32_t rank, int32_t tag,
                                        const void* data, size_t bytes) noexcept {
  const RuntimeScope scope;
  const sterna_status status = capi::describe(request, __func__, true, rank, tag, data, bytes);
  return status != STERNA_SUCCESS ? status
                                  : capi::start(*capi::request_in(request), nullptr, __func__);
}

sterna_status sterna_message_receive_start(sterna_message_request* request, uint32_t rank,
                                           int32_t tag, void* buffer, size_t bytes_max) noexcept {
  const RuntimeScope scope;
  const sterna_status status =
      capi::describe(request, __func__, false, rank, tag, buffer, bytes_max);
  return status != STERNA_SUCCESS ? status
                                  : capi::start(*capi::request_in(request), nullptr, __func__);
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
