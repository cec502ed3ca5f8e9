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

/// "tcp" of "drop(delay(tcp@eth0))*2".
std::string_view network_of(std::string_view name) noexcept {
  const std::size_t inner = name.rfind('(');
  name.remove_prefix(inner == std::string_view::npos ? 0 : inner + 1);
  return name.substr(0, name.find_first_of("@,)*"));
}

}  // namespace

std::vector<std::uint16_t> choose_rails(std::span<const std::string> names,
                                        const std::vector<bool>& reaches, bool all) {
  std::vector<std::uint16_t> rails;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_wanted =
        rails.empty() || all || network_of(names[i]) == network_of(names[rails.front()]);
    if (reaches[i] && is_wanted) {
      rails.push_back(static_cast<std::uint16_t>(i));
    }
  }
  return rails;
}

Bond::Bond(std::uint32_t node_count, LinkShared shared, Owner& owner)
    : shared_{shared},
      owner_{owner},
      openings_(node_count),
      links_{std::make_unique<std::atomic<Link*>[]>(node_count)},
      is_reported_(node_count) {
  capabilities_.packet_bytes_max = ~std::uint32_t{0};
  capabilities_.is_ordered = false;
  capabilities_.latency_ns = ~std::uint32_t{0};
  capabilities_.bandwidth_mb_per_s = 0;
}

void Bond::add(std::uint32_t node, std::span<const Link::RailOpening> rails) {
  check(!rails.empty() && rails.size() <= 64, "a link has between 1 and 64 rails");
  openings_[node].assign(rails.begin(), rails.end());
  std::uint32_t bandwidth = 0;
  for (const Link::RailOpening& rail : rails) {
    const Capabilities& its = rail.driver->capabilities();
    has_lossy_ = has_lossy_ || !its.is_reliable;
    capabilities_.packet_bytes_max =
        std::min(capabilities_.packet_bytes_max,
                 its.packet_bytes_max - static_cast<std::uint32_t>(kLinkHeaderBytes));
    capabilities_.latency_ns = std::min(capabilities_.latency_ns, its.latency_ns);
    capabilities_.packet_ns = std::min(capabilities_.packet_ns, its.packet_ns);
    capabilities_.cpu_ps_per_byte = its.cpu_ps_per_byte;
    bandwidth += its.bandwidth_mb_per_s;
  }
  capabilities_.bandwidth_mb_per_s = std::max(capabilities_.bandwidth_mb_per_s, bandwidth);
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
  made_.push_back(std::move(made));
  links_[node].store(made_.back().get(), std::memory_order_release);
  made_count_.fetch_add(1, std::memory_order_release);
  return *made_.back();
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
  link(node).lose();
}

Packet Bond::take(std::uint16_t index, std::uint32_t from_node, Packet packet) noexcept {
  return link(from_node).take(index, packet);
}

void Bond::lose_rail(std::uint16_t index, std::uint32_t node, std::string_view reason) noexcept {
  link(node).lose_rail(index, reason);
}

std::uint64_t Bond::due_ns() const noexcept {
  std::uint64_t due_ns = closing_since_ns_ != kNever && !may_close_ ? 0 : kNever;
  for (const std::uint32_t node : known_) {
    due_ns = std::min(due_ns, find(node)->due_ns());
  }
  return due_ns;
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
