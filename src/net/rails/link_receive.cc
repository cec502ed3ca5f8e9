// Links: what comes in.
#include <algorithm>
#include <bit>

#include "net/rails/link.h"

namespace sterna::net {
namespace {

// An acknowledgement goes after so many packets, or the bytes of so many full ones, or when the
// first has waited so long.
constexpr std::uint32_t kOwedPackets = 16;
constexpr std::uint32_t kOwedFull = 4;
constexpr std::uint64_t kAckDelayNs = 500'000;

}  // namespace

Link::LinkRail* Link::find_rail(std::uint16_t index) noexcept {
  const auto found = std::ranges::find(rails_, index, &LinkRail::index);
  return found != rails_.end() ? &*found : nullptr;
}

Packet Link::take(std::uint16_t index, Packet bytes) noexcept {
  LinkPacket packet;
  const LinkDecode decoded = decode_link(bytes, shared_.options.has_sums, shared_.key, packet);
  const std::uint64_t now_ns = shared_.clock->now_ns();
  HeldPacket* freed = nullptr;
  Packet result;
  {
    const SpinGuard guard{state_lock_};
    if (is_lost_) {
      return {};  // What waits for the peer ends, or has ended, with an error.
    }
    LinkRail* const rail = find_rail(index);
    if (decoded != LinkDecode::good || rail == nullptr) {
      ++(decoded == LinkDecode::corrupt ? statistics_.corrupt : statistics_.malformed);
      return {};
    }
    hear(*rail, packet, now_ns);
    if ((packet.header.flags & kLinkHasExpected) != 0) {
      take_acks(packet,
                {.now_ns = now_ns,
                 .bytes_ns = bytes.size() * rail->rate.ps_per_byte() / 1000,
                 .age_ns = std::uint64_t{packet.header.echo_age_us} * 1000},
                freed);
    }
    if (packet.header.kind == LinkKind::data) {
      // Also of one that came twice: the first news of it may have gone by a rail that is silent.
      echo_rail_ = static_cast<std::uint32_t>(rail - rails_.data());
      result = take_data(*rail, packet, now_ns) ? packet.payload : Packet{};
    }
  }
  while (freed != nullptr) {
    HeldPacket* const next = freed->next;
    shared_.pool->release(freed);
    freed = next;
  }
  return result;
}

/// The rail works, whatever came.
void Link::hear(LinkRail& rail, const LinkPacket& packet, std::uint64_t now_ns) noexcept {
  rail.unheard_ns = kNever;
  rail.heard_ns = std::min(rail.heard_ns, now_ns);
  if (packet.header.kind == LinkKind::probe) {
    rail.is_asked = true;
    rail.asked = packet.header.sequence;
    note_due(now_ns);
  }
  // Of a question that was asked since then. The numbers go round.
  const bool is_answered = packet.header.kind == LinkKind::answer &&
                           packet.header.sequence - rail.old_probe - 1 <
                               rail.probe - rail.old_probe;
  if (is_in_doubt(rail) && is_answered) {
    rail.state = RailState::up;
    rail.try_ns = kNever;
    lost_since_ns_ = kNever;
    may_miss_ = true;  // What others have that are in doubt takes this one.
    note_due(now_ns);
    shared_.log->info("rail {} to node {} works again", rail.name, node_);
  }
}

/// A packet that left before anything had come by its rail may have waited for the peer to take the
/// way. Of others to choose the rail may not be chosen again after that, nor measured.
bool Link::was_being_made(const LinkRail& rail, std::uint64_t sent_ns) const noexcept {
  return rails_.size() > 1 && rail.heard_ns != kNever && sent_ns < rail.heard_ns;
}

/// How long the packet took that the news echoes: they may not be the first to say that it came.
void Link::take_echo(std::uint32_t echo, const News& news) noexcept {
  for (LinkRail& rail : rails_) {
    const RailEcho::Packet sent = rail.echo.take_left(echo);
    const std::uint64_t took_ns = news.now_ns - std::min(news.now_ns, sent.ns);
    if (sent.ns != 0 && took_ns > news.age_ns) {
      if (!was_being_made(rail, sent.ns)) {
        rail.rate.took(took_ns - news.age_ns, sent.bytes, news.now_ns, news.bytes_ns);
      }
      return;
    }
  }
  if (!window_.holds(echo)) {
    return;
  }
  const Sent& sent = window_[echo];
  const std::uint64_t took_ns = news.now_ns - std::min(news.now_ns, sent.sent_ns);
  if (sent.packet != nullptr && sent.tries == 0 && took_ns > news.age_ns &&
      !was_being_made(rails_[sent.rail], sent.sent_ns)) {
    rails_[sent.rail].rate.took(took_ns - news.age_ns, sent.packet->bytes, news.now_ns,
                                news.bytes_ns);
  }
}

void Link::take_acks(const LinkPacket& packet, const News& news, HeldPacket*& freed) noexcept {
  const LinkHeader& header = packet.header;
  if (header.expected - window_.first() > window_.count()) {
    return;  // Old news, or of packets that were never sent.
  }
  take_echo(header.echo, news);
  for (std::uint32_t i = window_.first(); i != header.expected; ++i) {
    take_one(i, news, freed);
  }
  for (std::uint32_t word = 0; word < packet.arrived_words; ++word) {
    for (std::uint64_t bits = packet.arrived[word]; bits != 0; bits &= bits - 1) {
      const std::uint32_t sequence =
          header.expected + 1 + word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (window_.holds(sequence)) {
        take_one(sequence, news, freed);
      }
    }
  }
  window_.trim();
  if (!window_.is_empty()) {
    const Sent& oldest = window_[window_.first()];
    const LinkRail& rail = rails_[oldest.rail];
    if (rail.may_miss && rail.is_ordered && oldest.order + kOvertaken <= rail.newest_order) {
      may_miss_ = true;
      note_due(news.now_ns);
    }
  }
}

/// The packet of this number has come.
void Link::take_one(std::uint32_t sequence, const News& news, HeldPacket*& freed) noexcept {
  Sent& sent = window_[sequence];
  if (sent.packet == nullptr) {
    return;
  }
  LinkRail& rail = rails_[sent.rail];
  rail.newest_order = std::max(rail.newest_order, sent.order + 1);
  if (sent.must_go) {
    --again_count_;
  } else if (sent.tries == 0) {
    rail.rate.acked(sent.stamp, sent.packet->bytes, sent.sent_ns, news.now_ns,
                    news.age_ns + news.bytes_ns);
    // With the pause of the news, which would make a rail look slow whose packets are not those
    // that the news echoes: take_acks() has seen these.
    const std::uint64_t took_ns = news.now_ns - std::min(news.now_ns, sent.sent_ns);
    if ((rails_.size() == 1 || !rail.is_reliable || took_ns < rail.rate.round_trip_ns()) &&
        !was_being_made(rail, sent.sent_ns)) {
      rail.rate.took(took_ns, sent.packet->bytes, news.now_ns, news.bytes_ns);
    }
    rail.unheard_ns = kNever;
  } else {
    rail.rate.forget(sent.packet->bytes);
  }
  if (!sent.is_busy) {
    sent.packet->next = freed;
    freed = sent.packet;
  }
  sent.packet = nullptr;
  sent.must_go = false;
}

/// True: its bytes go up.
bool Link::take_data(LinkRail& rail, const LinkPacket& packet, std::uint64_t now_ns) noexcept {
  const ReceiveWindow::Arrival arrival = received_.take(packet.header.sequence);
  if (arrival == ReceiveWindow::Arrival::far) {
    ++statistics_.malformed;
    return false;
  }
  ++owed_;
  owed_bytes_ += packet.payload.size();
  const bool is_twice = arrival == ReceiveWindow::Arrival::twice;
  statistics_.twice += is_twice ? 1 : 0;
  if (!is_twice) {
    echo_ = packet.header.sequence;
    echo_ns_ = now_ns;
    rail.echo.came(echo_, now_ns);
  }
  // Twice: the peer does not know that it came.
  const bool is_now =
      is_twice || is_closing_ || owed_ >= kOwedPackets || owed_bytes_ >= kOwedFull * full_bytes_;
  ack_ns_ = std::min(ack_ns_, is_now ? now_ns : now_ns + kAckDelayNs);
  note_due(ack_ns_);
  return !is_twice;
}

}  // namespace sterna::net
