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

/// A reply that is sent from here and then forgotten.
struct Rpc::Owned : threads::Listener {
  explicit Owned(Rpc& its) noexcept : rpc{its} {
    ended = [](threads::Listener& self) noexcept { end(static_cast<Owned*>(&self)); };
    rpc.loose_parts_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Owned() { rpc.loose_parts_.fetch_sub(1, std::memory_order_release); }

  /// It is on its way: known to withdraw_replies().
  void enlist() noexcept {
    const SpinGuard guard{rpc.owned_lock_};
    next = rpc.first_owned_;
    if (next != nullptr) {
      next->before = this;
    }
    rpc.first_owned_ = this;
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
    }
    delete self;
  }

  Rpc& rpc;
  Bytes bytes;
  net::SendRequest send;
  // Guard: owned_lock_.
  Owned* next = nullptr;
  Owned* before = nullptr;
  bool is_used = false;  // By withdraw_replies().
  bool has_ended = false;
};

/// A part that nobody wants: only its sender must hear that it is over.
struct Rpc::Unwanted : threads::Listener {
  explicit Unwanted(Rpc& its) noexcept : rpc{its} {
    ended = [](threads::Listener& self) noexcept { delete static_cast<Unwanted*>(&self); };
    rpc.loose_parts_.fetch_add(1, std::memory_order_relaxed);
  }
  ~Unwanted() { rpc.loose_parts_.fetch_sub(1, std::memory_order_release); }
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

void Rpc::reply_now(const Request& request, std::span<const std::byte> bytes, OutPart& out) {
  const bool is_part =
      has_parts() && request.reply_to->rank == kNoRank && bytes.size() > kReplyInlineBytes;
  Answer copied;
  if (!is_part) {
    copied.reply = copy_of(bytes);  // If this throws, nothing was replied.
  }
  const ReplyTo to = std::exchange(*request.reply_to, ReplyTo{});
  out.part.bytes = bytes.size();
  out.data = bytes.data();
  out.send.done.reset();
  out.send.fault = net::Fault::none;
  out.send.is_awaited = threads::is_thread_alone();
  Message message{.kind = MessageKind::reply, .reply_to = {.id = to.id}};
  if (to.id != 0 && is_part) {
    message.parts = {&out.part, 1};
    message.number = next_number();
    const MessageHead head{message};
    if (options_.transport->node_message(to.node, kNodeHandler, head.bytes(), {},
                                         out.part.bytes)) {
      send_parts(to.node, options_.part_context + 1, message.number, {&out, 1});
      return;
    }
    out.send.fault = net::Fault::peer_lost;
  } else if (!answer(to, std::move(copied))) {
    out.send.fault = net::Fault::peer_lost;
  }
  out.send.done.complete_alone();
}

/// A reply whose bytes go alone, behind `message`.
Result<> Rpc::send_long(std::uint32_t node, Message& message, Bytes bytes) {
  auto owned = std::make_unique<Owned>(*this);  // Before the head promises it.
  owned->bytes = std::move(bytes);
  owned->send.is_awaited = threads::is_thread_alone();  // A service that has replied is at its end.
  const Part part{.bytes = owned->bytes.size()};
  message.parts = {&part, 1};
  message.number = next_number();
  const MessageHead head{message};
  Result<> sent =
      options_.transport->node_message(node, kNodeHandler, head.bytes(), {}, part.bytes);
  if (sent) {
    options_.transport->send(*options_.endpoint, owned->send,
                             {.rank = node,
                              .context = options_.part_context + 1,
                              .tag = static_cast<std::int32_t>(message.number)},
                             net::Buffer::of(owned->bytes.data(), owned->bytes.size()));
    Owned* const its = owned.release();
    its->enlist();
    if (!its->send.done.listen(*its)) {
      Owned::end(its);
    }
  }
  return sent;
}

/// One after the other, as their ends come under the locks of ranks, which this takes.
void Rpc::withdraw_replies() noexcept {
  Owned* one = nullptr;
  {
    const SpinGuard guard{owned_lock_};
    one = first_owned_;
    if (one != nullptr) {
      one->is_used = true;
    }
  }
  while (one != nullptr) {
    (void)options_.transport->cancel_send(*options_.endpoint, one->send);
    Owned* next = nullptr;
    bool has_ended = false;
    {
      const SpinGuard guard{owned_lock_};
      one->is_used = false;
      has_ended = one->has_ended;
      next = one->next;  // New ones come in front.
      if (next != nullptr) {
        next->is_used = true;
      }
    }
    if (has_ended) {
      Owned::end(one);
    }
    one = next;
  }
}

SentRequests Rpc::sent_requests() const noexcept {
  SentRequests sent{.calls = calls_.taken_count(),
                    .call_at_once = at_once_id_.load(std::memory_order_relaxed)};
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
  for (; incoming.taken < incoming.parts.size(); ++incoming.taken) {
    drop_part(incoming.from_node, incoming.number, false);
  }
}

void Rpc::receive_part(Incoming& incoming, const net::Buffer& buffer,
                       net::RecvRequest& request) noexcept {
  check(incoming.taken < incoming.parts.size(), "a service takes the parts that there are");
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
  options_.transport->receive(*options_.endpoint, request,
                              net::Pattern{call.to_node, options_.part_context + 1,
                                           static_cast<std::int32_t>(call.part_number)},
                              net::Buffer::of(room.data(), room.size()));
}

void Rpc::drop_reply(PendingCall& call) noexcept {
  if (call.part_bytes != 0) {
    call.part_bytes = 0;
    drop_part(call.to_node, call.part_number, true);
  }
}

}  // namespace sterna::rpc
