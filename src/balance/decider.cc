// Node 0: when to balance, and what comes of it.
#include "balance/decider.h"

#include <algorithm>
#include <utility>

#include "balance/report.h"
#include "balance/services.h"
#include "threads/this_thread.h"

namespace sterna::balance {
namespace {

// A window of measures cuts steps of the program anywhere: the newest window counts this much,
// those before it the rest.
constexpr double kNewest = 0.4;
// Measures and plans of large jobs need room.
constexpr std::size_t kDeciderStackBytes = 248 << 10;

}  // namespace

Result<> Actor::start() {
  if (decider_ == nullptr || options_.policy.entry == find_policy("none")) {
    return Done{};
  }
  Result<threads::Thread*> thread = options_.team->spawn(
      {.name = "balancer", .stack_bytes = kDeciderStackBytes}, run_decider, this);
  if (!thread) {
    return thread.error();
  }
  return Done{};
}

void Actor::stop() noexcept {
  if (decider_ != nullptr) {
    decider_->is_stopping.store(true, std::memory_order_release);
    wake_decider();
  }
}

void Actor::wake_decider() noexcept {
  // Acquire pairs with the release of run_decider. Not there yet: it looks before it parks.
  if (threads::Thread* thread = decider_->thread.load(std::memory_order_acquire)) {
    threads::unpark(*thread);
  }
}

void Actor::Decider::note(const Arrived& arrived, std::uint32_t node) noexcept {
  const SpinGuard guard{lock};
  heard[node] = std::max(heard[node], arrived.number);
  State& state = ranks[arrived.rank];
  if (state == State::ended) {
    return;
  }
  at_point -= state == State::at_point ? 1 : 0;
  state = arrived.has_ended ? State::ended : State::at_point;
  (arrived.has_ended ? ended : at_point) += 1;
}

std::vector<std::uint64_t> Actor::Decider::end_point() {
  const SpinGuard guard{lock};
  std::ranges::replace(ranks, State::at_point, State::runs);
  at_point = 0;
  return heard;
}

/// All ranks but those that have ended or are lost, and there are some.
bool Actor::are_all_at_point() {
  const net::Transport& transport = *options_.transport;
  Decider& decider = *decider_;
  const SpinGuard guard{decider.lock};
  const std::size_t rank_count = decider.ranks.size();
  if (decider.at_point == 0 || decider.at_point + decider.ended == rank_count) {
    return decider.at_point != 0;
  }
  if (!transport.has_lost_nodes()) {
    return false;
  }
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
    if (decider.ranks[rank] == Decider::State::runs && !transport.is_rank_lost(rank)) {
      return false;
    }
  }
  return true;
}

void Actor::run_decider(void* self) {
  Actor& actor = *static_cast<Actor*>(self);
  Decider& decider = *actor.decider_;
  decider.thread.store(threads::self(), std::memory_order_release);
  std::uint64_t next_ns = now_ns() + actor.options_.interval_ns;
  while (!decider.is_stopping.load(std::memory_order_acquire)) {
    const bool is_point = actor.are_all_at_point();
    if (is_point || now_ns() >= next_ns) {
      actor.decide();
      next_ns = now_ns() + actor.options_.interval_ns;
    }
    if (is_point) {
      actor.release_all();
      continue;
    }
    threads::park_until(next_ns);
  }
}

Result<Measures> Actor::measure() {
  const net::JobMap& job = options_.transport->job();
  std::vector<std::unique_ptr<rpc::PendingCall>> calls;
  for (std::uint32_t node = 0; node < job.node_count; ++node) {
    calls.push_back(std::make_unique<rpc::PendingCall>());
    options_.rpc->start(node, kReportService, {}, *calls.back());
  }
  Measures measures;
  measures.nodes.resize(job.node_count, {.speed = 1e-6});  // A node without an answer gets nobody.
  for (std::uint32_t node = 0; node < job.node_count; ++node) {
    // The first node of the same host names it.
    measures.nodes[node].host = static_cast<std::uint32_t>(
        std::ranges::find(job.host_of_node, job.host_of_node[node]) - job.host_of_node.begin());
    calls[node]->done.wait(*options_.progress);
    if (!calls[node]->reply) {
      continue;
    }
    Result<Report> report = decode_report(calls[node]->reply.value(), node, job.rank_count);
    if (!report) {
      return report.error();
    }
    measures.nodes[node].speed = report.value().speed;
    measures.ranks.insert(measures.ranks.end(), report.value().ranks.begin(),
                          report.value().ranks.end());
  }
  std::ranges::sort(measures.ranks, {}, &RankLoad::rank);
  return measures;
}

void Actor::smooth(Measures& measures) {
  for (RankLoad& rank : measures.ranks) {
    const auto newest = static_cast<double>(rank.cpu_ns);
    const auto [average, is_new] = decider_->average_ns.try_emplace(rank.rank, newest);
    if (!is_new) {
      average->second = kNewest * newest + (1.0 - kNewest) * average->second;
    }
    rank.cpu_ns = static_cast<std::uint64_t>(average->second);
    // The rank counts for ever, also for ps and the report.
    const std::uint64_t total = rank.messages;
    rank.messages = total - std::exchange(decider_->messages[rank.rank], total);
  }
}

void Actor::decide() {
  Result<Measures> measured = measure();
  if (!measured) {
    log_.warn("no balancing this time: {}", measured.error().text);
    return;
  }
  Measures& measures = measured.value();
  smooth(measures);
  const double before = imbalance(measures);
  Result<Plan> planned = options_.policy.plan(measures);
  if (!planned) {
    log_.warn("no balancing this time: {}", planned.error().text);
    return;
  }
  Plan& plan = planned.value();
  if (imbalance(balance::apply(measures, plan)) > (1.0 - kGainMin) * before) {
    plan.clear();
  }
  if (decider_->rounds.fetch_add(1, std::memory_order_relaxed) == 0) {
    decider_->imbalance_first.store(before, std::memory_order_relaxed);
  }
  decider_->imbalance_last.store(imbalance(balance::apply(measures, plan)),
                                 std::memory_order_relaxed);
  decider_->moves_ordered.fetch_add(plan.size(), std::memory_order_relaxed);
  log_.info("imbalance {:.2f}, {} moves make it {:.2f}", before, plan.size(),
            imbalance(balance::apply(measures, plan)));
  carry_out(plan);
}

void Actor::carry_out(const Plan& plan) {
  std::map<std::uint32_t, Plan> by_node;
  for (const Move& move : plan) {
    by_node[move.from].push_back(move);
  }
  for (const auto& [node, moves] : by_node) {
    if (Result<> sent = options_.rpc->post(node, kMoveService, encode(moves)); !sent) {
      log_.warn("{} ranks are not moved: {}", moves.size(), sent.error().text);
    }
  }
}

void Actor::release_all() {
  const std::vector<std::uint64_t> heard = decider_->end_point();
  for (std::uint32_t node = 0; node < heard.size(); ++node) {
    if (Result<> sent = options_.rpc->post(node, kReleaseService, encode_release(heard[node]));
        !sent) {
      log_.debug("node {} is gone, its ranks are not released", node);
    }
  }
}

ActorStatistics Actor::statistics() const noexcept {
  if (decider_ == nullptr) {
    return {};
  }
  return {.rounds = decider_->rounds.load(std::memory_order_relaxed),
          .moves_ordered = decider_->moves_ordered.load(std::memory_order_relaxed),
          .imbalance_first = decider_->imbalance_first.load(std::memory_order_relaxed),
          .imbalance_last = decider_->imbalance_last.load(std::memory_order_relaxed)};
}

}  // namespace sterna::balance
