// A node while it runs: ranks that end, move and crash, what the launcher says, what it is told.
#include <csignal>

#include <ucontext.h>

#include "base/clock.h"
#include "base/trace.h"
#include "net/endpoint.h"
#include "net/matching/direct.h"
#include "runtime/node.h"
#include "runtime/node_of_process.h"
#include "runtime/safe_point.h"
#include "threads/observation/observe.h"
#include "threads/this_thread.h"

namespace sterna::runtime {
namespace {

// Refusals are counted by their whole text, which names files and ranks; of more different texts
// than this, by their kind.
constexpr std::size_t kRefusalTextsMax = 16;

std::uint64_t instruction_of(const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
#else
  return context.uc_mcontext.pc;
#endif
}

}  // namespace

void Node::run() noexcept {
  team_->run();
  migrator_->tell_last_moves();
  report(true);
  runtime_->end_network();  // In order: the others see an end, not a loss.
  trace::stop();
}

void Node::end_rank(memory::RankSlot& slot, int exit_code) noexcept {
  const auto& context = *static_cast<const RankContext*>(slot.context);
  const RankEnd end{.rank = slot.rank,
                    .exit_code = exit_code,
                    .is_initialized = context.has_initialized_mpi,
                    .is_finalized = context.has_finalized_mpi};
  residents_.remove(slot.rank);
  migrator_->rank_ends(slot.rank);
  {
    RankStatus status;
    status.rank = slot.rank;
    status.state = "ended";
    status.cpu_ns = threads::processor_ns(*slot.thread);
    status.moves = static_cast<std::uint32_t>(slot.moves.load(std::memory_order_relaxed));
    status.messages = slot.messages.load(std::memory_order_relaxed);
    const SpinGuard guard{report_lock_};
    ended_.push_back(std::move(status));
  }
  // Without MPI_Finalize a large message may still be read from or written to its memory.
  while (!runtime_->transport().begin_leave(slot.rank)) {
    runtime_->progress().poll(threads::SchedulingPoint::switching);
    threads::yield();
  }
  runtime_->transport().remove(slot.rank);
  // Last: after the end of the last rank the launcher stops the nodes.
  balancer_->rank_ended(slot.rank);
  runtime_->control().report_ended(end);
  threads::freeze(after_end, &slot);
  __builtin_unreachable();
}

// Off the stack of the rank, which is unmapped here.
void Node::after_end(threads::Thread& thread, void* argument) noexcept {
  auto& slot = *static_cast<memory::RankSlot*>(argument);
  Node& node = *node_of_process();
  node.team_->forget(thread);
  if (node.runner_.forget(slot)) {
    node.space_->unmap_rank(slot.rank);
  }
}

void Node::kill_rank(memory::RankSlot& slot, int signal) noexcept {
  runtime_->control().report_crash(
      {.rank = slot.rank, .signal = signal, .thread = "main", .text = {}});
  ::signal(signal, SIG_DFL);
  ::raise(signal);
  ::_exit(128 + signal);
}

void Node::balance_point(RankContext& rank) noexcept {
  balancer_->point(*rank.slot);
  safe_point(rank);
}

void Node::move_rank(RankContext& rank, std::uint32_t to_node) noexcept {
  Node* node = node_of_process();
  node->migrator_->move_self(*rank.slot, to_node);
}

void Node::on_crash(const threads::CrashInfo& crash) noexcept {
  RankCrash report;
  report.signal = crash.signal;
  report.address = crash.address;
  report.instruction = instruction_of(*static_cast<const ucontext_t*>(crash.signal_context));
  if (const memory::RankSlot* slot = memory::rank_slot_of(crash.thread); slot != nullptr) {
    report.rank = slot->rank;
  }
  if (crash.thread != nullptr) {
    report.thread = crash.thread->name;
  }
  node_of_process()->runtime_->control().report_crash(report);
}

void Node::on_rank_moved(const RankMove& move) noexcept {
  runtime_->transport().learn(move.rank, move.node, static_cast<std::uint32_t>(move.move));
}

void Node::on_peer_lost(std::uint32_t node) noexcept {
  migrator_->lose_peer(node);
  leases_->lose_peer(node);
  rpc_->lose_peer(node);
}

void Node::on_status_wanted() noexcept {
  report(false);
}

void Node::report(bool is_final) noexcept {
  NodeStatus status;
  status.node = runtime_->job().node_index;
  status.workers = team_->worker_count();
  status.is_final = is_final;
  for (std::uint32_t i = 0; i < team_->worker_count(); ++i) {
    status.busy_ns.push_back(team_->busy_ns(i));
    status.cpu_ns += status.busy_ns.back();
  }
  const migration::MigratorStatistics moves = migrator_->statistics();
  status.threads = team_->live_thread_count();
  status.arrived = moves.arrived;
  status.left = moves.left;
  residents_.for_each([&](memory::RankSlot& slot) {
    RankStatus& rank = status.ranks.emplace_back();
    rank.rank = slot.rank;
    rank.state = "running";
    rank.activity = threads::observe_activity(*slot.thread);
    rank.worker = threads::observe_worker(*slot.thread);
    rank.cpu_ns = threads::processor_ns(*slot.thread);
    rank.moves = static_cast<std::uint32_t>(slot.moves.load(std::memory_order_relaxed));
    rank.messages = slot.messages.load(std::memory_order_relaxed);
  });
  {
    const SpinGuard guard{report_lock_};
    for (RankStatus& rank : status.ranks) {
      if (const auto why = last_refusal_.find(rank.rank); why != last_refusal_.end()) {
        rank.refusal = why->second;
      }
    }
    status.ranks.insert(status.ranks.end(), ended_.begin(), ended_.end());
    status.refusals.assign(refusals_.begin(), refusals_.end());
  }
  runtime_->control().report_status(status);
}

void Node::on_move_ordered(std::uint32_t rank, std::uint32_t node) noexcept {
  if (!migrator_->ask_ahead(rank, node)) {
    Logger{runtime_->log(), "node"}.warn("rank {} is not here and cannot be moved from here", rank);
  }
}

void Node::on_flush_ordered(std::uint32_t number) noexcept {
  flush_->order(number);
}

void Node::flushed(std::uint32_t number) noexcept {
  runtime_->control().report_flushed(number);
}

void Node::on_stop() noexcept {
  balancer_->stop();
  team_->stop();
}

std::string Node::describe_blockers(memory::RankSlot& slot) noexcept {
  return runner_.describe_blockers(slot);
}

void Node::for_each_image_extent(memory::RankSlot& slot,
                                 FunctionRef<void(std::span<std::byte>)> visit) noexcept {
  runner_.for_each_image_extent(slot, visit);
}

Result<> Node::prepare(std::uint32_t rank) noexcept {
  return runner_.prepare(rank);
}

void Node::arrive(memory::RankSlot& slot) noexcept {
  auto* context = static_cast<RankContext*>(slot.context);
  context->runtime = runtime_.get();
  context->transport = &runtime_->transport();
  context->progress = &runtime_->progress();
  runtime_->transport().direct_way().lead(slot);
}

void Node::handing_over(std::uint32_t rank, std::uint32_t node, std::uint64_t move) noexcept {
  runtime_->control().report_moved({.rank = rank, .node = node, .move = move});
  Logger{runtime_->log(), "node"}.debug("rank {} goes to node {}, its move {}", rank, node, move);
}

void Node::stayed(std::uint32_t rank, std::uint32_t, const std::string& reason) noexcept {
  const SpinGuard guard{report_lock_};
  const bool is_told_apart = refusals_.size() < kRefusalTextsMax || refusals_.contains(reason);
  ++refusals_[is_told_apart ? reason : reason.substr(0, reason.find(": "))];
  last_refusal_[rank] = reason;
}

}  // namespace sterna::runtime
