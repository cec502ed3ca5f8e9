// rpc.h: what a service does inside: its arguments, their pieces, its reply.
#include <array>
#include <cstddef>
#include <exception>
#include <list>
#include <optional>

#include <sterna/sterna.h>

#include "net/buffer.h"
#include "progress/progress.h"
#include "rpc/poll_for.h"
#include "runtime/capi/calls/rpc.h"
#include "runtime/capi/calls/rpc_service.h"
#include "runtime/capi/in_poll.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"
#include "threads/control/cancel.h"

namespace {

/// A long piece that was asked for.
struct AwaitedPiece {
  std::size_t bytes;
  sterna::net::RecvRequest receive;
};

}  // namespace

struct sterna_rpc_request {
  const sterna::rpc::Request* request;
  std::span<const std::byte> arguments;  // Aligned for any type.
  sterna::rpc::Answer* answer;
  const char* service;
  std::size_t position = 0;  // Of the next short piece.
  std::list<AwaitedPiece> awaited = {};
  sterna_status fault = STERNA_SUCCESS;  // The first of a piece.
};

namespace sterna::runtime::capi {
namespace {

/// What came in a packet lies at any address; a service may read it as what it is.
std::span<const std::byte> aligned(std::span<const std::byte> bytes, std::span<std::byte> room,
                                   rpc::Bytes& long_room) {
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::max_align_t) == 0) {
    return bytes;
  }
  if (bytes.size() > room.size()) {
    rpc::assign(long_room, bytes);
    return long_room;
  }
  net::copy_bytes(room.data(), bytes.data(), bytes.size());
  return room.first(bytes.size());
}

void await_piece(sterna_rpc_request& request, std::size_t bytes,
                 net::RecvRequest& receive) noexcept {
  receive.done.wait(*program()->rank->progress);
  sterna_status status = to_status(receive.fault);
  if (status == STERNA_SUCCESS && receive.envelope.bytes != bytes) {
    status = STERNA_SYSTEM;
  }
  request.fault = request.fault == STERNA_SUCCESS ? status : request.fault;
}

sterna_status await_pieces(sterna_rpc_request& request) noexcept {
  for (AwaitedPiece& piece : request.awaited) {
    await_piece(request, piece.bytes, piece.receive);
  }
  request.awaited.clear();
  return request.fault;
}

/// The next long piece, and all that were asked for before it.
sterna_status unpack_now(sterna_rpc_request& request, rpc::Incoming& incoming,
                         const net::Buffer& buffer) noexcept {
  net::RecvRequest receive;
  program()->rpc->receive_part(incoming, buffer, receive);
  (void)await_pieces(request);
  rpc::poll_for(*program()->rank->progress, receive.done, buffer.bytes);
  await_piece(request, buffer.bytes, receive);
  return request.fault;
}

sterna_status run(const Registered& self, sterna_rpc_request& given) {
  const InPoll mark{*program()->rank, given.request->is_in_poll};
  std::optional<UserScope> scope;  // A poll must not be interrupted: it stays in the runtime.
  if (!given.request->is_in_poll) {
    scope.emplace();
  }
  try {
    return self.service(self.context, &given);
  } catch (const std::exception& thrown) {
    return sterna_rpc_fail(&given, STERNA_REFUSED, thrown.what());
  } catch (...) {
    return sterna_rpc_fail(&given, STERNA_REFUSED, "an exception that is no std::exception");
  }
}

}  // namespace

void serve(void* registered, const rpc::Request& request, rpc::Answer& answer) {
  const auto& self = *static_cast<const Registered*>(registered);
  alignas(std::max_align_t) std::array<std::byte, 384> room;
  rpc::Bytes long_room;
  sterna_rpc_request given{.request = &request,
                           .arguments = aligned(request.arguments, room, long_room),
                           .answer = &answer,
                           .service = self.name.c_str()};
  // Of a thread that ends inside: what it has asked for comes to memory that goes with it.
  threads::Cleanup cleanup{
      .function = [](void* its) { (void)await_pieces(*static_cast<sterna_rpc_request*>(its)); },
      .argument = &given};
  const bool may_end = request.incoming != nullptr && !request.is_in_poll;
  if (may_end) {
    threads::push_cleanup(cleanup);
  }
  answer.status = static_cast<std::uint32_t>(run(self, given));
  if (may_end) {
    threads::drop_cleanup(cleanup);
  }
  if (!given.awaited.empty()) {
    const sterna_status fault = await_pieces(given);
    answer.status =
        answer.status == STERNA_SUCCESS ? static_cast<std::uint32_t>(fault) : answer.status;
  }
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

uint32_t sterna_rpc_from(const sterna_rpc_request* request) noexcept {
  return request->request->from_node;
}

const void* sterna_rpc_arguments(const sterna_rpc_request* request, size_t* bytes) noexcept {
  if (bytes != nullptr) {
    *bytes = request->arguments.size();
  }
  return request->arguments.data();
}

sterna_status sterna_rpc_reply(sterna_rpc_request* request, const void* data,
                               size_t bytes) noexcept {
  if (request == nullptr || (data == nullptr && bytes != 0)) {
    return capi::refuse_argument(__func__);
  }
  const auto* const from = static_cast<const std::byte*>(data);
  sterna::rpc::Bytes& kept = request->answer->reply.value();
  if (request->request->is_in_poll && bytes <= kept.capacity()) [[likely]] {
    sterna::rpc::assign(kept, {from, bytes});  // Which does not throw then.
    return STERNA_SUCCESS;
  }
  const auto reply = [&] {
    sterna::rpc::assign(kept, {from, bytes});
    return STERNA_SUCCESS;
  };
  if (request->request->is_in_poll) {  // Which is in the runtime.
    return capi::guarded(reply);
  }
  const RuntimeScope scope;
  return capi::guarded(reply);
}

sterna_status sterna_rpc_reply_now(sterna_rpc_request* request, const void* data,
                                   size_t bytes) noexcept {
  const RuntimeScope scope;
  if (request == nullptr || (data == nullptr && bytes != 0)) {
    return capi::refuse_argument(__func__);
  }
  if (request->request->is_in_poll) {
    return capi::refuse(STERNA_DEADLOCK, "{}: service {} is quick and must not wait", __func__,
                        request->service);
  }
  if (request->request->reply_to->id == 0) {
    return capi::refuse(STERNA_REFUSED, "{}: service {} has replied, or nobody waits for a reply",
                        __func__, request->service);
  }
  return capi::guarded([&] {
    sterna::rpc::Rpc& rpc = *capi::program()->rpc;
    sterna::rpc::AwaitedReply reply;
    rpc.reply_now(*request->request, {static_cast<const std::byte*>(data), bytes}, reply);
    const sterna::net::Fault fault = rpc.await(reply);
    return fault == sterna::net::Fault::cancelled
               ? capi::refuse(STERNA_CLOSED, "{}: the program stops, and nobody takes the reply",
                              "sterna_rpc_reply_now")
               : capi::to_status(fault);
  });
}

sterna_status sterna_rpc_fail(sterna_rpc_request* request, sterna_status status,
                              const char* text) noexcept {
  const RuntimeScope scope;
  if (request != nullptr && text != nullptr) {
    (void)capi::guarded([&] {
      request->answer->text =
          fmt::format("service {} of node {}: {}", request->service, sterna_node_index(), text);
      return STERNA_SUCCESS;
    });
  }
  return status;
}

sterna_status sterna_rpc_wait_data(sterna_rpc_request* request) noexcept {
  const RuntimeScope scope;
  return request == nullptr ? capi::refuse_argument(__func__) : capi::await_pieces(*request);
}

uint64_t sterna_rpc_bytes_left(const sterna_rpc_request* request) noexcept {
  std::uint64_t bytes = request->arguments.size() - request->position;
  if (const sterna::rpc::Incoming* const incoming = request->request->incoming) {
    for (std::size_t i = incoming->taken; i < incoming->parts.size(); ++i) {
      bytes += incoming->parts[i].bytes;
    }
  }
  return bytes;
}

namespace {

sterna_status refuse_piece(sterna_rpc_request& request, std::size_t bytes) noexcept {
  request.fault = request.fault == STERNA_SUCCESS ? STERNA_REFUSED : request.fault;
  return capi::refuse(STERNA_REFUSED,
                      "sterna_rpc_unpack: service {}: a piece of {} bytes is not what node {} has "
                      "packed there",
                      request.service, bytes, request.request->from_node);
}

}  // namespace

sterna_status sterna_rpc_unpack(sterna_rpc_request* request, void* buffer, size_t bytes,
                                sterna_unpack_mode mode) noexcept {
  const sterna::runtime::HotScope scope;
  if (request == nullptr || (buffer == nullptr && bytes != 0) ||
      (mode != STERNA_UNPACK_EXPRESS && mode != STERNA_UNPACK_CHEAPER)) {
    return capi::refuse_argument(__func__);
  }
  sterna::rpc::Incoming* const incoming = request->request->incoming;
  const bool is_part_next = incoming != nullptr && incoming->taken < incoming->parts.size() &&
                            incoming->parts[incoming->taken].offset == request->position;
  if (bytes <= capi::kRpcShortBytes) {
    const std::size_t end =
        is_part_next || incoming == nullptr || incoming->taken == incoming->parts.size()
            ? request->arguments.size()
            : incoming->parts[incoming->taken].offset;
    if (bytes > end - request->position || (is_part_next && bytes != 0)) {
      return refuse_piece(*request, bytes);
    }
    if (bytes != 0) {
      sterna::net::copy_bytes(static_cast<std::byte*>(buffer),
                              request->arguments.data() + request->position, bytes);
      request->position += bytes;
    }
    return STERNA_SUCCESS;
  }
  if (!is_part_next || incoming->parts[incoming->taken].bytes != bytes) {
    return refuse_piece(*request, bytes);
  }
  if (mode == STERNA_UNPACK_EXPRESS) {
    return capi::unpack_now(*request, *incoming, sterna::net::Buffer::of(buffer, bytes));
  }
  return capi::guarded([&] {
    AwaitedPiece& piece = request->awaited.emplace_back();
    piece.bytes = bytes;
    capi::program()->rpc->receive_part(*incoming, sterna::net::Buffer::of(buffer, bytes),
                                       piece.receive);
    return STERNA_SUCCESS;
  });
}
