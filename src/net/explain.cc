// Why a message goes the way it goes: what the cost model, the strategy and the link say now.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/core.h"

namespace sterna::net {
namespace {

std::vector<Threshold> thresholds_of(const CostModel& cost, std::uint64_t lent_from_bytes) {
  return {{"eager_bytes", cost.eager_bytes()},
          {"unawaited_eager_bytes", cost.unawaited_eager_bytes()},
          {"computing_eager_bytes", cost.computing_eager_bytes()},
          {"direct_from_bytes", cost.direct_from_bytes()},
          {"share_bytes", cost.share_bytes()},
          {"head_bytes", cost.head_bytes()},
          {"beside_from_bytes", cost.beside_from_bytes()},
          {"lent_from_bytes", lent_from_bytes}};
}

std::vector<LearntCost> costs_of(const CostModel& cost) {
  std::vector<LearntCost> costs;
  for (const CostModel::Row& row : cost.figures()) {
    if (cost.is_direct() || !std::string_view{row.name}.starts_with("direct")) {
      costs.push_back(
          {row.name, row.figure.value, to_string(row.figure.origin), row.figure.corrections});
    }
  }
  return costs;
}

}  // namespace

std::string Gate::explain(std::uint64_t bytes) const {
  const std::uint64_t lent_from = lent_from_bytes();
  const SpinGuard guard{cost_lock_};
  const bool is_one = !cost_->is_direct() || bytes <= cost_->eager_bytes();
  return cost_->explain(bytes, lent_from) + (is_one ? "" : trials_.explain(*cost_, bytes));
}

std::string Transport::explain(std::uint32_t node, std::uint64_t bytes) {
  check(node < core_->limits_.node_count, "a node is less than the number of nodes");
  if (node == core_->node_) {
    return fmt::format(
        "{} bytes within a node: copied once when the receive is posted; else kept "
        "up to {} bytes, beyond that it waits at its sender",
        bytes, core_->options_.local_eager_bytes);
  }
  return core_->gates_[node].explain(bytes);
}

WayExplanation Transport::explain_way(std::uint32_t node, std::uint64_t bytes) {
  WayExplanation way;
  way.node = node;
  way.bytes = bytes;
  way.protocol = explain(node, bytes);
  way.is_here = node == core_->node_;
  if (way.is_here) {
    return way;
  }
  const Gate& gate = core_->gates_[node];
  const CostModel cost = gate.cost();
  way.is_lost = gate.is_lost();
  way.strategy = core_->options_.strategy_name;
  way.thresholds = thresholds_of(cost, gate.lent_from_bytes());
  way.costs = costs_of(cost);
  way.forming = core_->options_.strategy->explain({gate.packet_bytes_max(), cost.share_bytes()});
  for (std::size_t i = 0; i < core_->rails_.size(); ++i) {
    if (&core_->rails_[i]->driver() == gate.driver()) {
      way.driver = core_->driver_names_[i];
    }
  }
  if (const Link* const link = core_->bond_ != nullptr ? core_->bond_->find(node) : nullptr;
      link != nullptr) {
    way.choice = link->explain(bytes, gate.frame_bytes(bytes, gate.packet_bytes_max()), way.rails);
  }
  if (core_->bond_ != nullptr && core_->bond_->has(node)) {
    std::vector<WayDriver> rails;
    for (const Link::RailOpening& rail : core_->bond_->rails(node)) {
      rails.push_back({std::string{rail.name}, rail.driver->capabilities(), true});
    }
    way.copies = tell_link_copies(rails, gate.lent_from_bytes() != CostModel::kNever);
    way.driver = fmt::format("link({})", fmt::join(core_->bond_->rail_names(node), "+"));
  }
  return way;
}

}  // namespace sterna::net
