// session.h: sessions by name.
#include "runtime/capi/messages/session.h"

#include <cstring>
#include <new>
#include <span>

#include <fmt/format.h>

#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/node.h"
#include "runtime/node_of_process.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {

MessageSession* session_in(sterna_session* storage) noexcept {
  auto* const session = reinterpret_cast<MessageSession*>(storage);
  return session != nullptr && session->state == MessageSession::kOpen ? session : nullptr;
}

std::uint32_t context_of(const MessageSession* session, ContextUse use) noexcept {
  const std::uint32_t first = session != nullptr ? session->context : kMessageContext;
  return first + static_cast<std::uint32_t>(use);
}

std::string words_for(const MessageSession* session) {
  return session == nullptr
             ? std::string{}
             : fmt::format(" in session '{}'", static_cast<const char*>(session->name));
}

namespace {

/// The Rpc of the process or of the node where the rank is; null: not started.
rpc::Rpc* rpc_of_caller() noexcept {
  if (is_mobile()) {
    return &node_of_process()->rpc();
  }
  return program() != nullptr ? program()->rpc.get() : nullptr;
}

sterna_status open_session(sterna_session* storage, const char* name) {
  rpc::Rpc* const rpc = rpc_of_caller();
  if (rpc == nullptr) {
    return refuse(STERNA_NOT_STARTED, "sterna_session_open: before sterna_start, or after its end");
  }
  const std::size_t length = name == nullptr ? 0 : ::strnlen(name, kSessionNameBytesMax + 1);
  if (storage == nullptr || length == 0 || length > kSessionNameBytesMax) {
    return refuse(STERNA_INVALID_ARGUMENT,
                  "sterna_session_open: it has memory, and a name of 1 to {} bytes",
                  kSessionNameBytesMax);
  }
  if (is_in_callback(*find_current_rank())) {
    return refuse(STERNA_DEADLOCK,
                  "sterna_session_open: a callback of a message must not wait: open it before");
  }
  Result<rpc::Bytes> reply =
      rpc->call(0, kSessionNumberService, std::as_bytes(std::span{name, length}));
  if (!reply) {
    return refuse(to_status(reply.error().code), "sterna_session_open: session '{}': {}", name,
                  reply.error().text);
  }
  Result<std::uint32_t> number = decode_session_number(reply.value());
  if (!number) {
    return refuse(STERNA_SYSTEM, "sterna_session_open: session '{}': {}", name,
                  number.error().text);
  }
  auto* const session = new (storage) MessageSession;
  session->context = MessageSession::kContextFirst + number.value() * MessageSession::kContextsEach;
  std::memcpy(session->name, name, length);
  session->state = MessageSession::kOpen;
  return STERNA_SUCCESS;
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

sterna_status sterna_session_open(sterna_session* session, const char* name) noexcept {
  const RuntimeScope scope;
  return capi::guarded([&] { return capi::open_session(session, name); });
}

sterna_status sterna_session_close(sterna_session* session) noexcept {
  const RuntimeScope scope;
  capi::MessageSession* const own = capi::session_in(session);
  if (own == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: the session is NULL, or not open", __func__);
  }
  if (const std::uint32_t started = own->started.load(std::memory_order_relaxed); started != 0) {
    return capi::refuse(STERNA_BUSY, "{}: session '{}' has {} started requests: wait for them",
                        __func__, static_cast<const char*>(own->name), started);
  }
  own->state = 0;
  return STERNA_SUCCESS;
}
