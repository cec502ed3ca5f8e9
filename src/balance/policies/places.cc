// The policy places: a scheduling policy (src/sched) distributes the ranks over the network, as it
// distributes threads over a machine.
//
// The nodes are a machine of the scheduler's engine (balance/network.h), the ranks its threads,
// with their measured loads; blocks of ranks with consecutive numbers, which are neighbours in most
// programs, are bubbles. The engine and the named policy run them in virtual time from where they
// are, heaviest first: where a rank has run is where it belongs. This is repeated from the new
// places for as long as it gains, so that the next decision about the same loads moves nobody.
//
// Places that are alike may change their names: each is given the node that then keeps most of the
// memory. Ranks without load stay, ranks that may not move are fixed on their node.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <tuple>

#include "balance/network.h"
#include "balance/policies/builtin.h"
#include "sched/simulator.h"

namespace sterna::balance {
namespace {

constexpr std::string_view kDefaultPolicy = "cache";
constexpr std::string_view kBlock = "block=";
// Without block=: so many bubbles a node, that whole ones can even out loads.
constexpr std::uint32_t kBlocksPerNode = 4;
constexpr std::uint32_t kBlockMax = 1U << 20;
// Virtual time of an even distribution: within the time slices of policies, and nobody's time.
constexpr double kEvenNs = 10'000'000;
constexpr std::uint64_t kNoQuantum = 1'000'000'000'000;

struct Arguments {
  std::string_view policy = kDefaultPolicy;
  std::uint32_t block = 0;  // Ranks of a bubble; 0: as many as make kBlocksPerNode.
};

/// "burst", "parts(machine,steal),block=4", "block=2".
Result<Arguments> parse(std::string_view text) {
  Arguments arguments;
  const std::size_t comma = text.rfind(',');
  const std::size_t last = comma == std::string_view::npos ? 0 : comma + 1;
  if (text.substr(last).starts_with(kBlock)) {
    const std::string_view number = text.substr(last + kBlock.size());
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, arguments.block);
    if (error != std::errc{} || stop != end || arguments.block == 0 ||
        arguments.block > kBlockMax) {
      return Error{Errc::invalid_argument, "\"" + std::string{text.substr(last)} +
                                               "\" is no size of a block of ranks; it is 1 to " +
                                               std::to_string(kBlockMax)};
    }
    text = text.substr(0, last == 0 ? 0 : comma);
  }
  arguments.policy = text.empty() ? kDefaultPolicy : text;
  return arguments;
}

// The program may register a policy of its own later: what is no name at all is refused, and a name
// that nobody knows when it is used.
Result<> verify(std::string_view text) {
  Result<Arguments> arguments = parse(text);
  if (!arguments) {
    return arguments.error();
  }
  const std::string_view policy = arguments.value().policy;
  if (policy.find_first_of("(), ") == std::string_view::npos &&
      sched::find_policy(policy) == nullptr) {
    return Done{};
  }
  const auto made = sched::make_policy(policy);
  return made ? Result<>{Done{}} : made.error();
}

// The node of each rank as the policy calls it, by index in Measures::ranks.
using Placement = std::vector<std::uint32_t>;
constexpr std::uint32_t kStays = 0xffff'ffff;  // Without load, or not movable.

/// One round: the ranks as a workload on the network, and where it puts them.
class Round {
 public:
  Round(const Measures& measures, const Network& network, const Arguments& arguments)
      : measures_{measures}, network_{network}, arguments_{arguments} {}

  Result<Placement> run() {
    Placement placement(measures_.ranks.size(), kStays);
    const sched::Workload workload = make_workload();
    if (workload.threads.empty()) {
      return placement;
    }
    const sched::SimulationOptions options{.topology = network_.topology(),
                                           .policy = std::string{arguments_.policy},
                                           .quantum_ns = kNoQuantum,
                                           .processors = network_.processors()};
    Result<sched::SimulationResult> result = sched::simulate(options, workload);
    if (!result) {
      return result.error();
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (measures_.ranks[order_[i]].movable) {
        placement[order_[i]] = network_.node_of_processor(result.value().thread_processor[i]);
      }
    }
    return placement;
  }

 private:
  std::uint32_t block_size() const noexcept {
    if (arguments_.block != 0) {
      return arguments_.block;
    }
    const auto blocks = static_cast<std::uint32_t>(measures_.nodes.size()) * kBlocksPerNode;
    const std::uint32_t ranks = measures_.ranks.empty() ? 1 : measures_.ranks.back().rank + 1;
    return (ranks + blocks - 1) / blocks;
  }

  std::uint64_t scaled(const RankLoad& rank) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(rank.cpu_ns) * scale_);
  }

  /// Its ranks by index, heaviest first, in their blocks, those heaviest first.
  void choose_order() {
    const std::uint32_t block = block_size();
    std::map<std::uint32_t, std::uint64_t> loads;
    for (std::uint32_t i = 0; i < measures_.ranks.size(); ++i) {
      const RankLoad& rank = measures_.ranks[i];
      if (scaled(rank) != 0 && network_.worker_count(rank.node) != 0) {
        loads[rank.rank / block] += scaled(rank);
        order_.push_back(i);
      }
    }
    const auto key = [&](std::uint32_t i) {
      const RankLoad& rank = measures_.ranks[i];
      const std::uint32_t number = rank.rank / block;
      return std::tuple{~loads[number], number, ~scaled(rank), rank.rank};
    };
    std::ranges::sort(order_, {}, key);
  }

  sched::Workload make_workload() {
    double total = 0.0;
    for (const RankLoad& rank : measures_.ranks) {
      total += static_cast<double>(rank.cpu_ns);
    }
    scale_ = kEvenNs * static_cast<double>(network_.processors().size()) / std::max(total, 1.0);
    choose_order();
    sched::Workload workload;
    workload.name = "ranks";
    workload.network_ns = 0;
    const std::uint32_t block = block_size();
    std::uint32_t number = 0;
    for (const std::uint32_t i : order_) {
      const RankLoad& rank = measures_.ranks[i];
      if (workload.groups.empty() || rank.rank / block != number) {
        number = rank.rank / block;
        workload.groups.push_back({.barrier = 0, .has_bubble = block > 1});
      }
      const std::uint32_t home = network_.first_processor(rank.node);
      workload.threads.push_back(
          {.group = static_cast<std::uint32_t>(workload.groups.size() - 1),
           .load = scaled(rank),
           .processor = rank.movable ? sched::kNoPlace : home,
           .within = network_.node_kind(),
           .last = home,
           .steps = {{.kind = sched::Step::Kind::compute, .ns = scaled(rank)}}});
    }
    return workload;
  }

  const Measures& measures_;
  const Network& network_;
  const Arguments& arguments_;
  double scale_ = 1.0;
  std::vector<std::uint32_t> order_;  // Index of the rank of each thread.
};

/// Gives the places that are alike other names, so that most of the memory stays where it is.
class Renaming {
 public:
  Renaming(const Measures& before, const Placement& placement, const Network& network)
      : before_{before}, placement_{placement}, network_{network}, node_of_(before.nodes.size()) {
    kept_.assign(node_of_.size() * node_of_.size(), 0);
    is_fixed_.assign(node_of_.size(), false);
    for (std::size_t i = 0; i < before.ranks.size(); ++i) {
      const RankLoad& rank = before.ranks[i];
      if (placement[i] != kStays) {
        kept(placement[i], rank.node) += rank.bytes + 1;
      }
      is_fixed_[rank.node] = is_fixed_[rank.node] || !rank.movable;
    }
    for (std::uint32_t node = 0; node < node_of_.size(); ++node) {
      node_of_[node] = node;
    }
  }

  /// The measures with all ranks where the policy puts them.
  Measures run() {
    const auto& hosts = network_.hosts();
    const std::vector<std::uint32_t> host_of = match(
        hosts.size(), [&](auto from, auto to) { return are_alike(hosts[from], hosts[to]); },
        [&](auto from, auto to) { return kept_between(hosts[from], hosts[to]); });
    for (std::size_t host = 0; host < hosts.size(); ++host) {
      const auto& from = hosts[host];
      const auto& to = hosts[host_of[host]];
      const std::vector<std::uint32_t> inside = match(
          from.size(), [&](auto a, auto b) { return is_alike(from[a], to[b]); },
          [&](auto a, auto b) { return kept(from[a], to[b]); });
      for (std::size_t i = 0; i < from.size(); ++i) {
        node_of_[from[i]] = to[inside[i]];
      }
    }
    Measures placed = before_;
    for (std::size_t i = 0; i < placed.ranks.size(); ++i) {
      if (placement_[i] != kStays) {
        placed.ranks[i].node = node_of_[placement_[i]];
      }
    }
    return placed;
  }

 private:
  std::uint64_t& kept(std::uint32_t from, std::uint32_t to) noexcept {
    return kept_[from * node_of_.size() + to];
  }

  bool is_alike(std::uint32_t a, std::uint32_t b) const noexcept {
    return a == b ||
           (!is_fixed_[a] && !is_fixed_[b] && before_.nodes[a].speed == before_.nodes[b].speed);
  }

  /// As node for node in their order: hosts differ by more than that, or not at all.
  bool are_alike(const std::vector<std::uint32_t>& a,
                 const std::vector<std::uint32_t>& b) const noexcept {
    return std::ranges::equal(a, b, [&](auto one, auto other) { return is_alike(one, other); });
  }

  std::uint64_t kept_between(const std::vector<std::uint32_t>& from,
                             const std::vector<std::uint32_t>& to) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint32_t a : from) {
      for (const std::uint32_t b : to) {
        sum += kept(a, b);
      }
    }
    return sum;
  }

  /// A partner for each of [0, count), all different: the pair that keeps most first. Everyone may
  /// be its own, and what is alike is so in classes: nobody is left over.
  template <typename MayPair, typename Kept>
  static std::vector<std::uint32_t> match(std::size_t count, MayPair&& may_pair, Kept&& value) {
    std::vector<std::tuple<std::uint64_t, bool, std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t a = 0; a < count; ++a) {
      for (std::uint32_t b = 0; b < count; ++b) {
        if (may_pair(a, b)) {
          pairs.emplace_back(~value(a, b), a != b, a, b);
        }
      }
    }
    std::ranges::sort(pairs);
    constexpr std::uint32_t kNobody = 0xffff'ffff;
    std::vector<std::uint32_t> partner(count, kNobody);
    std::vector<bool> is_taken(count, false);
    for (const auto& [less, is_other, a, b] : pairs) {
      if (partner[a] == kNobody && !is_taken[b]) {
        partner[a] = b;
        is_taken[b] = true;
      }
    }
    return partner;
  }

  const Measures& before_;
  const Placement& placement_;
  const Network& network_;
  std::vector<std::uint32_t> node_of_;  // By the node as the policy called it.
  std::vector<std::uint64_t> kept_;     // Bytes, by the node of the policy and that of today.
  std::vector<bool> is_fixed_;
};

Result<Plan> plan_places(const Measures& measures, std::string_view text) {
  Result<Arguments> arguments = parse(text);
  if (!arguments) {
    return arguments.error();
  }
  const Network network{measures.nodes};
  Measures now = measures;
  // Each round gains a part of what is left: it ends.
  while (measures.nodes.size() > 1 && !network.processors().empty()) {
    Result<Placement> placed = Round{now, network, arguments.value()}.run();
    if (!placed) {
      return placed.error();
    }
    Measures next = Renaming{now, placed.value(), network}.run();
    if (imbalance(next) > (1.0 - kGainMin) * imbalance(now)) {
      break;
    }
    now = std::move(next);
  }
  return difference(measures, now);
}

}  // namespace

constinit const PolicyEntry kPlacesPolicy{
    .name = "places",
    .summary =
        "a scheduling policy distributes blocks of ranks over the network: "
        "places(burst,block=4)",
    .plan = plan_places,
    .verify = verify,
};

}  // namespace sterna::balance
