// message.h: what a request describes.
#include <new>

#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_queue.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

/// A new request in the program's memory, or why there is none.
sterna_status describe(sterna_message_request* storage, const char* call, bool is_send,
                       std::uint32_t rank, std::int32_t tag, const void* data,
                       std::size_t bytes) noexcept {
  const RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return refuse_not_started(call);
  }
  const bool is_good = is_send ? rank < self->size && tag >= 0 : is_pattern(*self, rank, tag);
  if (storage == nullptr || !is_good || (data == nullptr && bytes != 0) ||
      bytes > kMessageBytesMax) {
    return refuse(
        STERNA_INVALID_ARGUMENT,
        "{}: request, rank {}, tag {} or data: one of them is NULL or out of range (ranks "
        "are 0 to {}, a message has at most 2^47 bytes)",
        call, rank, tag, self->size - 1);
  }
  if (const MessageRequest* const started = started_in(storage); started != nullptr) {
    return refuse(STERNA_BUSY, "{}: {} is started: it can be described anew when it has ended",
                  call, words_for(*started));
  }
  auto* const request = new (place_of(storage)) MessageRequest{is_send};
  request->ended = on_ended;
  request->storage = storage;
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

sterna_status sterna_message_set_priority(sterna_message_request* request,
                                          uint32_t priority) noexcept {
  static_assert(STERNA_MESSAGE_PRIORITY_MAX == sterna::net::kPriorityMax);
  const RuntimeScope scope;
  return change(request, __func__, [&](MessageRequest& own) noexcept {
    if (!own.is_send || priority > STERNA_MESSAGE_PRIORITY_MAX) {
      return capi::refuse(
          STERNA_INVALID_ARGUMENT,
          "sterna_message_set_priority: {}: priority {}: sends have one, of 0 to {}",
          capi::words_for(own), priority, STERNA_MESSAGE_PRIORITY_MAX);
    }
    own.priority = static_cast<std::uint8_t>(priority);
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
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(std::uint64_t{block_bytes}, count, &bytes) ||
        bytes > capi::kMessageBytesMax) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "sterna_message_set_strided: {}: {} blocks of {} bytes are more than "
                          "there can be",
                          capi::words_for(own), count, block_bytes);
    }
    own.data.kind = capi::MessageData::Kind::strided;
    own.data.bytes = block_bytes;
    own.data.count = bytes != 0 ? count : 0;
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
    const capi::MessageSession* const opened = capi::session_in(session);
    if (session != nullptr && opened == nullptr) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "sterna_message_set_session: the session is not open");
    }
    own.session = opened;
    return STERNA_SUCCESS;
  });
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
