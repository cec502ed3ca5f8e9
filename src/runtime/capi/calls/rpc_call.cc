// rpc.h: calls whose arguments lie in one piece.
#include <new>

#include "progress/progress.h"
#include "runtime/capi/calls/rpc.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"

namespace sterna::runtime::capi {
namespace {

// Who waits for less gives up in time, also where a reply comes within a few microseconds.
constexpr std::uint64_t kMomentNs = 1'000'000;

std::span<const std::byte> bytes_of(const void* data, std::size_t bytes) noexcept {
  return {static_cast<const std::byte*>(data), bytes};
}

/// A long reply comes from where it lies.
sterna_status receive_long(rpc::Rpc& rpc, rpc::PendingCall& call, void* reply,
                           std::size_t bytes_max, const char* entry_point) noexcept {
  net::RecvRequest receive;
  rpc.receive_reply(call, {static_cast<std::byte*>(reply), bytes_max}, receive);
  receive.done.wait(*program()->rank->progress);
  if (receive.fault == net::Fault::none && receive.envelope.bytes != call.reply_bytes) {
    return refuse(STERNA_CLOSED, "{}: the reply of node {} was taken back: the program stops",
                  entry_point, call.to_node);
  }
  if (receive.fault == net::Fault::none || receive.fault == net::Fault::truncated) {
    return STERNA_SUCCESS;
  }
  return refuse(to_status(receive.fault), "{}: the reply of node {}: {}", entry_point, call.to_node,
                net::to_string(receive.fault));
}

sterna_status call_and_wait(std::uint32_t node, const char* name,
                            std::span<const std::byte> arguments, void* reply,
                            std::size_t bytes_max, std::size_t* bytes, std::uint64_t timeout_ns) {
  rpc::Rpc& rpc = *program()->rpc;
  rpc::PendingCall call;
  call.room = {static_cast<std::byte*>(reply), bytes_max};
  call.only_waiter = threads::self();
  const std::uint64_t service = number_of_service(name);
  const bool is_long = arguments.size() > kRpcShortBytes;
  const bool is_copied = is_long && timeout_ns != STERNA_FOREVER;
  std::unique_ptr<OutBox> box;
  if (!is_long && timeout_ns >= kMomentNs && rpc.start_at_once(node, service, arguments, call))
      [[likely]] {
    // It has ended, or goes on as others do.
  } else if (is_long) {
    box = std::make_unique<OutBox>();
    box->set(arguments, is_copied);
    box->will_be_awaited();
    rpc.start(node, service, box->block(), call,
              {.parts = box->parts(), .are_parts_kept = !is_copied});
  } else {
    rpc.start(node, service, arguments, call);
  }
  if (is_long && timeout_ns == STERNA_FOREVER) {
    rpc.poll_for(call, arguments.size());
  }
  if (!rpc.wait(call, deadline_of(timeout_ns))) {
    rpc.withdraw(call, {Errc::timed_out, fmt::format("node {} has not answered {} within {} ns",
                                                     node, name, timeout_ns)});
  }
  if (is_copied) {
    OutBox::release(std::move(box));
  } else if (is_long) {
    box->await_sent(*program()->rank->progress);
  }
  return finish_call(rpc, call, reply, bytes_max, bytes, "sterna_rpc_call_for");
}

}  // namespace

namespace {

sterna_status check_caller_of(const Program* self, const char* call, bool may_wait) noexcept {
  if (self == nullptr) {
    return why_no_program();
  }
  if (may_wait && is_in_callback(*self->rank)) {
    return refuse(STERNA_DEADLOCK,
                  "{}: a quick service (or a callback of a message) must not wait: register it as "
                  "STERNA_RPC_THREAD",
                  call);
  }
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status check_caller(const char* call, bool may_wait) noexcept {
  return check_caller_of(program(), call, may_wait);
}

sterna_status check_call(std::uint32_t node, const char* name, const void* arguments,
                         std::size_t bytes, const char* call, bool may_wait) noexcept {
  const Program* const self = program();
  if (const sterna_status bad = check_caller_of(self, call, may_wait); bad != STERNA_SUCCESS) {
    return bad;
  }
  const std::uint32_t node_count = self->rpc->node_count();
  if (node >= node_count || name == nullptr || (arguments == nullptr && bytes != 0)) {
    return refuse(STERNA_INVALID_ARGUMENT, "{}: node {} of {}, or a NULL", call, node, node_count);
  }
  return STERNA_SUCCESS;
}

sterna_status finish_call(rpc::Rpc& rpc, rpc::PendingCall& call, void* reply, std::size_t bytes_max,
                          std::size_t* bytes, const char* entry_point) noexcept {
  if (!call.reply) {
    const Error& error = call.reply.error();
    const sterna_status status =
        error.code == Errc::unsupported ? STERNA_NOT_FOUND : to_status(error.code);
    return refuse(status, "{}: {}", entry_point,
                  error.text.empty() ? sterna_status_text(status) : error.text);
  }
  if (call.part_bytes != 0) {
    const sterna_status bad = receive_long(rpc, call, reply, bytes_max, entry_point);
    if (bad != STERNA_SUCCESS) {
      return bad;
    }
  } else if (call.room.data() == nullptr && bytes_max != 0) {
    const rpc::Bytes& all = call.reply.value();
    std::copy_n(all.begin(), std::min(all.size(), bytes_max), static_cast<std::byte*>(reply));
  }
  if (bytes != nullptr) {
    *bytes = call.reply_bytes;
  }
  if (call.status != STERNA_SUCCESS) {
    const auto status = static_cast<sterna_status>(call.status);
    return call.text.empty() ? refuse(status, "{}: node {} says: {}", entry_point, call.to_node,
                                      sterna_status_text(status))
                             : refuse(status, "{}: {}", entry_point, call.text);
  }
  return call.reply_bytes <= bytes_max
             ? STERNA_SUCCESS
             : refuse(STERNA_TRUNCATED, "{}: the reply has {} bytes, its memory {}", entry_point,
                      call.reply_bytes, bytes_max);
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

sterna_status sterna_rpc_call_for(uint32_t node, const char* name, const void* arguments,
                                  size_t argument_bytes, void* reply, size_t bytes_max,
                                  size_t* bytes, uint64_t timeout_ns) noexcept {
  const sterna::runtime::HotScope scope;
  if (const sterna_status bad =
          capi::check_call(node, name, arguments, argument_bytes, __func__, true);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (reply == nullptr && bytes_max != 0) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    return capi::call_and_wait(node, name, capi::bytes_of(arguments, argument_bytes), reply,
                               bytes_max, bytes, timeout_ns);
  });
}

namespace {

/// In the runtime.
sterna_status post(std::uint32_t node, const char* name, const void* arguments,
                   std::size_t argument_bytes, bool may_wait) noexcept {
  if (const sterna_status bad =
          capi::check_call(node, name, arguments, argument_bytes, "sterna_rpc_post", false);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  return capi::guarded([&] {
    const auto given = capi::bytes_of(arguments, argument_bytes);
    std::unique_ptr<capi::OutBox> box;
    sterna::rpc::CallOptions options{.may_wait = may_wait};
    if (argument_bytes > capi::kRpcShortBytes) {
      box = std::make_unique<capi::OutBox>();
      box->set(given, true);
      options.parts = box->parts();
    }
    const auto sent = capi::program()->rpc->post(node, capi::number_of_service(name),
                                                 box != nullptr ? box->block() : given, options);
    if (box != nullptr) {
      capi::OutBox::release(std::move(box));
    }
    return sent ? STERNA_SUCCESS
                : capi::refuse(capi::to_status(sent.error().code), "sterna_rpc_post: {}",
                               sent.error().text);
  });
}

}  // namespace

sterna_status sterna_rpc_post(uint32_t node, const char* name, const void* arguments,
                              size_t argument_bytes) noexcept {
  if (capi::is_in_poll()) {  // Which is in the runtime.
    const capi::Program* const self = capi::program();
    const bool is_short = self != nullptr && node < self->rpc->node_count() && name != nullptr &&
                          (arguments != nullptr || argument_bytes == 0) &&
                          argument_bytes <= capi::kRpcShortBytes;
    if (is_short && self->rpc->try_post(node, capi::number_of_service(name),
                                        capi::bytes_of(arguments, argument_bytes))) [[likely]] {
      return STERNA_SUCCESS;
    }
    return post(node, name, arguments, argument_bytes, false);
  }
  const sterna::runtime::HotScope scope;
  return post(node, name, arguments, argument_bytes, true);
}

sterna_status sterna_rpc_start(uint32_t node, const char* name, const void* arguments,
                               size_t argument_bytes, sterna_rpc_call** call) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad =
          capi::check_call(node, name, arguments, argument_bytes, __func__, false);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (call == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    auto made = std::make_unique<sterna_rpc_call>();
    made->box = std::make_unique<capi::OutBox>();
    // Short ones are copied where they are sent.
    made->box->set(capi::bytes_of(arguments, argument_bytes),
                   argument_bytes > capi::kRpcShortBytes);
    capi::program()->rpc->start(node, capi::number_of_service(name), made->box->block(), made->call,
                                {.parts = made->box->parts()});
    *call = made.release();
    return STERNA_SUCCESS;
  });
}

namespace {

/// Its reply is there, and what it was asked with may be changed.
bool is_over(const sterna_rpc_call& call) noexcept {
  return call.call.done.done() && call.call.part_bytes == 0 && call.box->is_sent();
}

}  // namespace

int sterna_rpc_is_done(const sterna_rpc_call* call) noexcept {
  return call->call.done.done() ? 1 : 0;
}

sterna_status sterna_rpc_wait(sterna_rpc_call* call, void* reply, size_t bytes_max,
                              size_t* bytes) noexcept {
  const RuntimeScope scope;
  if (call == nullptr || (reply == nullptr && bytes_max != 0)) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status bad = capi::check_caller(__func__, !is_over(*call));
      bad != STERNA_SUCCESS) {
    return bad;
  }
  const std::unique_ptr<sterna_rpc_call> own{call};
  sterna::rpc::Rpc& rpc = *capi::program()->rpc;
  (void)rpc.wait(call->call);
  call->box->await_sent(*capi::program()->rank->progress);
  return capi::finish_call(rpc, call->call, reply, bytes_max, bytes, __func__);
}

sterna_status sterna_rpc_may_wait(void) noexcept {
  const sterna::runtime::HotScope scope;
  return capi::check_caller(__func__, true);
}

sterna_status sterna_rpc_await(sterna_rpc_call* call, size_t* bytes, uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (call == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status bad = capi::check_caller(__func__, !call->call.done.done());
      bad != STERNA_SUCCESS) {
    return bad;
  }
  if (!capi::program()->rpc->wait(call->call, capi::deadline_of(timeout_ns))) {
    return capi::refuse(STERNA_TIMED_OUT, "{}: the call goes on", __func__);
  }
  if (bytes != nullptr) {
    *bytes = call->call.reply_bytes;
  }
  return STERNA_SUCCESS;
}
