// Calls of nodes: asking, waiting, the reply. Calls of ranks are in rank_call.cc, services in
// serve.cc.
#include "rpc/rpc.h"

#include <algorithm>
#include <new>
#include <utility>

#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/part_list.h"
#include "rpc/poll_for.h"
#include "threads/direct.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::rpc {
namespace {

Error lost(std::uint32_t node) {
  return {Errc::closed, fmt::format("node {} is gone", node)};
}

/// They are not sent: their memory is the caller's again.
void fail(std::span<OutPart> parts) noexcept {
  for (OutPart& part : parts) {
    part.send.done.reset();
    part.send.fault = net::Fault::peer_lost;
    part.send.done.complete_alone();
  }
}

/// A post that was counted, and is not sent if there is no memory for it.
struct Unsent {
  PostWindow& window;
  std::uint64_t units;
  ~Unsent() {
    if (units != 0) [[unlikely]] {
      window.give_back(units);
    }
  }
};

void store(const Message& message, PendingCall& call) {
  call.status = message.status;
  call.text = message.text;
  call.reply_bytes = message.body.size();
  if (message.part_count != 0) {
    call.part_bytes = call.reply_bytes = part_of(message, 0).bytes;
    call.part_number = message.number;
  } else if (call.room.data() != nullptr) {
    // Not std::ranges::copy, which goes byte by byte where the iterators are those of spans.
    net::copy_bytes(call.room.data(), message.body.data(),
                    std::min(message.body.size(), call.room.size()));
  } else {
    call.reply = copy_of(message.body);
  }
}

void complete(PendingCall& call) noexcept {
  // Who polls for it cannot begin to wait at the same time.
  if (call.only_waiter != nullptr && call.only_waiter == threads::self()) {
    call.done.complete_alone();
  } else {
    call.done.complete();
  }
}

}  // namespace

Result<> Rpc::send_request(std::uint32_t node, std::uint64_t service,
                           std::span<const std::byte> arguments, const ReplyTo& reply_to,
                           const CallOptions& options) {
  if (options.parts.empty() && options.wish.is_none() && reply_to.rank == kNoRank && node != node_)
      [[likely]] {
    const PlainHead head = PlainHead::of_request(reply_to.id, service);
    return options_.transport->node_message(node, kNodeHandler, head.bytes(), arguments);
  }
  check(options.parts.empty() || has_parts(), "only nodes that are ranks send long pieces");
  Message message{
      .kind = MessageKind::request, .service = service, .reply_to = reply_to, .wish = options.wish};
  message.body = arguments;
  PartList parts{options.parts};
  if (!options.parts.empty()) {
    message.parts = parts.all();
    message.number = next_number();
  } else if (node == node_) {
    // A service in a thread of this node needs no message.
    const ServiceEntry* const entry = services_.find(service);
    if (entry != nullptr && entry->run_in == RunIn::thread) {
      message.reply_to.node = node;
      spawn(*entry, message, node);
      return Done{};
    }
  }
  const MessageHead head{message};
  Result<> sent = options_.transport->node_message(
      node, kNodeHandler, head.bytes(), message.body,
      options.parts.empty() ? 0 : options.parts.front().part.bytes);
  if (sent) {
    send_parts(node, options_.part_context, message.number, options.parts);
  }
  return sent;
}

void Rpc::start(std::uint32_t node, std::uint64_t service, std::span<const std::byte> arguments,
                PendingCall& call, const CallOptions& options) noexcept {
  const ReplyTo reply_to = expect(call, node);
  if (call.done.done()) {
    fail(options.parts);
    return;
  }
  Result<> sent = Done{};
  try {
    if (options.are_parts_kept && may_be_read(node, options.parts)) {
      sent = send_readable(node, service, arguments, call, options);
    } else if (may_be_tail(node, service, arguments.size(), options)) {
      sent = send_tail(node, service, arguments, reply_to.id, options.parts.front());
    } else {
      sent = send_request(node, service, arguments, reply_to, options);
    }
  } catch (const std::bad_alloc&) {
    sent = Errc::out_of_memory;
  }
  if (!sent) {
    fail(options.parts);
    finish(reply_to.id, sent.error());
  }
}

/// While the caller has the poller's turn nobody else takes the reply, or learns that a node is
/// lost: so the call is put into the table only if the reply does not come at once.
bool Rpc::start_at_once(std::uint32_t node, std::uint64_t service,
                        std::span<const std::byte> arguments, PendingCall& call) noexcept {
  net::Transport& transport = *options_.transport;
  const threads::Thread* const me = threads::self();
  if (node == node_ || (me != nullptr && !threads::is_alone(*me))) {
    return false;
  }
  const progress::Progress::Turn turn{*options_.progress};
  if (!turn.is_taken() || !transport.may_await_node(node) ||
      (at_once_id_.load(std::memory_order_relaxed) == 0 && !reserve_at_once())) {
    return false;
  }
  const std::uint64_t id = at_once_id_.load(std::memory_order_relaxed);
  const PlainHead head = PlainHead::of_request(id, service);
  if (!transport.try_node_message(node, kNodeHandler, head.bytes(), arguments)) {
    return false;
  }
  call.to_node = node;
  if (transport.try_await_node({.node = node,
                                .handler = kNodeHandler,
                                .word = PlainHead::of_reply(id).first_word(),
                                .into = call.room},
                               call.reply_bytes)) [[likely]] {
    at_once_id_.store(CallTable::next(id), std::memory_order_relaxed);
    call.done.complete_alone();
    return true;
  }
  at_once_id_.store(0, std::memory_order_relaxed);
  if (!calls_.put(id, call)) {
    call.reply = lost(node);
    complete(call);
  }
  return true;
}

/// It is counted first: its acknowledgement could come before this returns.
bool Rpc::try_post(std::uint32_t node, std::uint64_t service,
                   std::span<const std::byte> arguments) noexcept {
  PostWindow& window = peers_[node].to;
  const std::uint64_t units = units_of_post(arguments.size());
  (void)window.take(units);
  if (options_.transport->try_node_message(
          node, kNodeHandler, PlainHead::of_request(0, service).bytes(), arguments)) [[likely]] {
    return true;
  }
  window.give_back(units);
  return false;
}

bool Rpc::reserve_at_once() noexcept {
  try {
    at_once_id_.store(calls_.reserve(), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

Result<> Rpc::post(std::uint32_t node, std::uint64_t service, std::span<const std::byte> arguments,
                   const CallOptions& options) {
  PostWindow& window = peers_[node].to;
  std::uint64_t part_bytes = 0;
  for (const OutPart& part : options.parts) {
    part_bytes += part.part.bytes;
  }
  const std::uint64_t units = units_of_post(arguments.size(), part_bytes);
  const std::uint64_t place = window.take(units);
  if (options.may_wait && !window.is_open(place) && !window.wait(place, *options_.progress))
      [[unlikely]] {
    fail(options.parts);
    return lost(node);
  }
  Unsent unsent{window, units};
  Result<> sent = send_request(node, service, arguments, {.node = node_}, options);
  unsent.units = 0;
  if (!sent) {
    fail(options.parts);
  }
  return sent;
}

/// A node says how much has begun of what was posted to it.
void Rpc::on_begun(std::uint32_t from_node, std::uint64_t total) noexcept {
  if (!peers_[from_node].to.acknowledge(total)) {
    log_.warn("node {} says that more calls have begun than were posted to it", from_node);
  }
}

ReplyTo Rpc::expect(PendingCall& call, std::uint32_t node) noexcept {
  call.done.reset();
  if (!call.reply || !call.reply.value().empty()) {
    call.reply = Bytes{};
  }
  call.reply_bytes = call.part_bytes = 0;
  call.read_parts = {};
  call.status = 0;
  call.text.clear();
  call.to_node = node;
  ReplyTo reply_to{.node = node_};
  try {
    reply_to.id = calls_.add(call);
    if (reply_to.id != 0) [[likely]] {
      return reply_to;
    }
    call.reply = lost(node);
  } catch (const std::bad_alloc&) {
    call.reply = Errc::out_of_memory;
  }
  complete(call);
  return reply_to;
}

void Rpc::poll_for(const PendingCall& call, std::uint64_t part_bytes) noexcept {
  rpc::poll_for(*options_.progress, call.done, part_bytes);
}

bool Rpc::wait(PendingCall& call, std::uint64_t deadline_ns) noexcept {
  return call.done.done() || call.done.wait_for(*options_.progress, {.deadline_ns = deadline_ns}) ==
                                 threads::Wake::signalled;
}

void Rpc::withdraw(PendingCall& call, Error error) noexcept {
  finish(call.id, std::move(error));
  (void)wait(call);  // Either we finished it, or the reply is being stored.
}

Result<Bytes> Rpc::call(std::uint32_t node, std::string_view name,
                        std::span<const std::byte> arguments, std::uint64_t deadline_ns) {
  if (memory::rank_slot_of(__builtin_frame_address(0)) != nullptr) {
    return call_from_rank(node, name, arguments, deadline_ns);
  }
  PendingCall call;
  call.only_waiter = threads::self();
  start(node, name, arguments, call);
  if (!wait(call, deadline_ns)) {
    withdraw(call, {Errc::timed_out, fmt::format("node {} did not answer {}", node, name)});
  }
  if (call.part_bytes != 0) {
    Bytes bytes(call.part_bytes);
    net::RecvRequest request;
    receive_reply(call, bytes, request);
    request.done.wait(*options_.progress);
    call.reply = request.fault == net::Fault::none ? Result<Bytes>{std::move(bytes)} : lost(node);
  }
  return std::move(call.reply);
}

void Rpc::finish(std::uint64_t id, Result<Bytes> reply) noexcept {
  if (PendingCall* const call = calls_.take(id); call != nullptr) {
    call->reply = std::move(reply);
    complete(*call);
  }
}

void Rpc::on_reply(const Message& message, std::uint32_t from_node) noexcept {
  PendingCall* const call = calls_.take(message.reply_to.id);
  if (call == nullptr) {  // Timed out, or the node was lost: the reply comes too late.
    for (std::uint32_t i = 0; i < message.part_count; ++i) {
      drop_part(from_node, message.number, true);
    }
    return;
  }
  call->to_node = from_node;  // Of a completion, it may be any.
  try {
    if (message.kind == MessageKind::error) {
      call->reply = decode_error(message.body);
    } else {
      store(message, *call);
    }
  } catch (const std::bad_alloc&) {
    call->reply = Errc::out_of_memory;
  }
  complete(*call);
}

/// A reply with nothing but bytes.
void Rpc::on_plain_reply(std::uint64_t id, std::span<const std::byte> body,
                         std::uint32_t from_node) noexcept {
  PendingCall* const call = calls_.take(id);
  if (call == nullptr) {
    return;  // As in on_reply(): it comes too late.
  }
  call->to_node = from_node;
  call->reply_bytes = body.size();
  if (call->room.data() != nullptr) {
    net::copy_bytes(call->room.data(), body.data(), std::min(body.size(), call->room.size()));
  } else {
    try {
      call->reply = copy_of(body);
    } catch (const std::bad_alloc&) {
      call->reply = Errc::out_of_memory;
    }
  }
  complete(*call);
}

void Rpc::lose_peer(std::uint32_t node) noexcept {
  for (const std::uint64_t id : calls_.lose(node)) {
    finish(id, lost(node));
  }
  peers_[node].to.lose();
  start_waiting();  // If it was the node that has the addresses, they end with an error.
}

/// Most are a request for a service that runs here, or a reply for a call that waits, with nothing
/// but bytes.
void Rpc::on_node_message(void* self, std::uint32_t from_node, std::span<const std::byte> head,
                          std::span<const std::byte> body) noexcept {
  Rpc& rpc = *static_cast<Rpc*>(self);
  const PlainHead plain = PlainHead::of(head);
  if (plain.bytes().size() == 2 * sizeof(std::uint64_t)) [[likely]] {
    const ServiceEntry* const entry = rpc.services_.find(plain.service());
    if (entry != nullptr && entry->run_in == RunIn::poll) [[likely]] {
      rpc.on_plain_request(*entry, body, {.node = from_node, .id = plain.id()});
      return;
    }
  } else if (!plain.bytes().empty()) {
    rpc.on_plain_reply(plain.id(), body, from_node);
    return;
  }
  rpc.on_any(head, body, from_node);
}

void Rpc::on_any(std::span<const std::byte> head, std::span<const std::byte> body,
                 std::uint32_t from_node) noexcept {
  Message message;
  if (!decode(head, body, message)) {
    log_.warn("node {} sent a call that cannot be read ({} bytes)", from_node,
                  head.size() + body.size());
    return;
  }
  message.reply_to.node = from_node;
  const bool is_for_rank = message.reply_to.rank != kNoRank;
  const bool is_request = message.kind == MessageKind::request;
  if ((is_for_rank &&
       (!is_request || message.reply_to.rank >= options_.transport->job().rank_count)) ||
      (message.part_count > (is_request        ? kPartsMax
                             : has_parts() ? 1U
                                               : 0U)) ||
      (message.part_count != 0 && !has_parts())) {
    log_.warn("node {} sent a call of nobody of this job", from_node);
  } else if (is_request) {
    on_request(message, from_node);
  } else if (message.kind == MessageKind::begun) {
    on_begun(from_node, message.reply_to.id);
  } else if (message.kind == MessageKind::wanted) {
    on_wanted(message, from_node);
  } else {
    on_reply(message, from_node);
  }
}

}  // namespace sterna::rpc
