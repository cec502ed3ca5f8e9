// The node's part of balancing: what it reports, orders it carries out, ranks that wait at a point.
#include "balance/actor.h"

#include <algorithm>
#include <ctime>

#include "balance/decider.h"
#include "balance/report.h"
#include "balance/services.h"
#include "memory/rank_slot.h"
#include "migration/refusal.h"
#include "migration/steps.h"
#include "threads/this_thread.h"

namespace sterna::balance {
namespace {

std::uint64_t process_cpu_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

Actor::Actor(const ActorOptions& options)
    : options_{options},
      log_{options.log == nullptr ? Logger{} : Logger{*options.log, "balance"}},
      lost_nodes_(options.transport->job().node_count),
      decider_{options.transport->job().node_index == 0 ? std::make_unique<Decider>() : nullptr} {
  rpc::Rpc& rpc = *options_.rpc;
  rpc.add_service(kReportService, rpc::RunIn::thread, on_report, this);
  rpc.add_service(kMoveService, rpc::RunIn::poll, on_move, this);
  rpc.add_service(kArrivedService, rpc::RunIn::poll, on_arrived, this);
  rpc.add_service(kReleaseService, rpc::RunIn::poll, on_release, this);
}

Actor::~Actor() = default;

// The cycle counter also runs while the kernel runs somebody else on our processor. The share that
// was really ours, of all the time that our threads ran, corrects the loads of a node that shares
// its processors with other nodes.
double Actor::processor_share() noexcept {
  std::uint64_t busy_ns = 0;
  for (std::uint32_t i = 0; i < options_.team->worker_count(); ++i) {
    busy_ns += options_.team->busy_ns(i);
  }
  const std::uint64_t cpu_ns = process_cpu_ns();
  const auto busy = static_cast<double>(busy_ns - last_busy_ns_);
  const auto cpu = static_cast<double>(cpu_ns - last_cpu_ns_);
  last_busy_ns_ = busy_ns;
  last_cpu_ns_ = cpu_ns;
  return busy <= 0.0 || cpu >= busy ? 1.0 : cpu / busy;
}

Result<rpc::Bytes> Actor::on_report(void* self, const rpc::Request&) {
  Actor& actor = *static_cast<Actor*>(self);
  const double share = actor.processor_share();
  Report report;
  report.speed = actor.options_.team->worker_count();
  actor.options_.residents->for_each([&](memory::RankSlot& slot) {
    const std::uint64_t total_ns = threads::processor_ns(*slot.thread);
    const std::uint64_t before_ns = slot.cpu_ns.exchange(total_ns, std::memory_order_relaxed);
    const auto used_ns = static_cast<double>(total_ns - std::min(before_ns, total_ns)) * share;
    report.ranks.push_back({
        .rank = slot.rank,
        .node = 0,
        .cpu_ns = static_cast<std::uint64_t>(used_ns),
        .messages = slot.messages.load(std::memory_order_relaxed),
        .bytes = slot.system_heap->mapped_bytes() + slot.user_heap->mapped_bytes(),
        .movable = !migration::is_held(slot),
    });
  });
  return encode(report);
}

Result<rpc::Bytes> Actor::on_move(void* self, const rpc::Request& request) {
  Actor& actor = *static_cast<Actor*>(self);
  Result<Plan> plan = decode_plan(request.arguments);
  if (!plan) {
    return plan.error();
  }
  for (const Move& move : plan.value()) {
    // A rank at a point waits until all are told, and goes at once. Others compute meanwhile.
    bool is_at_point = false;
    {
      const SpinGuard guard{actor.lock_};
      is_at_point = actor.waiting_.contains(move.rank);
    }
    migration::Migrator& migrator = *actor.options_.migrator;
    if (!(is_at_point ? migrator.ask(move.rank, move.to)
                      : migrator.ask_ahead(move.rank, move.to))) {
      actor.log_.debug("rank {} is not here any more, and not moved", move.rank);
    }
  }
  return rpc::Bytes{};
}

Result<rpc::Bytes> Actor::on_arrived(void* self, const rpc::Request& request) {
  Actor& actor = *static_cast<Actor*>(self);
  Result<std::uint32_t> has_ended = migration::decode_rank(request.arguments);
  if (!has_ended || actor.decider_ == nullptr) {
    return Error{Errc::malformed, "a rank at a balance point that cannot be read"};
  }
  Decider& decider = *actor.decider_;
  (has_ended.value() != 0 ? decider.ended : decider.at_point).fetch_add(1);
  actor.wake_decider();
  return rpc::Bytes{};
}

Result<rpc::Bytes> Actor::on_release(void* self, const rpc::Request&) {
  Actor& actor = *static_cast<Actor*>(self);
  std::map<std::uint32_t, progress::Completion*> waiting;
  {
    const SpinGuard guard{actor.lock_};
    waiting.swap(actor.waiting_);
  }
  for (const auto& [rank, completion] : waiting) {
    completion->complete();
  }
  return rpc::Bytes{};
}

void Actor::point(memory::RankSlot& slot) noexcept {
  if (options_.policy.entry == find_policy("none")) {
    return;
  }
  progress::Completion released;
  {
    const SpinGuard guard{lock_};
    waiting_[slot.rank] = &released;
  }
  if (Result<> sent = options_.rpc->post(0, kArrivedService, migration::encode_rank(0)); !sent) {
    const SpinGuard guard{lock_};
    waiting_.erase(slot.rank);
    return;  // Node 0 is gone, and with it the balancing; the launcher ends the job.
  }
  released.wait(*options_.progress);
}

void Actor::rank_ended(std::uint32_t rank) noexcept {
  if (Result<> sent = options_.rpc->post(0, kArrivedService, migration::encode_rank(1)); !sent) {
    log_.debug("rank {} has ended, and node 0 before it", rank);
  }
}

void Actor::lose_peer(std::uint32_t node) noexcept {
  const SpinGuard guard{lock_};
  lost_nodes_[node] = true;
}

}  // namespace sterna::balance
