// Links: their life, and the way of a packet out.
//
// tests/models/failover.pml is this protocol for a model checker, function by function: who changes
// try_send, send_again, take_acks, find_missing, lose_rail, connect_again, take_data, acknowledge
// or owe_again changes it there too.
#include "net/rails/link.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kFirstTryNs = 50'000'000;
// Until a rail is measured: enough to measure it, little enough for a slow one (RFC 6928 begins
// so).
constexpr std::uint64_t kUnmeasuredPackets = 10;

}  // namespace

const char* Link::to_string(RailState state) noexcept {
  constexpr const char* kNames[] = {"unopened", "up", "silent", "down", "ended"};
  return kNames[static_cast<std::size_t>(state)];
}

Link::Link(std::uint32_t node, std::span<const RailOpening> rails, const LinkShared& shared)
    : node_{node}, shared_{shared} {
  for (const RailOpening& opening : rails) {
    const Capabilities& capabilities = opening.driver->capabilities();
    LinkRail& rail = rails_.emplace_back();
    rail.driver = opening.driver;
    rail.peer_address = opening.peer_address;
    rail.name = opening.name;
    rail.index = opening.index;
    rail.is_reliable = capabilities.is_reliable;
    rail.is_ordered = capabilities.is_ordered;
    full_bytes_ = std::min<std::uint64_t>(full_bytes_, capabilities.packet_bytes_max);
    const std::uint64_t rate = std::max<std::uint64_t>(capabilities.bandwidth_mb_per_s, 1);
    rail.rate.begin(1'000'000 / rate, capabilities.latency_ns, capabilities.packet_bytes_max);
  }
}

Link::~Link() {
  const SpinGuard guard{state_lock_};
  drop_all();
}

void Link::drop_all() noexcept {
  for (std::uint32_t i = window_.first(); i != window_.next(); ++i) {
    Sent& sent = window_[i];
    if (sent.packet != nullptr && !sent.is_busy) {
      shared_.pool->release(sent.packet);
    }
    sent.packet = nullptr;  // Who sends it just now gives it back.
  }
  window_.trim();
  again_count_ = 0;
  owed_ = 0;
  owed_bytes_ = 0;
  ack_ns_ = kNever;
}

bool Link::open() noexcept {
  const SpinGuard send{send_lock_};
  open_rails();
  const SpinGuard guard{state_lock_};
  return has_way() || lost_since_ns_ != kNever;
}

void Link::open_rails() noexcept {
  for (LinkRail& rail : rails_) {
    if (rail.channel != nullptr) {
      continue;
    }
    {
      const SpinGuard guard{state_lock_};
      if (rail.state != RailState::unopened) {
        continue;
      }
    }
    Result<Channel*> opened = rail.driver->connect(node_, rail.peer_address);
    const SpinGuard guard{state_lock_};
    if (opened) {
      rail.channel = opened.value();
      rail.state = RailState::up;
    } else {
      rail.state = RailState::down;
      rail.pause_ns = kFirstTryNs;
      rail.try_ns = shared_.clock->now_ns() + rail.pause_ns;
      note_due(rail.try_ns);
      shared_.log->warn("rail {} to node {} does not open: {}", rail.name, node_,
                        opened.error().text);
    }
  }
}

/// A silent rail is one while its driver would tell of a loss.
bool Link::has_way() const noexcept {
  return std::ranges::any_of(rails_, [](const LinkRail& rail) {
    return rail.state == RailState::up || rail.state == RailState::unopened ||
           (rail.state == RailState::suspect && rail.is_reliable);
  });
}

bool Link::have_all_ended() const noexcept {
  return std::ranges::all_of(rails_,
                             [](const LinkRail& rail) { return rail.state == RailState::ended; });
}

/// A driver refuses packets when the peer has closed it, in order, and also when the connection is
/// lost; in that case it says so soon (lose_rail), and the link may live on.
void Link::note_closed(LinkRail& rail) noexcept {
  if (rail.state != RailState::down && rail.state != RailState::ended) {
    rail.state = RailState::ended;
    rail.ended_ns = shared_.clock->now_ns();
    note_due(rail.ended_ns + kEndNs);
  }
}

/// Nothing will go any more: the peer has ended in order.
bool Link::ends_now(std::uint64_t now_ns) noexcept {
  is_ended_ = is_ended_ || (have_all_ended() && std::ranges::all_of(rails_, [&](const auto& rail) {
                              return now_ns >= rail.ended_ns + kEndNs;
                            }));
  return is_ended_;
}

/// Earlier than planned. Relaxed: the poller reads it in each round; who makes something due while
/// nothing was wakes it, see try_send().
void Link::note_due(std::uint64_t at_ns) noexcept {
  if (at_ns < due_ns_.load(std::memory_order_relaxed)) {
    due_ns_.store(at_ns, std::memory_order_relaxed);
  }
}

/// Whether the rail may take a packet as far as the link is concerned: a driver says by itself when
/// it is full, but before a rail is measured it could take more than it will ever deliver.
bool Link::may_take(const LinkRail& rail, std::uint32_t bytes) const noexcept {
  return rails_.size() == 1 || rail.rate.is_measured() ||
         rail.rate.in_flight() + bytes <=
             kUnmeasuredPackets * std::uint64_t{rail.driver->capabilities().packet_bytes_max};
}

/// The rail for a packet; kNoRail: it has to wait.
std::uint32_t Link::choose(std::uint32_t bytes, std::uint64_t tried) noexcept {
  std::array<RailView, 64> views;
  const std::size_t count = std::min(rails_.size(), views.size());
  bool is_any_up = false;
  for (std::size_t i = 0; i < count; ++i) {
    is_any_up = is_any_up || rails_[i].state == RailState::up;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const LinkRail& rail = rails_[i];
    const bool is_usable =
        rail.state == RailState::up || (!is_any_up && rail.state == RailState::suspect);
    views[i] = {.is_up = is_usable,
                .has_room = is_usable && rail.channel != nullptr && (tried >> i & 1) == 0 &&
                            may_take(rail, bytes),
                .latency_ns = rail.rate.round_trip_ns() / 2,
                .in_flight_bytes = rail.rate.in_flight(),
                .profile_ps_per_byte = rail.rate.profile_ps_per_byte(),
                .measured_ps_per_byte = rail.rate.is_measured() ? rail.rate.ps_per_byte() : 0,
                .sent_bytes = rail.bytes};
  }
  const std::uint32_t chosen = shared_.strategy->choose_rail({views.data(), count}, bytes);
  return chosen < count && views[chosen].has_room ? chosen : kNoRail;
}

void Link::write_header(HeldPacket& packet, LinkKind kind, std::uint16_t rail,
                        std::uint32_t sequence, std::uint64_t now_ns) noexcept {
  LinkHeader header;
  header.kind = kind;
  header.rail = rail;
  header.sequence = sequence;
  header.bytes = static_cast<std::uint32_t>(packet.bytes - kLinkHeaderBytes);
  if (echo_ns_ != 0) {
    header.flags |= kLinkHasExpected;
    header.expected = received_.expected();
    header.echo = echo_;
    header.echo_age_us = static_cast<std::uint32_t>(
        std::min<std::uint64_t>((now_ns - std::min(now_ns, echo_ns_)) / 1000, ~std::uint32_t{0}));
  }
  header.flags |= shared_.options.has_sums ? kLinkHasSum : 0;
  std::memcpy(packet.data(), &header, kLinkHeaderBytes);
  if (shared_.options.has_sums) {
    header.sum = link_sum(packet.packet(), shared_.key);
    std::memcpy(packet.data(), &header, kLinkHeaderBytes);
  }
}

/// A rail has taken the packet. What its header says has been told, unless more has come since; an
/// ack, with its map, says all of that time.
void Link::note_told(HeldPacket& packet, LinkKind kind) noexcept {
  LinkHeader header;
  std::memcpy(&header, packet.data(), kLinkHeaderBytes);
  if ((header.flags & kLinkHasExpected) != 0 && header.echo == echo_ &&
      (kind == LinkKind::ack || !received_.has_holes())) {
    owed_ = 0;
    owed_bytes_ = 0;
    ack_ns_ = kNever;
  }
}

/// The peer may not know what has come.
void Link::owe_again(std::uint64_t now_ns) noexcept {
  if (echo_ns_ != 0) {
    owed_ = std::max(owed_, 1U);
    ack_ns_ = now_ns;
    note_due(now_ns);
  }
}

SendState Link::try_send(std::span<const Piece> pieces) noexcept {
  std::array<Piece, kPacketPiecesMax + 1> all;
  static constexpr std::array<std::byte, kLinkHeaderBytes> kRoom{};
  all[0] = kRoom;
  std::copy(pieces.begin(), pieces.end(), all.begin() + 1);
  std::uint32_t bytes = kLinkHeaderBytes;
  for (const Piece& piece : pieces) {
    bytes += static_cast<std::uint32_t>(piece.size());
  }
  bool was_idle = false;
  SendState result = SendState::full;
  {
    const SpinGuard send{send_lock_};
    {
      const SpinGuard guard{state_lock_};
      if (is_over()) {
        return SendState::closed;
      }
      if (window_.is_full() || again_count_ != 0 || choose(bytes, 0) == kNoRail) {
        // Room comes with the news of a packet, and that with a packet, or from step().
        return SendState::full;
      }
    }
    HeldPacket* const packet = shared_.pool->copy({all.data(), pieces.size() + 1});
    std::uint32_t sequence = 0;
    {
      const SpinGuard guard{state_lock_};
      was_idle = due_ns_.load(std::memory_order_relaxed) == kNever;
      sequence = window_.next();
      Sent& sent = window_.push();
      sent.packet = packet;
      sent.is_busy = true;
    }
    result = send_kept(sequence, *packet);
    if (result != SendState::accepted) {
      const SpinGuard guard{state_lock_};
      if (window_.holds(sequence)) {  // Else lose() has dropped everything meanwhile.
        window_.take_back();
      }
      shared_.pool->release(packet);
      result = is_over() ? SendState::closed : SendState::full;
    }
  }
  if (was_idle && result == SendState::accepted) {
    shared_.wake(shared_.core);
  }
  return result;
}

/// Sends what the window keeps under `sequence` by a rail that takes it. It is busy, so that its
/// bytes stay even if the news that they came is faster than the driver's call.
SendState Link::send_kept(std::uint32_t sequence, HeldPacket& packet) noexcept {
  std::uint64_t tried = 0;
  for (;;) {
    std::uint32_t at = kNoRail;
    std::uint64_t now_ns = 0;
    {
      const SpinGuard guard{state_lock_};
      at = choose(packet.bytes, tried);
      if (at == kNoRail) {
        return SendState::full;
      }
      now_ns = shared_.clock->now_ns();
      LinkRail& rail = rails_[at];
      write_header(packet, LinkKind::data, rail.index, sequence, now_ns);
      Sent& sent = window_[sequence];
      sent.rail = static_cast<std::uint16_t>(at);
      sent.sent_ns = now_ns;
      sent.order = rail.next_order++;
      sent.stamp = rail.rate.sent(packet.bytes, now_ns);
      rail.unheard_ns = std::min(rail.unheard_ns, now_ns);
    }
    const Piece piece = packet.packet();
    const SendState state = rails_[at].channel->try_send({&piece, 1});
    const SpinGuard guard{state_lock_};
    LinkRail& rail = rails_[at];
    if (state == SendState::accepted) {
      ++rail.packets;
      rail.bytes += packet.bytes;
      ++statistics_.sent;
      note_told(packet, LinkKind::data);
      Sent* const sent = window_.holds(sequence) ? &window_[sequence] : nullptr;
      if (sent != nullptr && sent->packet == &packet) {
        sent->is_busy = false;
      } else {  // It came meanwhile, or everything was dropped.
        shared_.pool->release(&packet);
      }
      note_due(now_ns + patience_ns(rail, 0));
      return state;
    }
    rail.rate.forget(packet.bytes);
    if (state == SendState::closed) {
      note_closed(rail);
    }
    tried |= std::uint64_t{1} << at;
  }
}

void Link::lose_rail(std::uint16_t index, std::string_view reason) noexcept {
  const std::uint64_t now_ns = shared_.clock->now_ns();
  const SpinGuard guard{state_lock_};
  LinkRail* const rail = find_rail(index);
  if (rail == nullptr || is_lost_) {
    return;
  }
  rail->state = RailState::down;
  rail->pause_ns = kFirstTryNs;
  rail->try_ns = now_ns;
  may_miss_ = true;
  owe_again(now_ns);  // The last acknowledgement may have been on it.
  note_due(now_ns);
  if (has_way()) {
    shared_.log->warn("rail {} to node {} is down: {}; its packets take the other rails",
                      rail->name, node_, reason);
  } else if (lost_since_ns_ == kNever) {
    lost_since_ns_ = now_ns;
    why_ = reason;
    if (shared_.options.reconnect_ns == 0) {
      is_lost_ = true;
    } else {
      shared_.log->warn("node {} cannot be reached: {}; trying again for {} s", node_, reason,
                        shared_.options.reconnect_ns / 1'000'000'000);
    }
  }
}

void Link::lose() noexcept {
  const SpinGuard guard{state_lock_};
  is_lost_ = true;
  if (why_.empty()) {
    why_ = "its process has ended";
  }
  drop_all();
  note_due(0);
}

bool Link::is_lost(std::string& why) const noexcept {
  const SpinGuard guard{state_lock_};
  if (is_lost_) {
    why = why_;
  }
  return is_lost_;
}

void Link::begin_close() noexcept {
  const SpinGuard guard{state_lock_};
  is_closing_ = true;
  note_due(0);
}

bool Link::is_quiet() const noexcept {
  const SpinGuard guard{state_lock_};
  return is_over() || have_all_ended() || (window_.is_empty() && owed_ == 0);
}

std::vector<RailReport> Link::report() const {
  std::vector<RailReport> reports;
  const SpinGuard guard{state_lock_};
  for (const LinkRail& rail : rails_) {
    reports.push_back({.name = std::string{rail.name},
                       .state = to_string(rail.state),
                       .ps_per_byte = rail.rate.ps_per_byte(),
                       .round_trip_ns = rail.rate.round_trip_ns(),
                       .packets = rail.packets,
                       .bytes = rail.bytes,
                       .sent_again = statistics_.sent_again,
                       .came_twice = statistics_.twice,
                       .corrupt = statistics_.corrupt});
  }
  return reports;
}

}  // namespace sterna::net
