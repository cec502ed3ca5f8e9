// Long pieces of arguments and long replies: messages between the ranks that the nodes are, one for
// each, in the order in which the head names them. So they have whatever the transport has for
// large messages: they wait at their sender until they are wanted, and go from place to place.
#include <new>
#include <utility>

#include "net/endpoint.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"
#include "threads/direct.h"

namespace sterna::rpc {
namespace {

constexpr std::uint64_t kLongBytes = 64 << 10;

}  // namespace

/// A long reply on its way from here: its bytes are ours, or those of a service that waits.
struct Rpc::Owned : threads::Listener {
  explicit Owned(Rpc& its, AwaitedReply* for_whom = nullptr) noexcept
      : rpc{its}, awaited{for_whom} {
    ended = [](threads::Listener& self) noexcept { end(static_cast<Owned*>(&self)); };
    rpc.loose_parts_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Owned() { rpc.loose_parts_.fetch_sub(1, std::memory_order_release); }

  /// It is on its way: known to withdraw_owned().
  void enlist() noexcept {
    const SpinGuard guard{rpc.owned_lock_};
    next = rpc.first_owned_;
    if (next != nullptr) {
      next->before = this;
    }
    rpc.first_owned_ = this;
    if (awaited != nullptr) {
      is_counted = true;
      place = static_cast<std::uint32_t>(
          rpc.awaited_.fetch_add(kOneGiven + 1, std::memory_order_release) / kOneGiven);
    }
  }
  /// Under the lock.
  void uncount() noexcept {
    if (is_counted) {
      is_counted = false;
      rpc.awaited_.fetch_sub(1, std::memory_order_release);
    }
  }
  /// For withdraw_owned(), under the lock.
  void use(const AwaitedReplies* only) noexcept {
    is_used = true;
    is_meant = only == nullptr || (awaited != nullptr && place - only->given > kHalf);
    if (is_meant) {
      uncount();
    }
  }
  /// It has been sent. Perhaps under the lock of a rank.
  static void end(Owned* self) noexcept {
    {
      const SpinGuard guard{self->rpc.owned_lock_};
      if (self->is_used) {
        self->has_ended = true;
        return;  // Who uses it ends it.
      }
      (self->before != nullptr ? self->before->next : self->rpc.first_owned_) = self->next;
      if (self->next != nullptr) {
        self->next->before = self->before;
      }
      self->uncount();
    }
    AwaitedReply* const awaited = self->awaited;
    const net::Fault fault = self->send.fault;
    delete self;
    if (awaited != nullptr) {
      awaited->fault = fault;
      awaited->done.complete();
    }
  }

  static constexpr std::uint64_t kOneGiven = std::uint64_t{1} << 32;
  static constexpr std::uint32_t kHalf = ~std::uint32_t{0} / 2;  // More: from before.

  Rpc& rpc;
  AwaitedReply* const awaited;  // Null: it is forgotten.
  Bytes bytes;                  // Unless they are the service's.
  net::SendRequest send;
  // Guard: owned_lock_.
  Owned* next = nullptr;
  Owned* before = nullptr;
  bool is_used = false;  // By withdraw_owned().
  bool has_ended = false;
  bool is_counted = false;
  bool is_meant = false;    // To be withdrawn.
  std::uint32_t place = 0;  // Among those that were given.
};

/// A part that nobody wants: only its sender must hear that it is over.
struct Rpc::Unwanted : threads::Listener {
  explicit Unwanted(Rpc& its) noexcept : rpc{its} {
    ended = [](threads::Listener& self) noexcept { delete static_cast<Unwanted*>(&self); };
    rpc.loose_parts_.fetch_add(1, std::memory_order_relaxed);
    rpc.unwanted_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Unwanted() {
    rpc.unwanted_.fetch_sub(1, std::memory_order_release);
    rpc.loose_parts_.fetch_sub(1, std::memory_order_release);
  }
  Rpc& rpc;
  net::RecvRequest receive;
};

/// Tags are not negative. Of one sender there are never 2^31 under way.
std::uint32_t Rpc::next_number() noexcept {
  return next_number_.fetch_add(1, std::memory_order_relaxed) & 0x7fff'ffff;
}

void Rpc::send_parts(std::uint32_t node, std::uint32_t context, std::uint32_t number,
                     std::span<OutPart> parts) noexcept {
  bool is_left_open = false;
  for (OutPart& part : parts) {
    options_.transport->send(
        *options_.endpoint, part.send,
        {.rank = node, .context = context, .tag = static_cast<std::int32_t>(number)},
        net::Buffer::of(part.data, part.part.bytes));
    is_left_open = is_left_open || (!part.send.is_awaited && part.part.bytes >= kLongBytes &&
                                    !part.send.done.done());
  }
  if (is_left_open && options_.progress != nullptr) {
    options_.progress->has_left_open();  // The caller may compute now.
  }
}

void Rpc::reply_now(const Request& request, std::span<const std::byte> bytes, AwaitedReply& reply) {
  const bool is_part =
      has_parts() && request.reply_to->rank == kNoRank && bytes.size() > kReplyInlineBytes;
  Answer copied;
  std::unique_ptr<Owned> owned;
  if (is_part) {  // If one of the two throws, nothing was replied.
    owned = std::make_unique<Owned>(*this, &reply);
  } else {
    copied.reply = copy_of(bytes);
  }
  if (request.incoming != nullptr) {
    want_rest(*request.incoming);  // The caller's memory stays until the reply only.
  }
  const ReplyTo to = std::exchange(*request.reply_to, ReplyTo{});
  reply.done.reset();
  reply.fault = net::Fault::none;
  reply.node = to.node;
  Message message{.kind = MessageKind::reply, .reply_to = {.id = to.id}};
  if (to.id != 0 && is_part) {
    const bool is_alone = threads::is_thread_alone();
    if (send_long(to.node, message, std::move(owned), bytes)) {
      reply.number = message.number;
      if (!is_alone && bytes.size() >= kLongBytes && options_.progress != nullptr &&
          !reply.done.done()) {
        options_.progress->has_left_open();  // Others may compute now.
      }
      return;
    }
    reply.fault = net::Fault::peer_lost;
  } else if (!answer(to, std::move(copied))) {
    reply.fault = net::Fault::peer_lost;
  }
  reply.done.complete_alone();
}

net::Fault Rpc::await(AwaitedReply& reply) noexcept {
  if (!reply.done.done()) {
    reply.done.wait(*options_.progress);
  }
  if (reply.fault == net::Fault::cancelled) {
    // Without memory for it they would wait, as for a node that says nothing.
    if (auto empty = std::unique_ptr<Owned>{new (std::nothrow) Owned{*this}}) {
      send_owned(reply.node, reply.number, std::move(empty), {});
    }
  }
  return reply.fault;
}

AwaitedReplies Rpc::awaited_replies() const noexcept {
  const std::uint64_t both = awaited_.load(std::memory_order_acquire);
  return {.waiting = static_cast<std::uint32_t>(both),
          .given = static_cast<std::uint32_t>(both / Owned::kOneGiven)};
}

/// A reply whose bytes go alone, behind `message`. `owned` was made before the head promises it.
Result<> Rpc::send_long(std::uint32_t node, Message& message, std::unique_ptr<Owned> owned,
                        std::span<const std::byte> bytes) {
  owned->send.is_awaited = threads::is_thread_alone();  // A service that has replied is at its end.
  const Part part{.bytes = bytes.size()};
  message.parts = {&part, 1};
  message.number = next_number();
  const MessageHead head{message};
  Result<> sent =
      options_.transport->node_message(node, kNodeHandler, head.bytes(), {}, part.bytes);
  if (sent) {
    send_owned(node, message.number, std::move(owned), bytes);
  }
  return sent;
}

Result<> Rpc::send_long(std::uint32_t node, Message& message, Bytes bytes) {
  auto owned = std::make_unique<Owned>(*this);
  owned->bytes = std::move(bytes);
  const std::span<const std::byte> all = owned->bytes;
  return send_long(node, message, std::move(owned), all);
}

void Rpc::send_owned(std::uint32_t node, std::uint32_t number, std::unique_ptr<Owned> owned,
                     std::span<const std::byte> bytes) noexcept {
  Owned* const its = owned.release();
  options_.transport->send(*options_.endpoint, its->send,
                           {.rank = node,
                            .context = options_.part_context + 1,
                            .tag = static_cast<std::int32_t>(number)},
                           net::Buffer::of(bytes.data(), bytes.size()));
  its->enlist();
  if (!its->send.done.listen(*its)) {
    Owned::end(its);
  }
}

/// One after the other, as their ends come under the locks of ranks, which this takes.
void Rpc::withdraw_owned(const AwaitedReplies* only) noexcept {
  Owned* one = nullptr;
  {
    const SpinGuard guard{owned_lock_};
    one = first_owned_;
    if (one != nullptr) {
      one->use(only);
    }
  }
  while (one != nullptr) {
    if (one->is_meant) {
      (void)options_.transport->cancel_send(*options_.endpoint, one->send);
    }
    Owned* next = nullptr;
    bool has_ended = false;
    {
      const SpinGuard guard{owned_lock_};
      one->is_used = false;
      has_ended = one->has_ended;
      next = one->next;  // New ones come in front.
      if (next != nullptr) {
        next->use(only);
      }
    }
    if (has_ended) {
      Owned::end(one);
    }
    one = next;
  }
}

SentRequests Rpc::sent_requests() const noexcept {
  SentRequests sent{
      .calls = calls_.taken_count(),
      .call_at_once = at_once_id_.load(std::memory_order_relaxed),
      .replies = awaited_replies().given + replies_taken_.load(std::memory_order_relaxed)};
  for (std::uint32_t node = 0; node < node_count_; ++node) {
    sent.posted_units += peers_[node].to.posted();
  }
  return sent;
}

void Rpc::drop_part(std::uint32_t from_node, std::uint32_t number, bool is_reply) noexcept {
  auto* const unwanted = new (std::nothrow) Unwanted{*this};
  if (unwanted == nullptr) {
    return;  // Its sender waits until one of us ends.
  }
  options_.transport->receive(*options_.endpoint, unwanted->receive,
                              net::Pattern{from_node, options_.part_context + (is_reply ? 1 : 0),
                                           static_cast<std::int32_t>(number)},
                              {});
  if (!unwanted->receive.done.listen(*unwanted)) {
    delete unwanted;
  }
}

void Rpc::drop_rest(Incoming& incoming) noexcept {
  if (incoming.reader_id != 0) {
    return;  // Nobody sends them.
  }
  for (; incoming.taken < incoming.parts.size(); ++incoming.taken) {
    drop_part(incoming.from_node, incoming.number, false);
  }
}

void Rpc::receive_part(Incoming& incoming, const net::Buffer& buffer,
                       net::RecvRequest& request) noexcept {
  check(incoming.taken < incoming.parts.size(), "a service takes the parts that there are");
  if (read_part(incoming, buffer)) {
    request.fault = net::Fault::none;
    request.envelope = {incoming.from_node, options_.part_context,
                        static_cast<std::int32_t>(incoming.number), buffer.bytes};
    request.done.reset();
    request.done.complete_alone();
    return;
  }
  want_rest(incoming);
  ++incoming.taken;
  options_.transport->receive(*options_.endpoint, request,
                              net::Pattern{incoming.from_node, options_.part_context,
                                           static_cast<std::int32_t>(incoming.number)},
                              buffer);
}

void Rpc::receive_reply(PendingCall& call, std::span<std::byte> room,
                        net::RecvRequest& request) noexcept {
  check(call.part_bytes != 0, "a long reply is received once");
  call.part_bytes = 0;
  replies_taken_.fetch_add(1, std::memory_order_relaxed);
  options_.transport->receive(*options_.endpoint, request,
                              net::Pattern{call.to_node, options_.part_context + 1,
                                           static_cast<std::int32_t>(call.part_number)},
                              net::Buffer::of(room.data(), room.size()));
}

void Rpc::drop_reply(PendingCall& call) noexcept {
  if (call.part_bytes != 0) {
    call.part_bytes = 0;
    replies_taken_.fetch_add(1, std::memory_order_relaxed);
    drop_part(call.to_node, call.part_number, true);
  }
}

}  // namespace sterna::rpc
