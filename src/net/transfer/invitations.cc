// See invitations.h.
#include "net/transfer/invitations.h"

#include "net/matching/matching.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// The next message of its sender, context and tag is for this one, whatever comes before.
bool is_next(const Endpoint& at, const RecvRequest& request) noexcept {
  return request.lane != nullptr && request.lane->pattern_class == 0 &&
         request.lane->receives_first == &request && at.parked == nullptr &&
         (at.posted_count[1] | at.posted_count[2] | at.posted_count[3]) == 0;
}

void add_relaxed(std::atomic<std::uint32_t>& count, std::uint32_t more) noexcept {
  count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

/// Its slot; null: none.
Invitations::Told* Invitations::find(const RecvRequest* request) noexcept {
  const auto place = std::find_if(told_.begin(), told_.end(),
                                  [&](const Told& told) { return told.request == request; });
  return place != told_.end() ? &*place : nullptr;
}

bool Invitations::tell(Endpoint& at, RecvRequest& request, const Pattern& exact,
                       std::uint32_t sequence, const Left& left) noexcept {
  Told* const free = find(nullptr);
  request.id = free != nullptr
                   ? add_pending(at, PendingEntry::Kind::receive, &request, exact.source)
                   : kNoId;
  if (request.id == kNoId) {
    return false;
  }
  *free = {&request, left, 0};
  own_->open(static_cast<std::uint32_t>(free - told_.data()),
             {.receiver = at.rank,
              .sender = exact.source,
              .context = exact.context,
              .tag = exact.tag,
              .sequence = sequence,
              .address = reinterpret_cast<std::uintptr_t>(request.data.address),
              .bytes = request.data.bytes,
              .receive_id = request.id});
  return true;
}

void Invitations::invite(Endpoint& at, RecvRequest& request) noexcept {
  const Peer* const peer = find_peer(at, request.lane->key.source);
  invite(at, request, peer != nullptr ? peer->receive_sequence : 0);
}

void Invitations::invite(Endpoint& at, RecvRequest& request, std::uint32_t sequence) noexcept {
  if (is_next(at, request)) {
    (void)tell(at, request, request.lane->key, sequence, {});
  }
}

bool Invitations::leave(Endpoint& at, RecvRequest& request, const Message& announced,
                        std::uint32_t sequence) noexcept {
  const Envelope& envelope = announced.envelope;
  const bool is_told = tell(at, request, {envelope.source, envelope.context, envelope.tag},
                            sequence, {&request, announced.address, announced.send_id});
  add_relaxed(left_count_, is_told ? 1 : 0);
  return is_told;
}

/// False: a peer has it.
bool Invitations::close(Told& told) noexcept {
  add_relaxed(left_count_, told.left.send_id != 0 ? ~std::uint32_t{0} : 0);
  told = {};
  return own_->close(static_cast<std::uint32_t>(&told - told_.data()));
}

bool Invitations::take_back(Endpoint& at, RecvRequest& request) noexcept {
  if (request.id == kNoId) {
    return true;
  }
  Told* const told = find(&request);
  if (told == nullptr || !close(*told)) {
    return false;
  }
  remove_pending(at, request.id);
  request.id = kNoId;
  return true;
}

void Invitations::drop(Endpoint& at, RecvRequest& request) noexcept {
  if (!take_back(at, request)) {
    remove_pending(at, request.id);
    request.id = kNoId;
  }
}

void Invitations::end(RecvRequest& request) noexcept {
  if (Told* const told = find(&request); told != nullptr) {
    (void)close(*told);
  }
}

void Invitations::close() noexcept {
  for (Told& told : told_) {
    if (told.request != nullptr) {
      (void)close(told);
    }
  }
}

void Invitations::announce(SendRequest& send, std::uint32_t sequence) noexcept {
  if (!is_sending_) {
    return;
  }
  remembered_[remembered_count_++ % kRemembered] = {send.target, sequence};
  const std::uint32_t count = waiting_count_.load(std::memory_order_relaxed);
  send.is_listed = count != kWaiting;
  if (send.is_listed) {
    waiting_[count] = {&send, sequence, 0};
    add_relaxed(waiting_count_, 1);
  }
}

void Invitations::stop_sending() noexcept {
  is_sending_ = false;
  while (has_waiting()) {
    forget(*waiting_[0].send);
  }
}

void Invitations::forget(SendRequest& send) noexcept {
  if (!send.is_listed) {
    return;
  }
  send.is_listed = false;
  Waiting* const end = waiting_.data() + waiting_count_.load(std::memory_order_relaxed);
  Waiting* const place =
      std::find_if(waiting_.data(), end, [&](const Waiting& one) { return one.send == &send; });
  std::copy(place + 1, end, place);
  add_relaxed(waiting_count_, ~std::uint32_t{0});
}

bool Invitations::is_meant(const Invitation& invitation, const Waiting& message) const noexcept {
  const Target& target = message.send->target;
  const auto is_of_kind = [&](std::uint32_t context, std::int32_t tag) {
    return context == target.context && tag == target.tag;
  };
  if (invitation.sender != rank_ || invitation.receiver != target.rank ||
      !is_of_kind(invitation.context, invitation.tag)) {
    return false;
  }
  // Those in between are known, and of other kinds.
  const std::uint32_t between = message.sequence - invitation.sequence;
  std::uint32_t known = 0;
  for (std::uint32_t i = 0; i < std::min(remembered_count_, kRemembered) && between != 0; ++i) {
    const Announced& other = remembered_[i];
    const bool is_between = other.target.rank == target.rank &&
                            other.sequence - invitation.sequence < between &&
                            !is_of_kind(other.target.context, other.target.tag);
    known += is_between ? 1 : 0;
  }
  return known == between;
}

}  // namespace sterna::net
