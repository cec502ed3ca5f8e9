// The node's part of balancing: what it reports, orders it carries out, ranks that wait at a point.
#include "balance/actor.h"

#include <algorithm>
#include <ctime>

#include "balance/decider.h"
#include "balance/report.h"
#include "balance/services.h"
#include "memory/rank_slot.h"
#include "migration/refusal.h"
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
      decider_{options.transport->job().node_index == 0
                   ? std::make_unique<Decider>(options.transport->job().rank_count,
                                               options.transport->job().node_count)
                   : nullptr} {
  rpc::Rpc& rpc = *options_.rpc;
  rpc.add_service(kReportService, rpc::RunIn::thread, on_report, this);
  rpc.add_service(kMoveService, rpc::RunIn::poll, on_move, this);
  rpc.add_service(kArrivedService, rpc::RunIn::poll, on_arrived, this);
  rpc.add_service(kReleaseService, rpc::RunIn::poll, on_release, this);
  options_.transport->register_lost_handler(on_lost, this);
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
  Result<Arrived> arrived =
      decode_arrived(request.arguments, actor.options_.transport->job().rank_count);
  if (!arrived) {
    return arrived.error();
  }
  if (actor.decider_ == nullptr) {
    return Error{Errc::malformed, "a rank at a balance point is told to the node that decides"};
  }
  actor.decider_->note(arrived.value(), request.from_node);
  actor.wake_decider();
  return rpc::Bytes{};
}

Result<rpc::Bytes> Actor::on_release(void* self, const rpc::Request& request) {
  Result<std::uint64_t> number = decode_release(request.arguments);
  if (!number) {
    return number.error();
  }
  static_cast<Actor*>(self)->release(number.value());
  return rpc::Bytes{};
}

void Actor::release(std::uint64_t number) noexcept {
  std::map<std::uint64_t, progress::Completion*> released;
  {
    const SpinGuard guard{lock_};
    while (!waiting_.empty() && waiting_.begin()->first <= number) {
      released.insert(released.end(), waiting_.extract(waiting_.begin()));
    }
  }
  for (const auto& [ignored, completion] : released) {
    completion->complete();
  }
}

void Actor::on_lost(void* self, std::uint32_t node, std::string_view) noexcept {
  Actor& actor = *static_cast<Actor*>(self);
  if (actor.decider_ != nullptr) {
    actor.wake_decider();  // It waits for the ranks of that node no more.
    return;
  }
  if (node == 0) {
    {
      const SpinGuard guard{actor.lock_};
      actor.is_decider_lost_ = true;
    }
    actor.release(~std::uint64_t{0});
  }
}

void Actor::point(memory::RankSlot& slot) noexcept {
  if (options_.policy.entry == find_policy("none")) {
    return;
  }
  progress::Completion released;
  Arrived arrived{.rank = slot.rank};
  {
    const SpinGuard guard{lock_};
    if (is_decider_lost_) {
      return;
    }
    arrived.number = ++last_number_;
    waiting_.emplace(arrived.number, &released);
  }
  if (Result<> sent = options_.rpc->post(0, kArrivedService, encode(arrived)); !sent) {
    // Node 0 is gone. If somebody has taken the completion out, he is about to complete it.
    const SpinGuard guard{lock_};
    if (waiting_.erase(arrived.number) != 0) {
      return;
    }
  }
  released.wait(*options_.progress);
}

void Actor::rank_ended(std::uint32_t rank) noexcept {
  const Arrived arrived{.rank = rank, .has_ended = true};
  if (Result<> sent = options_.rpc->post(0, kArrivedService, encode(arrived)); !sent) {
    log_.debug("rank {} has ended, and node 0 before it", rank);
  }
}

}  // namespace sterna::balance
