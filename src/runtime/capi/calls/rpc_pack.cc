// rpc.h: calls that are built piece by piece.
#include <new>

#include "progress/progress.h"
#include "runtime/capi/calls/rpc.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"

namespace sterna::runtime::capi {
namespace {

/// In memory of the program, whose thread at a time is the guard.
struct RpcPacking {
  static constexpr std::uint64_t kMade = 0x9ac4'ed03'c0de'0001;

  std::uint64_t made = kMade;
  std::uint64_t service = 0;
  rpc::ThreadWish wish;
  std::uint64_t timeout_ns = STERNA_FOREVER;
  std::unique_ptr<OutBox> box;
};
static_assert(sizeof(RpcPacking) <= sizeof(sterna_rpc_packing));

RpcPacking* packing_in(sterna_rpc_packing* storage) noexcept {
  auto* const packing = reinterpret_cast<RpcPacking*>(storage);
  return packing != nullptr && packing->made == RpcPacking::kMade ? packing : nullptr;
}

sterna_status refuse_unbegun(const sterna_rpc_packing* storage, const char* call) noexcept {
  return refuse(storage == nullptr ? STERNA_INVALID_ARGUMENT : STERNA_REFUSED,
                "{}: the packing is NULL, or has not begun", call);
}

struct EndOptions {
  bool is_good = true;   // The other arguments.
  bool may_wait = true;  // It does, for the pieces or for the reply.
};

/// What was packed, which is over: then use(packing); else why not.
template <typename Use>
sterna_status end(sterna_rpc_packing* storage, std::uint32_t node, const EndOptions& options,
                  const char* call, Use use) noexcept {
  RpcPacking* const packing = packing_in(storage);
  if (packing == nullptr) {
    return refuse_unbegun(storage, call);
  }
  RpcPacking own{std::move(*packing)};
  packing->~RpcPacking();
  packing->made = 0;
  sterna_status status = check_call(node, "", nullptr, 0, call, options.may_wait);
  if (status == STERNA_SUCCESS && !options.is_good) {
    status = refuse_argument(call);
  }
  if (status != STERNA_SUCCESS) {
    return status;
  }
  own.box->fill();
  return guarded([&] { return use(own); });
}

sterna_status call_packed(RpcPacking& packing, std::uint32_t node, void* reply,
                          std::size_t bytes_max, std::size_t* bytes) {
  rpc::Rpc& rpc = *program()->rpc;
  rpc::PendingCall call;
  call.room = {static_cast<std::byte*>(reply), bytes_max};
  call.only_waiter = threads::self();
  packing.box->will_be_awaited();
  rpc.start(node, packing.service, packing.box->block(), call,
            {.wish = packing.wish,
             .parts = packing.box->parts(),
             .are_parts_kept = packing.timeout_ns == STERNA_FOREVER});
  if (packing.timeout_ns == STERNA_FOREVER) {
    rpc.poll_for(call, packing.box->part_bytes());
  }
  if (!rpc.wait(call, deadline_of(packing.timeout_ns))) {
    rpc.withdraw(call, {Errc::timed_out, fmt::format("node {} has not answered within {} ns", node,
                                                     packing.timeout_ns)});
  }
  packing.box->await_sent(*program()->rank->progress);
  return finish_call(rpc, call, reply, bytes_max, bytes, "sterna_rpc_call_packed");
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::RpcPacking;
using sterna::runtime::HotScope;

sterna_status sterna_rpc_begin(sterna_rpc_packing* packing, const char* name,
                               const sterna_rpc_options* options) noexcept {
  const HotScope scope;
  if (const sterna_status bad = capi::check_caller(__func__, false); bad != STERNA_SUCCESS) {
    return bad;
  }
  const sterna_rpc_options used =
      options == nullptr ? sterna_rpc_options STERNA_RPC_OPTIONS_DEFAULT : *options;
  if (packing == nullptr || name == nullptr || used.size_bytes != sizeof used ||
      used.stack_bytes > capi::kStackBytesMax ||
      (used.priority > STERNA_PRIORITY_MAX && used.priority != STERNA_RPC_AS_REGISTERED)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{}: a NULL, or options that STERNA_RPC_OPTIONS_DEFAULT has not made, a "
                        "priority above {}, a stack above 2 GiB",
                        __func__, STERNA_PRIORITY_MAX);
  }
  return capi::guarded([&] {
    auto box = std::make_unique<capi::OutBox>();
    auto* const made = new (packing) RpcPacking;
    made->service = capi::number_of_service(name);
    made->timeout_ns = used.timeout_ns;
    made->wish.stack_kib = static_cast<std::uint32_t>((used.stack_bytes + 1023) >> 10);
    if (used.priority != STERNA_RPC_AS_REGISTERED) {
      made->wish.priority = static_cast<std::uint8_t>(used.priority);
    }
    made->box = std::move(box);
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_rpc_pack(sterna_rpc_packing* packing, const void* data, size_t bytes,
                              sterna_pack_mode mode) noexcept {
  const HotScope scope;
  RpcPacking* const own = capi::packing_in(packing);
  if (own == nullptr) {
    return capi::refuse_unbegun(packing, __func__);
  }
  if ((data == nullptr && bytes != 0) || mode < STERNA_PACK_SAFER || mode > STERNA_PACK_CHEAPER) {
    return capi::refuse_argument(__func__);
  }
  if (!own->box->has_room(bytes)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{}: a call has at most {} pieces above {} bytes, and {} bytes of others",
                        __func__, sterna::rpc::kPartsMax, capi::kRpcShortBytes,
                        capi::kRpcBlockBytesMax);
  }
  return capi::guarded([&] {
    if (mode == STERNA_PACK_LATER) {
      own->box->add_later(data, bytes);
    } else {
      own->box->add(data, bytes, mode == STERNA_PACK_SAFER);
    }
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_rpc_call_packed(sterna_rpc_packing* packing, uint32_t node, void* reply,
                                     size_t bytes_max, size_t* bytes) noexcept {
  const HotScope scope;
  return capi::end(
      packing, node, {.is_good = reply != nullptr || bytes_max == 0}, __func__,
      [&](RpcPacking& own) { return capi::call_packed(own, node, reply, bytes_max, bytes); });
}

sterna_status sterna_rpc_post_packed(sterna_rpc_packing* packing, uint32_t node) noexcept {
  const HotScope scope;
  return capi::end(packing, node, {}, __func__, [&](RpcPacking& own) {
    own.box->will_be_awaited();
    const auto sent = capi::program()->rpc->post(
        node, own.service, own.box->block(),
        {.wish = own.wish, .parts = own.box->parts(), .may_wait = true});
    own.box->await_sent(*capi::program()->rank->progress);
    return sent ? STERNA_SUCCESS
                : capi::refuse(capi::to_status(sent.error().code), "sterna_rpc_post_packed: {}",
                               sent.error().text);
  });
}

sterna_status sterna_rpc_start_packed(sterna_rpc_packing* packing, uint32_t node,
                                      sterna_rpc_call** call) noexcept {
  const HotScope scope;
  const capi::EndOptions options{.is_good = call != nullptr, .may_wait = false};
  return capi::end(packing, node, options, __func__, [&](RpcPacking& own) {
    auto made = std::make_unique<sterna_rpc_call>();
    made->box = std::move(own.box);
    capi::program()->rpc->start(node, own.service, made->box->block(), made->call,
                                {.wish = own.wish, .parts = made->box->parts()});
    *call = made.release();
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_rpc_cancel(sterna_rpc_packing* packing) noexcept {
  const HotScope scope;
  RpcPacking* const own = capi::packing_in(packing);
  if (own == nullptr) {
    return capi::refuse_unbegun(packing, __func__);
  }
  own->~RpcPacking();
  own->made = 0;
  return STERNA_SUCCESS;
}
