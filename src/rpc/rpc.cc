// Requests, services and replies of nodes. Calls of ranks are in rank_call.cc.
#include "rpc/rpc.h"

#include "base/hash.h"
#include "memory/rank_slot.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "threads/team.h"
#include "threads/thread.h"

namespace sterna::rpc {
namespace {

// Services call and wait: as much stack as a small program.
constexpr std::size_t kServiceStackBytes = 248 << 10;

Error lost(std::uint32_t node) {
  return {Errc::closed, fmt::format("node {} is gone", node)};
}

}  // namespace

/// A request on its way to a thread of its own.
struct Rpc::Work {
  Rpc* rpc;
  const Entry* entry;
  std::uint32_t from_node;
  ReplyTo reply_to;
  Bytes arguments;
};

Rpc::Rpc(const RpcOptions& options)
    : options_{options},
      log_{options.log == nullptr ? Logger{} : Logger{*options.log, "rpc"}},
      lost_(options.transport->job().node_count) {
  options.transport->register_node_handler(kNodeHandler, on_node_message, this);
  options.transport->register_rank_handler(kRankHandler, on_rank_note, this);
}

Rpc::~Rpc() = default;

void Rpc::add_service(std::string_view name, RunIn run_in, Service service, void* context) {
  check(run_in == RunIn::poll || options_.team != nullptr, "services in threads need a team");
  const auto [entry, is_new] = services_.try_emplace(
      hash_text(name),
      Entry{.name = std::string{name}, .run_in = run_in, .service = service, .context = context});
  check(is_new, "a name is registered once, and no two names share a number");
}

Result<> Rpc::send_request(std::uint32_t node, std::string_view name,
                           std::span<const std::byte> arguments, const ReplyTo& reply_to) {
  const Bytes bytes = encode({.kind = MessageKind::request,
                              .service = hash_text(name),
                              .reply_to = reply_to,
                              .body = arguments});
  return options_.transport->node_message(node, kNodeHandler, bytes);
}

void Rpc::start(std::uint32_t node, std::string_view name, std::span<const std::byte> arguments,
                PendingCall& call) {
  call.done.reset();
  call.to_node = node;
  ReplyTo reply_to{.node = options_.transport->job().node_index};
  bool is_lost = false;
  {
    const SpinGuard guard{lock_};
    is_lost = lost_[node];
    call.id = reply_to.id = next_id_++;
    if (!is_lost) {
      pending_.emplace(call.id, &call);
    }
  }
  if (is_lost) {
    call.reply = lost(node);
    call.done.complete();
    return;
  }
  if (Result<> sent = send_request(node, name, arguments, reply_to); !sent) {
    finish(call.id, sent.error());
  }
}

Result<Bytes> Rpc::call(std::uint32_t node, std::string_view name,
                        std::span<const std::byte> arguments, std::uint64_t deadline_ns) {
  if (memory::rank_slot_of(__builtin_frame_address(0)) != nullptr) {
    return call_from_rank(node, name, arguments, deadline_ns);
  }
  PendingCall call;
  start(node, name, arguments, call);
  const threads::Wake wake =
      call.done.done() ? threads::Wake::signalled
                       : call.done.wait_for(*options_.progress, {.deadline_ns = deadline_ns});
  if (wake != threads::Wake::signalled) {
    finish(call.id, Error{Errc::timed_out, fmt::format("node {} did not answer {}", node, name)});
    call.done.wait(*options_.progress);  // Either we finished it, or the reply is being stored.
  }
  return std::move(call.reply);
}

Result<> Rpc::post(std::uint32_t node, std::string_view name,
                   std::span<const std::byte> arguments) {
  return send_request(node, name, arguments, {.node = options_.transport->job().node_index});
}

void Rpc::finish(std::uint64_t id, Result<Bytes> reply) noexcept {
  PendingCall* call = nullptr;
  {
    const SpinGuard guard{lock_};
    const auto found = pending_.find(id);
    if (found == pending_.end()) {
      return;  // Timed out, or the node was lost: the reply comes too late.
    }
    call = found->second;
    pending_.erase(found);
  }
  call->reply = std::move(reply);
  call->done.complete();
}

void Rpc::lose_peer(std::uint32_t node) noexcept {
  std::vector<std::uint64_t> ids;
  {
    const SpinGuard guard{lock_};
    lost_[node] = true;
    for (const auto& [id, call] : pending_) {
      if (call->to_node == node) {
        ids.push_back(id);
      }
    }
  }
  for (const std::uint64_t id : ids) {
    finish(id, lost(node));
  }
  start_waiting();  // If it was the node that has the addresses, they end with an error.
}

void Rpc::on_node_message(void* self, std::uint32_t from_node,
                          std::span<const std::byte> bytes) noexcept {
  Rpc& rpc = *static_cast<Rpc*>(self);
  Result<Message> decoded = decode(bytes);
  if (!decoded) {
    rpc.log_.warn("node {} sent a call that cannot be read ({} bytes)", from_node, bytes.size());
    return;
  }
  const Message& message = decoded.value();
  const net::JobMap& job = rpc.options_.transport->job();
  const bool is_known =
      message.reply_to.node < job.node_count &&
      (message.reply_to.rank == kNoRank || message.reply_to.rank < job.rank_count);
  if (!is_known) {
    rpc.log_.warn("node {} sent a call of nobody of this job", from_node);
    return;
  }
  switch (message.kind) {
    case MessageKind::request:
      rpc.on_request(message, from_node);
      return;
    case MessageKind::reply:
      rpc.finish(message.reply_to.id, Bytes{message.body.begin(), message.body.end()});
      return;
    case MessageKind::error:
      rpc.finish(message.reply_to.id, decode_error(message.body));
      return;
  }
}

void Rpc::on_request(const Message& message, std::uint32_t from_node) {
  const auto found = services_.find(message.service);
  if (found == services_.end()) {
    reply(message.reply_to,
          Error{Errc::unsupported,
                fmt::format("node {} has no such service", options_.transport->job().node_index)});
    return;
  }
  const Request request{.from_node = from_node, .arguments = message.body};
  if (found->second.run_in == RunIn::poll) {
    serve(found->second, request, message.reply_to);
  } else {
    spawn(found->second, request, message.reply_to);
  }
}

void Rpc::serve(const Entry& entry, const Request& request, const ReplyTo& reply_to) {
  const Result<Bytes> result = entry.service(entry.context, request);
  if (reply_to.id != 0) {
    reply(reply_to, result);
  } else if (!result.has_value()) {
    log_.warn("{} from node {}: {}", entry.name, request.from_node, result.error().text);
  }
}

void Rpc::spawn(const Entry& entry, const Request& request, const ReplyTo& reply_to) {
  auto work =
      std::make_unique<Work>(Work{this, &entry, request.from_node, reply_to,
                                  Bytes{request.arguments.begin(), request.arguments.end()}});
  start_work(std::move(work));
}

void Rpc::start_work(std::unique_ptr<Work> work) {
  Result<threads::Thread*> thread = options_.team->spawn({.name = work->entry->name.c_str(),
                                                          .stack_bytes = kServiceStackBytes,
                                                          .detached = true,
                                                          .may_wait = false},
                                                         run_work, work.get());
  if (thread) {
    work.release();  // The thread's now.
  } else if (thread.error().code == Errc::timed_out) {
    waiting_.push_back(std::move(work));  // start_waiting() comes with the addresses.
  } else {
    reply(work->reply_to, thread.error());
  }
}

void Rpc::start_waiting() noexcept {
  std::vector<std::unique_ptr<Work>> waiting;
  waiting.swap(waiting_);
  for (std::unique_ptr<Work>& work : waiting) {
    start_work(std::move(work));  // In their order; those that must wait on are queued again.
  }
}

void Rpc::run_work(void* argument) {
  const std::unique_ptr<Work> work{static_cast<Work*>(argument)};
  work->rpc->serve(*work->entry, {.from_node = work->from_node, .arguments = work->arguments},
                   work->reply_to);
}

void Rpc::reply(const ReplyTo& to, const Result<Bytes>& result) {
  if (to.id == 0) {
    return;
  }
  if (to.rank != kNoRank) {
    reply_to_rank(to, result);
    return;
  }
  Result<Bytes> copy = result;
  const Bytes body = copy ? std::move(copy.value()) : encode_error(copy.error());
  const Bytes bytes = encode({.kind = copy ? MessageKind::reply : MessageKind::error,
                              .service = 0,
                              .reply_to = to,
                              .body = body});
  // A caller that is gone needs no reply.
  if (Result<> sent = options_.transport->node_message(to.node, kNodeHandler, bytes); !sent) {
    log_.debug("no reply to node {}: it is gone", to.node);
  }
}

}  // namespace sterna::rpc
