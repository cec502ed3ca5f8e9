// balance.h: the load of nodes. A call of a mobile rank lies in the rank's heap and moves with it.
#include <new>
#include <optional>

#include <sterna/balance.h>

#include "rpc/rank_call.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/node.h"
#include "runtime/node_of_process.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

using sterna::Result;
using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;
namespace capi = sterna::runtime::capi;
namespace rpc = sterna::rpc;

/// One of the two: of a mobile rank, or of a process.
struct sterna_load_call {
  std::optional<rpc::RankCall> of_rank;
  std::optional<rpc::PendingCall> of_process;
};

namespace {

/// Where the caller's calls are kept: what moves with a mobile rank, else the process's heap.
sterna::memory::Heap& heap_of_caller() noexcept {
  return capi::is_mobile() ? *find_current_rank()->heap : *sterna::memory::Heap::process();
}

void free_call(sterna_load_call* call) noexcept {
  call->~sterna_load_call();
  heap_of_caller().deallocate(call);
}

sterna_status check_node(std::uint32_t node) noexcept {
  const RankContext* const rank = find_current_rank();
  if (rank == nullptr || (!capi::is_mobile() && capi::program() == nullptr)) {
    return STERNA_NOT_STARTED;
  }
  const std::uint32_t count = rank->transport->job().node_count;
  return node < count
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_INVALID_ARGUMENT, "node {} is not 0 to {}", node, count - 1);
}

sterna_status start(std::uint32_t node, sterna_load_call& call) {
  if (!capi::is_mobile()) {
    call.of_process.emplace();
    capi::program()->rpc->start(node, sterna::runtime::kNodeLoadService, {}, *call.of_process);
    return STERNA_SUCCESS;
  }
  call.of_rank.emplace(*find_current_rank()->slot);
  const auto sent = sterna::runtime::node_of_process()->rpc().start(
      node, sterna::runtime::kNodeLoadService, {}, *call.of_rank);
  return sent ? STERNA_SUCCESS : capi::to_status(sent.error().code);
}

/// The node is asked for anew after every wait: the rank may be on another one.
Result<rpc::Bytes> finish(sterna_load_call& call) {
  if (call.of_process) {
    call.of_process->done.wait(*capi::program()->rank->progress);
    return std::move(call.of_process->reply);
  }
  RankContext& rank = *find_current_rank();
  do {
    sterna::runtime::safe_point(rank);
  } while (
      !sterna::runtime::node_of_process()->rpc().wait(*call.of_rank, {.is_interruptible = true}));
  return sterna::runtime::node_of_process()->rpc().take(*call.of_rank);
}

sterna_status store(Result<rpc::Bytes> reply, sterna_node_load& load) noexcept {
  if (!reply) {
    return capi::to_status(reply.error().code);
  }
  auto decoded = sterna::runtime::decode_node_load(reply.value());
  if (!decoded) {
    return STERNA_SYSTEM;
  }
  load.ranks = decoded.value().ranks;
  load.workers = decoded.value().workers;
  load.processor_ns = decoded.value().processor_ns;
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status sterna_node_load_start(uint32_t node, sterna_load_call** call) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = check_node(node); bad != STERNA_SUCCESS) {
    return bad;
  }
  if (call == nullptr) {
    return capi::refuse_argument(__func__);
  }
  void* const memory = heap_of_caller().allocate(sizeof(sterna_load_call));
  if (memory == nullptr) {
    return STERNA_OUT_OF_MEMORY;
  }
  auto* const made = new (memory) sterna_load_call;
  const sterna_status status = capi::guarded([&] { return start(node, *made); });
  if (status == STERNA_SUCCESS) {
    *call = made;
  } else {
    free_call(made);
  }
  return status;
}

int sterna_node_load_is_done(const sterna_load_call* call) noexcept {
  return (call->of_rank ? call->of_rank->done() : call->of_process->done.done()) ? 1 : 0;
}

sterna_status sterna_node_load_wait(sterna_load_call* call, sterna_node_load* load) noexcept {
  const RuntimeScope scope;
  if (call == nullptr || load == nullptr || load->size_bytes != sizeof *load) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status bad = check_node(0); bad != STERNA_SUCCESS) {
    return bad;
  }
  if (sterna_node_load_is_done(call) == 0 && capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  const sterna_status status = capi::guarded([&] { return store(finish(*call), *load); });
  free_call(call);
  return status;
}

sterna_status sterna_node_load_query(uint32_t node, sterna_node_load* load) noexcept {
  if (load == nullptr || load->size_bytes != sizeof *load) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  sterna_load_call* call = nullptr;
  const sterna_status status = sterna_node_load_start(node, &call);
  return status == STERNA_SUCCESS ? sterna_node_load_wait(call, load) : status;
}
