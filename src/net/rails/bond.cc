// The links of a node.
#include "net/rails/bond.h"

#include <algorithm>

#include "base/check.h"

namespace sterna::net {
namespace {

// A peer that did not hear our last acknowledgement asks again within this; and for packets whose
// peer says nothing more, a closing node does not wait longer than that.
constexpr std::uint64_t kLingerNs = 50'000'000;
constexpr std::uint64_t kCloseNs = 3'000'000'000;

}  // namespace

Bond::Bond(std::uint32_t node_count, LinkShared shared, Owner& owner)
    : shared_{shared},
      owner_{owner},
      openings_(node_count),
      links_{std::make_unique<std::atomic<Link*>[]>(node_count)},
      known_costs_(node_count),
      is_reported_(node_count) {
  shared_.is_choice_told = &is_choice_told_;
  capabilities_.packet_bytes_max = ~std::uint32_t{0};
  capabilities_.is_ordered = false;
  capabilities_.latency_ns = ~std::uint32_t{0};
  capabilities_.bandwidth_mb_per_s = 0;
}

void Bond::add(std::uint32_t node, std::span<const Link::RailOpening> rails) {
  check(!rails.empty() && rails.size() <= 64, "a link has between 1 and 64 rails");
  openings_[node].assign(rails.begin(), rails.end());
  std::vector<Capabilities> each;
  for (const Link::RailOpening& rail : rails) {
    each.push_back(rail.driver->capabilities());
    has_lossy_ = has_lossy_ || !each.back().is_reliable || shared_.options.has_sums;
  }
  const Capabilities way = link_capabilities(each);
  capabilities_.packet_bytes_max = std::min(capabilities_.packet_bytes_max, way.packet_bytes_max);
  capabilities_.latency_ns = std::min(capabilities_.latency_ns, way.latency_ns);
  capabilities_.packet_ns = std::min(capabilities_.packet_ns, way.packet_ns);
  capabilities_.cpu_ps_per_byte = way.cpu_ps_per_byte;
  capabilities_.bandwidth_mb_per_s =
      std::max(capabilities_.bandwidth_mb_per_s, way.bandwidth_mb_per_s);
  capabilities_.can_lend =
      capabilities_.can_lend || (way.can_lend && !shared_.options.has_sums);
}

Link& Bond::link(std::uint32_t node) noexcept {
  if (Link* const known = links_[node].load(std::memory_order_acquire); known != nullptr) {
    return *known;
  }
  auto made = std::make_unique<Link>(node, openings_[node], shared_);
  const SpinGuard guard{make_lock_};
  if (Link* const known = links_[node].load(std::memory_order_relaxed); known != nullptr) {
    return *known;
  }
  for (const Known& known : known_costs_[node]) {
    made->know(known.rail, known.costs);
  }
  made_.push_back(std::move(made));
  links_[node].store(made_.back().get(), std::memory_order_release);
  made_count_.fetch_add(1, std::memory_order_release);
  return *made_.back();
}

SendState Bond::try_send_by(std::uint32_t node, std::uint16_t index,
                            std::span<const Piece> pieces) noexcept {
  return has(node) ? link(node).try_send_by(index, pieces) : SendState::closed;
}

std::vector<std::string_view> Bond::rail_names(std::uint32_t node) const {
  std::vector<std::string_view> names;
  for (const Link::RailOpening& opening : openings_[node]) {
    names.push_back(opening.name);
  }
  return names;
}

void Bond::know(std::uint32_t node, std::uint16_t index, const WayCosts& costs) noexcept {
  const SpinGuard guard{make_lock_};
  std::erase_if(known_costs_[node], [&](const Known& known) { return known.rail == index; });
  known_costs_[node].push_back({index, costs});
  if (Link* const made = links_[node].load(std::memory_order_relaxed); made != nullptr) {
    made->know(index, costs);
  }
}

Cut Bond::cut(std::uint32_t node) noexcept {
  std::vector<RailCosts> rails;
  const SpinGuard guard{make_lock_};
  for (const Link::RailOpening& rail : openings_[node]) {
    const Capabilities& profile = rail.driver->capabilities();
    WayCosts costs{.latency_ns = profile.latency_ns,
                   .packet_ns = profile.packet_ns,
                   .packet_ps_per_byte = 1'000'000 / std::max(profile.bandwidth_mb_per_s, 1U)};
    for (const Known& known : known_costs_[node]) {
      costs = known.rail == rail.index ? known.costs : costs;
    }
    rails.push_back({.ps_per_byte = std::max(costs.packet_ps_per_byte, 1U),
                     .packet_ns = costs.packet_ns,
                     .latency_ns = costs.latency_ns});
  }
  return plan_cut(rails);
}

Result<Channel*> Bond::connect(std::uint32_t node, Packet /*peer_address*/) noexcept {
  Link& opened = link(node);
  if (!opened.open()) {
    return Errc::unreachable;
  }
  return &opened;
}

void Bond::lose_peer(std::uint32_t node) noexcept {
  for (const Link::RailOpening& rail : openings_[node]) {
    rail.driver->lose_peer(node);
  }
  link(node).lose_peer();
}

Packet Bond::take(std::uint16_t index, std::uint32_t from_node, Packet packet) noexcept {
  return link(from_node).take(index, packet);
}

void Bond::lose_rail(std::uint16_t index, std::uint32_t node, std::string_view reason) noexcept {
  link(node).lose_rail(index, reason);
}

std::uint64_t Bond::due_ns() const noexcept {
  const bool is_due = (closing_since_ns_ != kNever && !may_close_) || lent_parts_.has_given_up();
  std::uint64_t due_ns = is_due ? 0 : kNever;
  for (const std::uint32_t node : known_) {
    due_ns = std::min(due_ns, find(node)->due_ns());
  }
  return due_ns;
}

void Bond::give_up_ways() noexcept {
  for (const LentParts::Way& way : lent_parts_.take_given_up()) {
    for (const Link::RailOpening& rail : openings_[way.node]) {
      if (rail.index == way.rail) {
        rail.driver->abandon(way.node, "its peer has sent again what it had lent by it");
      }
    }
  }
}

std::uint32_t Bond::step(bool is_closing) noexcept {
  if (made_count_.load(std::memory_order_acquire) != known_.size()) {
    known_.clear();
    for (std::uint32_t node = 0; node < openings_.size(); ++node) {
      if (find(node) != nullptr) {
        known_.push_back(node);
      }
    }
  }
  if (lent_parts_.has_given_up()) [[unlikely]] {
    give_up_ways();
  }
  const std::uint64_t now_ns = shared_.clock->now_ns();
  if (is_closing && closing_since_ns_ == kNever) {
    closing_since_ns_ = now_ns;
    for (const std::uint32_t node : known_) {
      link(node).begin_close();
    }
  }
  std::uint32_t count = 0;
  bool is_quiet = true;
  for (const std::uint32_t node : known_) {
    Link& stepped = link(node);
    if (stepped.due_ns() <= now_ns) {
      count += stepped.step(now_ns);
      std::string why;
      if (!is_reported_[node] && stepped.is_lost(why)) {
        is_reported_[node] = true;
        owner_.on_link_lost(node, why);
      }
    }
    is_quiet = is_quiet && (!is_closing || stepped.is_quiet());
  }
  if (is_closing) {
    quiet_since_ns_ = is_quiet ? std::min(quiet_since_ns_, now_ns) : kNever;
    const std::uint64_t linger_ns = has_lossy_ ? kLingerNs : 0;
    may_close_ = may_close_ || now_ns - closing_since_ns_ >= kCloseNs ||
                 (is_quiet && now_ns - quiet_since_ns_ >= linger_ns);
  }
  return count;
}

}  // namespace sterna::net
