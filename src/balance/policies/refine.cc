// The policy refine: take ranks from the most loaded node until it is within a few percent of the
// average, and move nothing else.
//
// Each step moves, from the node that ends last, the rank that lowers the later of the two ends
// most; when no single move does, it exchanges a rank for a lighter one. It stops when the slowest
// node is within kSlack of the average, or when nothing improves it. A move must gain more than
// kStepGainMin of the average time, so that noise in the measures moves nobody.
#include <algorithm>
#include <cmath>
#include <optional>

#include "balance/policies/builtin.h"

namespace sterna::balance {
namespace {

constexpr double kSlack = 1.05;
constexpr double kStepGainMin = 0.01;

class Refinement {
 public:
  explicit Refinement(const Measures& measures)
      : measures_{measures}, now_{measures}, times_{node_times_ns(measures)} {
    double total = 0.0;
    double speed = 0.0;
    for (const RankLoad& rank : measures.ranks) {
      total += static_cast<double>(rank.cpu_ns);
    }
    for (const NodeCapacity& node : measures.nodes) {
      speed += node.speed;
    }
    average_ = speed > 0.0 ? total / speed : 0.0;
  }

  Plan run() {
    const std::size_t steps_max = 2 * now_.ranks.size();
    for (std::size_t step = 0; step < steps_max; ++step) {
      const auto worst =
          static_cast<std::uint32_t>(std::ranges::max_element(times_) - times_.begin());
      if (times_[worst] <= kSlack * average_ || !improve(worst)) {
        break;
      }
    }
    return difference(measures_, now_);
  }

 private:
  /// `out` leaves the worst node for node `to`; `in`, if any, comes back from there.
  struct Step {
    RankLoad* out;
    RankLoad* in;
    std::uint32_t to;
    double end;  // The later end of the two nodes after the step.
  };

  double time_of(const RankLoad* rank, std::uint32_t node) const noexcept {
    return rank == nullptr ? 0.0 : static_cast<double>(rank->cpu_ns) / measures_.nodes[node].speed;
  }

  void consider(std::optional<Step>& best, std::uint32_t worst, Step step) const noexcept {
    const double worst_end = times_[worst] - time_of(step.out, worst) + time_of(step.in, worst);
    const double other_end =
        times_[step.to] + time_of(step.out, step.to) - time_of(step.in, step.to);
    step.end = std::max(worst_end, other_end);
    if (!best || step.end < best->end) {
      best = step;
    }
  }

  std::optional<Step> best_move(std::uint32_t worst) noexcept {
    std::optional<Step> best;
    for (RankLoad& out : now_.ranks) {
      for (std::uint32_t to = 0; to < times_.size(); ++to) {
        if (out.node == worst && out.movable && to != worst) {
          consider(best, worst, {.out = &out, .in = nullptr, .to = to, .end = 0.0});
        }
      }
    }
    return best;
  }

  std::optional<Step> best_exchange(std::uint32_t worst) noexcept {
    std::optional<Step> best;
    for (RankLoad& out : now_.ranks) {
      if (out.node != worst || !out.movable) {
        continue;
      }
      for (RankLoad& in : now_.ranks) {
        if (in.node != worst && in.movable && in.cpu_ns < out.cpu_ns) {
          consider(best, worst, {.out = &out, .in = &in, .to = in.node, .end = 0.0});
        }
      }
    }
    return best;
  }

  bool gains(const std::optional<Step>& step, std::uint32_t worst) const noexcept {
    return step && step->end < times_[worst] - kStepGainMin * average_;
  }

  bool improve(std::uint32_t worst) noexcept {
    std::optional<Step> step = best_move(worst);
    if (!gains(step, worst)) {
      step = best_exchange(worst);
    }
    if (!gains(step, worst)) {
      return false;
    }
    times_[worst] += time_of(step->in, worst) - time_of(step->out, worst);
    times_[step->to] += time_of(step->out, step->to) - time_of(step->in, step->to);
    step->out->node = step->to;
    if (step->in != nullptr) {
      step->in->node = worst;
    }
    return true;
  }

  const Measures& measures_;
  Measures now_;               // With the steps taken so far.
  std::vector<double> times_;  // Of now_.
  double average_ = 0.0;
};

Result<Plan> plan_refine(const Measures& measures, std::string_view) {
  return measures.nodes.empty() ? Plan{} : Refinement{measures}.run();
}

}  // namespace

constinit const PolicyEntry kRefinePolicy{
    .name = "refine",
    .summary = "moves as few ranks as needed from the most loaded nodes",
    .plan = plan_refine,
};

}  // namespace sterna::balance
