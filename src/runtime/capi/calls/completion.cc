// completion.h: calls that nobody was asked for. That of a mobile rank lies in the rank's system
// heap and moves with it; a signal goes to the rank as a note, wherever it is.
#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <optional>

#include <sterna/completion.h>

#include "base/clock.h"
#include "rpc/rank_call.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/node.h"
#include "runtime/node_of_process.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
namespace rpc = sterna::rpc;
using sterna::Errc;
using sterna::Error;
using sterna::Result;
using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::size_t kPayloadBytesMax = 15 << 20;

/// One of the two: of a mobile rank, or of a process.
struct Awaited {
  std::optional<rpc::RankCall> of_rank;
  std::optional<rpc::PendingCall> of_process;
};

/// In memory of the program.
struct OwnCompletion {
  static constexpr std::uint64_t kMade = 0xc0de'9ac4'ed04'0001;
  std::uint64_t made = kMade;
  Awaited* awaited = nullptr;  // Of the heap that moves with its rank, if it has one.
};
static_assert(sizeof(OwnCompletion) <= sizeof(sterna_completion));
static_assert(sizeof(rpc::ReplyTo) == 3 * sizeof(std::uint64_t));

OwnCompletion* completion_in(sterna_completion* storage) noexcept {
  auto* const completion = reinterpret_cast<OwnCompletion*>(storage);
  return completion != nullptr && completion->made == OwnCompletion::kMade ? completion : nullptr;
}

sterna::memory::Heap& heap_of_caller() noexcept {
  return capi::is_mobile() ? *find_current_rank()->heap : *sterna::memory::Heap::process();
}

/// Of the node where the caller is now: asked for anew after every wait. Null: not started.
rpc::Rpc* rpc_here() noexcept {
  if (capi::is_mobile()) {
    return &sterna::runtime::node_of_process()->rpc();
  }
  return capi::program() != nullptr ? capi::program()->rpc.get() : nullptr;
}

void free_awaited(OwnCompletion& own) noexcept {
  own.awaited->~Awaited();
  heap_of_caller().deallocate(own.awaited);
  own = {};
  own.made = 0;
}

bool is_done(const Awaited& awaited) noexcept {
  return awaited.of_rank ? awaited.of_rank->done() : awaited.of_process->done.done();
}

/// False: the time is over. Switches; a rank may come back on another node.
bool wait_rank(rpc::RankCall& call, std::uint64_t deadline_ns) noexcept {
  for (;;) {
    RankContext& rank = *find_current_rank();
    sterna::runtime::safe_point(rank);
    capi::call_ended_of_mobile(rank);
    if (rpc_here()->wait(call, {.deadline_ns = deadline_ns, .is_interruptible = true})) {
      return true;
    }
    if (sterna::now_ns() >= deadline_ns) {
      return false;
    }
  }
}

/// Waiting will not wait: the whole payload is there.
bool is_over(const Awaited& awaited) noexcept {
  return is_done(awaited) && (awaited.of_rank || awaited.of_process->part_bytes == 0);
}

sterna_status refuse_truncated(std::size_t bytes, std::size_t bytes_max) noexcept {
  return capi::refuse(STERNA_TRUNCATED,
                      "sterna_completion_wait: the payload has {} bytes, its memory {}", bytes,
                      bytes_max);
}

/// What the signal brought, but for the long payload of a process.
sterna_status store(Result<rpc::Bytes>& given, void* data, std::size_t bytes_max,
                    std::size_t* bytes) noexcept {
  if (!given) {
    const sterna_status status = capi::to_status(given.error().code);
    return capi::refuse(status, "sterna_completion_wait: {}", given.error().text);
  }
  const rpc::Bytes& all = given.value();
  std::copy_n(all.begin(), std::min(all.size(), bytes_max), static_cast<std::byte*>(data));
  if (bytes != nullptr) {
    *bytes = all.size();
  }
  return all.size() <= bytes_max ? STERNA_SUCCESS : refuse_truncated(all.size(), bytes_max);
}

/// A long payload comes from where it lies to where it is wanted.
sterna_status receive_long(rpc::PendingCall& call, void* data, std::size_t bytes_max,
                           std::size_t* bytes) noexcept {
  sterna::net::RecvRequest receive;
  rpc_here()->receive_reply(call, {static_cast<std::byte*>(data), bytes_max}, receive);
  receive.done.wait(*capi::program()->rank->progress);
  if (receive.fault != sterna::net::Fault::none && receive.fault != sterna::net::Fault::truncated) {
    return capi::refuse(capi::to_status(receive.fault), "sterna_completion_wait: node {}: {}",
                        call.to_node, sterna::net::to_string(receive.fault));
  }
  if (bytes != nullptr) {
    *bytes = call.reply_bytes;
  }
  return call.reply_bytes <= bytes_max ? STERNA_SUCCESS
                                       : refuse_truncated(call.reply_bytes, bytes_max);
}

sterna_status finish_process(rpc::PendingCall& call, void* data, std::size_t bytes_max,
                             std::size_t* bytes) noexcept {
  return call.part_bytes != 0 ? receive_long(call, data, bytes_max, bytes)
                              : store(call.reply, data, bytes_max, bytes);
}

rpc::ReplyTo target_of(const sterna_completion_token& token) noexcept {
  std::array<std::uint64_t, 3> words;
  std::ranges::copy_n(token.opaque, words.size(), words.begin());
  return std::bit_cast<rpc::ReplyTo>(words);
}

sterna_status refuse_early(const char* call) noexcept {
  return capi::refuse(STERNA_NOT_STARTED, "{}: before sterna_start, or after sterna_stop", call);
}

/// Why the token cannot be meant; SUCCESS: it can.
sterna_status check_token(const sterna_completion_token* token, const char* call) noexcept {
  const RankContext* const rank = find_current_rank();
  if (rank == nullptr || rpc_here() == nullptr) {
    return refuse_early(call);
  }
  const sterna::net::JobMap& job = rank->transport->job();
  if (token == nullptr) {
    return capi::refuse_argument(call);
  }
  const rpc::ReplyTo to = target_of(*token);
  const bool is_sensible =
      to.id != 0 && to.id >> rpc::kIdBits == 0 && to.node < job.node_count &&
      (capi::is_mobile() ? to.rank < job.rank_count && to.cookie != 0 : to.rank == rpc::kNoRank);
  return is_sensible ? STERNA_SUCCESS
                     : capi::refuse(STERNA_INVALID_ARGUMENT,
                                    "{}: that is no token of a completion of this job", call);
}

sterna_status signal(const sterna_completion_token* token, rpc::Answer answer,
                     const char* call) noexcept {
  return capi::guarded([&] {
    const auto sent = rpc_here()->signal(target_of(*token), std::move(answer));
    return sent ? STERNA_SUCCESS
                : capi::refuse(capi::to_status(sent.error().code), "{}: {}", call,
                               sent.error().text);
  });
}

}  // namespace

sterna_status sterna_completion_init(sterna_completion* completion, uint32_t node,
                                     sterna_completion_token* token) noexcept {
  const RuntimeScope scope;
  const RankContext* const rank = find_current_rank();
  if (rank == nullptr || rpc_here() == nullptr) {
    return refuse_early(__func__);
  }
  if (completion == nullptr || token == nullptr ||
      (node >= rank->transport->job().node_count && node != STERNA_ANY_NODE)) {
    return capi::refuse_argument(__func__);
  }
  void* const memory = heap_of_caller().allocate(sizeof(Awaited));
  if (memory == nullptr) {
    return capi::refuse(STERNA_OUT_OF_MEMORY, "{}: no memory for a completion", __func__);
  }
  auto* const own = ::new (completion) OwnCompletion;
  own->awaited = ::new (memory) Awaited;
  const sterna_status status = capi::guarded([&] {
    rpc::ReplyTo to;
    if (capi::is_mobile()) {
      if (node != STERNA_ANY_NODE && rpc_here()->is_lost(node)) {
        return capi::refuse(STERNA_CLOSED, "sterna_completion_init: node {} is gone", node);
      }
      own->awaited->of_rank.emplace(*rank->slot);
      to = rpc_here()->expect(*own->awaited->of_rank, node);
    } else {
      own->awaited->of_process.emplace();
      to = rpc_here()->expect(*own->awaited->of_process, node);
    }
    std::ranges::copy(std::bit_cast<std::array<std::uint64_t, 3>>(to), token->opaque);
    token->opaque[3] = 0;
    if (to.id == 0) {  // Of a process: it has ended already.
      const Error& why = own->awaited->of_process->reply.error();
      return capi::refuse(capi::to_status(why.code), "sterna_completion_init: {}", why.text);
    }
    return STERNA_SUCCESS;
  });
  if (status != STERNA_SUCCESS) {
    free_awaited(*own);
  }
  return status;
}

sterna_status sterna_completion_signal(const sterna_completion_token* token, const void* data,
                                       size_t bytes) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = check_token(token, __func__); bad != STERNA_SUCCESS) {
    return bad;
  }
  if ((data == nullptr && bytes != 0) || bytes > kPayloadBytesMax) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    const auto* const from = static_cast<const std::byte*>(data);
    return signal(token, {.reply = rpc::Bytes(from, from + bytes)}, "sterna_completion_signal");
  });
}

sterna_status sterna_completion_fail(const sterna_completion_token* token,
                                     const char* text) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = check_token(token, __func__); bad != STERNA_SUCCESS) {
    return bad;
  }
  return capi::guarded([&] {
    return signal(token, {.reply = Error{Errc::refused, text == nullptr ? "" : text}},
                  "sterna_completion_fail");
  });
}

int sterna_completion_is_done(const sterna_completion* completion) noexcept {
  const OwnCompletion* const own = completion_in(const_cast<sterna_completion*>(completion));
  return own != nullptr && is_done(*own->awaited) ? 1 : 0;
}

sterna_status sterna_completion_wait(sterna_completion* completion, void* data, size_t bytes_max,
                                     size_t* bytes, uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  OwnCompletion* const own = completion_in(completion);
  if (own == nullptr || (data == nullptr && bytes_max != 0)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "sterna_completion_wait: a NULL, or a completion that was not initialised, "
                        "or has ended");
  }
  if (rpc_here() == nullptr) {
    return refuse_early(__func__);
  }
  Awaited& awaited = *own->awaited;
  if (!is_over(awaited) && capi::is_in_callback(*find_current_rank())) {
    return capi::refuse(STERNA_DEADLOCK, "{}: a quick service or a callback must not wait",
                        __func__);
  }
  const std::uint64_t deadline_ns = capi::deadline_of(timeout_ns);
  const bool has_ended = awaited.of_rank ? wait_rank(*awaited.of_rank, deadline_ns)
                                         : rpc_here()->wait(*awaited.of_process, deadline_ns);
  if (!has_ended) {
    return capi::refuse(STERNA_TIMED_OUT, "{}: it goes on", __func__);
  }
  const sterna_status status = capi::guarded([&] {
    if (awaited.of_process) {
      return finish_process(*awaited.of_process, data, bytes_max, bytes);
    }
    auto given = rpc_here()->take(*awaited.of_rank);
    return store(given, data, bytes_max, bytes);
  });
  free_awaited(*own);
  return status;
}

sterna_status sterna_completion_destroy(sterna_completion* completion) noexcept {
  const RuntimeScope scope;
  OwnCompletion* const own = completion_in(completion);
  if (own == nullptr || rpc_here() == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (own->awaited->of_rank) {
    (void)capi::guarded([&] {
      (void)rpc_here()->take(*own->awaited->of_rank);
      return STERNA_SUCCESS;
    });
  } else {
    rpc_here()->withdraw(*own->awaited->of_process, {Errc::closed, {}});
    rpc_here()->drop_reply(*own->awaited->of_process);
  }
  free_awaited(*own);
  return STERNA_SUCCESS;
}
