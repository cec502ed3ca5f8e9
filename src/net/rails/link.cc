// Links: their life. The way of a packet out is link_send.cc.
//
// tests/models/failover.pml is this protocol for a model checker, function by function: who changes
// try_send, send_again, take_acks, find_missing, lose_rail, connect_again, take_data, acknowledge
// or owe_again changes it there too.
#include "net/rails/link.h"

#include <algorithm>

#include "base/check.h"
#include "net/rails/plan.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kFirstTryNs = 50'000'000;
// Until a rail is measured: enough to measure it, little enough for a slow one (RFC 6928 begins
// so).
constexpr std::uint64_t kUnmeasuredPackets = 10;

}  // namespace

const char* Link::to_string(RailState state) noexcept {
  constexpr const char* kNames[] = {"unopened", "up", "silent", "connecting", "down", "ended"};
  return kNames[static_cast<std::size_t>(state)];
}

Link::Link(std::uint32_t node, std::span<const RailOpening> rails, const LinkShared& shared)
    : node_{node}, shared_{shared} {
  for (const RailOpening& opening : rails) {
    full_bytes_ = std::min<std::uint64_t>(full_bytes_,
                                          opening.driver->capabilities().packet_bytes_max);
  }
  for (const RailOpening& opening : rails) {
    const Capabilities& capabilities = opening.driver->capabilities();
    LinkRail& rail = rails_.emplace_back();
    rail.driver = opening.driver;
    rail.peer_address = opening.peer_address;
    rail.name = opening.name;
    rail.index = opening.index;
    rail.is_reliable = capabilities.is_reliable;
    rail.is_ordered = capabilities.is_ordered;
    rail.may_miss = !rail.is_reliable || shared.options.has_sums;
    const std::uint64_t rate = std::max<std::uint64_t>(capabilities.bandwidth_mb_per_s, 1);
    rail.rate.begin(1'000'000 / rate, capabilities.latency_ns, full_bytes_);
  }
}

Link::~Link() {
  const SpinGuard send{send_lock_};
  const SpinGuard guard{state_lock_};
  drop_all();
}

void Link::drop_all() noexcept {
  for (std::uint32_t i = window_.first(); i != window_.next(); ++i) {
    Sent& sent = window_[i];
    if (sent.packet != nullptr) {  // None is busy: nobody sends.
      shared_.pool->release(sent.packet);
      sent.packet = nullptr;
    }
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
      if (rail.state != RailState::unopened || gone_ns_ != kNever) {
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

/// A silent rail is one while its driver would tell of a loss. One that connects anew is none: that
/// takes it longer than `reconnect_ns`, perhaps, and is begun again and again.
bool Link::has_way() const noexcept {
  return std::ranges::any_of(rails_, [](const LinkRail& rail) {
    return rail.state == RailState::up || rail.state == RailState::unopened ||
           (rail.state == RailState::suspect && rail.is_reliable);
  });
}

std::ptrdiff_t Link::up_count() const noexcept {
  return std::ranges::count(rails_, RailState::up, &LinkRail::state);
}

bool Link::have_all_ended() const noexcept {
  return std::ranges::all_of(rails_,
                             [](const LinkRail& rail) { return rail.state == RailState::ended; });
}

/// A driver refuses packets when the peer has closed it, in order, and also when the connection is
/// lost; in that case it says so later (lose_rail), and the link may live on. See try_again().
void Link::note_closed(LinkRail& rail) noexcept {
  if (rail.state != RailState::down && rail.state != RailState::ended) {
    rail.state = RailState::ended;
    rail.ended_ns = shared_.clock->now_ns();
    rail.try_ns = rail.ended_ns + kEndNs;
    note_due(rail.try_ns);
  }
}

/// Nothing will go any more: the peer has ended in order.
bool Link::ends_now() noexcept {
  is_ended_ = is_ended_ || (have_all_ended() && std::ranges::all_of(rails_, [](const auto& rail) {
                              return rail.try_ns == kNever;
                            }));
  return is_ended_;
}

/// Whether a rail may have something from a peer that has ended: it will tell of the end.
bool Link::may_have_more() const noexcept {
  return std::ranges::any_of(rails_, [](const LinkRail& rail) {
    return rail.is_reliable &&
           (rail.state == RailState::up || rail.state == RailState::suspect ||
            rail.state == RailState::unopened ||
            (rail.state == RailState::ended && rail.try_ns != kNever));
  });
}

/// Earlier than planned. Relaxed: the poller reads it in each round; a sender, whose word is
/// note_due_of_sender(), wakes it if it may sleep for longer.
void Link::note_due(std::uint64_t at_ns) noexcept {
  if (at_ns < due_ns_.load(std::memory_order_relaxed)) {
    due_ns_.store(at_ns, std::memory_order_relaxed);
  }
}

void Link::note_due_of_sender(std::uint64_t at_ns) noexcept {
  if (at_ns < due_ns_.load(std::memory_order_relaxed)) {
    due_ns_.store(at_ns, std::memory_order_relaxed);
    is_sooner_.store(true, std::memory_order_relaxed);
  }
}

void Link::lose_rail(std::uint16_t index, std::string_view reason) noexcept {
  const SpinGuard guard{state_lock_};
  if (LinkRail* const rail = find_rail(index); rail != nullptr && !is_lost_) {
    drop_rail(*rail, reason, shared_.clock->now_ns());
  }
}

void Link::drop_rail(LinkRail& rail, std::string_view reason, std::uint64_t now_ns) noexcept {
  const bool was_reviving = rail.state == RailState::reviving;
  rail.state = RailState::down;
  rail.pause_ns = was_reviving ? std::min(2 * rail.pause_ns, kPauseMaxNs) : kFirstTryNs;
  rail.try_ns = was_reviving ? now_ns + rail.pause_ns : now_ns;
  may_miss_ = true;
  owe_again(now_ns);  // The last acknowledgement may have been on it.
  note_due(now_ns);
  if (gone_ns_ != kNever) {
    rail.try_ns = kNever;  // step() sees whether it was the last one.
  } else if (was_reviving) {
    shared_.log->info("rail {} to node {} is still down: {}", rail.name, node_, reason);
  } else if (has_way()) {
    shared_.log->warn("rail {} to node {} is down: {}; its packets take the other rails",
                      rail.name, node_, reason);
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

void Link::lose_peer() noexcept {
  const SpinGuard guard{state_lock_};
  if (why_.empty()) {
    why_ = "its process has ended";
  }
  gone_ns_ = shared_.clock->now_ns();
  for (LinkRail& rail : rails_) {
    if (rail.state == RailState::reviving || rail.state == RailState::down) {
      rail.state = RailState::down;
      rail.try_ns = kNever;
    }
  }
  note_due(0);  // The rest is step()'s.
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

bool Link::is_through(std::uint16_t index) const noexcept {
  const SpinGuard guard{state_lock_};
  const std::uint64_t now_ns = shared_.clock->now_ns();
  return std::ranges::all_of(rails_, [&](const LinkRail& rail) {
    return (index != kAllRails && rail.index != index) || rail.rate.is_through(now_ns);
  });
}

void Link::know(std::uint16_t index, const WayCosts& costs) noexcept {
  const SpinGuard guard{state_lock_};
  if (LinkRail* const rail = find_rail(index); rail != nullptr) {
    rail->rate.know(costs.packet_ps_per_byte, costs.packet_ns, costs.latency_ns);
  }
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

std::string Link::explain(std::uint64_t bytes, std::uint32_t packet_bytes,
                          std::vector<RailShare>& shares) const {
  std::vector<RailView> views(kViewedRails);
  const auto first = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, packet_bytes));
  shares.clear();
  {
    const SpinGuard guard{state_lock_};
    views.resize(view(first, 0, std::span<RailView, kViewedRails>{views}));
    for (std::size_t i = 0; i < views.size(); ++i) {
      views[i].has_room = views[i].is_up;  // What is full at this moment has room in the next one.
      shares.push_back({.name = std::string{rails_[i].name},
                        .state = to_string(rails_[i].state),
                        .is_measured = rails_[i].rate.is_measured(),
                        .latency_ns = views[i].latency_ns,
                        .ps_per_byte = views[i].ps_per_byte(),
                        .in_flight_bytes = views[i].in_flight_bytes});
    }
  }
  const std::vector<std::uint64_t> parts = share_out(views, packet_bytes, *shared_.strategy, bytes);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    RailShare& share = shares[i];
    share.bytes = parts[i];
    if (parts[i] != 0) {  // In doubles: the bytes of a long question on a slow rail are 2^70 ps.
      share.ns = share.latency_ns + static_cast<std::uint64_t>(
                                        static_cast<double>(share.in_flight_bytes + share.bytes) *
                                        static_cast<double>(share.ps_per_byte) / 1000);
    }
  }
  return shared_.strategy->explain_rail(views, first);
}

/// Whether the rail may take a packet as far as the link is concerned: a driver says by itself when
/// it is full, but before a rail is measured it could take more than it will ever deliver.
bool Link::may_take(const LinkRail& rail, std::uint32_t bytes) const noexcept {
  return rails_.size() == 1 || rail.rate.is_measured() ||
         rail.rate.in_flight() + bytes <=
             kUnmeasuredPackets * std::uint64_t{rail.driver->capabilities().packet_bytes_max};
}

std::size_t Link::view(std::uint32_t bytes, std::uint64_t tried,
                       std::span<RailView, kViewedRails> views) const noexcept {
  const std::size_t count = std::min(rails_.size(), views.size());
  const bool has_up = up_count() != 0;
  for (std::size_t i = 0; i < count; ++i) {
    const LinkRail& rail = rails_[i];
    const bool is_usable = rail.state == RailState::up || (!has_up && is_in_doubt(rail));
    // Few are poor: a look at the clock for each packet would be too much.
    const bool is_tried = rail.rate.is_poor() && rail.rate.is_to_try(shared_.clock->now_ns());
    const std::uint64_t ps = is_tried ? rail.rate.least_ps_per_byte() : rail.rate.ps_per_byte();
    views[i] = {.is_up = is_usable,
                .has_room = is_usable && rail.channel != nullptr && (tried >> i & 1) == 0 &&
                            may_take(rail, bytes),
                .latency_ns = is_tried ? std::min(rail.rate.least_round_trip_ns() / 2,
                                                  rail.rate.latency_ns())
                                       : rail.rate.latency_ns(),
                .in_flight_bytes = rail.rate.in_flight(),
                .profile_ps_per_byte = rail.rate.profile_ps_per_byte(bytes),
                .measured_ps_per_byte = rail.rate.is_measured() ? ps : 0,
                .sent_bytes = rail.bytes};
  }
  return count;
}

}  // namespace sterna::net
