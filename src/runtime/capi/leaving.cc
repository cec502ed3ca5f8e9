// sterna_stop: the rounds of leaving.h, and what a node waits for between them.
#include "runtime/capi/leaving.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/calls/rpc.h"
#include "runtime/capi/program.h"
#include "threads/control/control.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

constexpr char kLeave[] = "sterna.capi.leave";
constexpr std::uint64_t kLookNs = 200'000;  // Between two looks for the end of threads and nodes.

/// The threads of the team are those that wait for somebody who takes their replies, and where
/// there are such the one of the alarms: what that calls later comes too late to take any.
bool waits_only(Program& program, std::uint32_t live, std::uint32_t waiting) noexcept {
  return waiting == 0 ? live == 0 : live == waiting || program.alarms->is_alone_with(waiting);
}

/// Until no thread of this node is left but such, and no request that has come and not begun.
/// Returns the replies that they wait for.
rpc::AwaitedReplies await_end_here(Program& program) noexcept {
  (void)threads::unhold_all(*program.team);
  for (;;) {
    const rpc::AwaitedReplies awaited = program.rpc->awaited_replies();
    const std::uint32_t live = program.team->live_thread_count();
    const bool is_over = waits_only(program, live, awaited.waiting);
    std::atomic_thread_fence(std::memory_order_acquire);  // First they, then again who waits.
    if (is_over && awaited == program.rpc->awaited_replies() && !program.rpc->has_unbegun() &&
        !program.rpc->has_unwanted()) {
      return awaited;
    }
    if (live == 1) {
      program.alarms->disarm_if_alone();  // They would go on for ever.
    }
    threads::sleep_for(kLookNs);
  }
}

}  // namespace

Leaving::Leaving(rpc::Rpc& rpc)
    : rpc_{rpc}, others_{std::make_unique<Other[]>(rpc.node_count())} {
  rpc.add_service(kLeave, rpc::RunIn::poll, on_mark, this);
}

Result<rpc::Bytes> Leaving::on_mark(void* self, const rpc::Request& request) {
  if (request.arguments.size() != 1 || request.arguments[0] > static_cast<std::byte>(Mark::gone)) {
    return Error{Errc::invalid_argument, "a mark is one byte"};
  }
  Other& other = static_cast<Leaving*>(self)->others_[request.from_node];
  const auto mark = static_cast<Mark>(request.arguments[0]);
  if (mark >= Mark::ended) {
    other.stage.store(mark, std::memory_order_release);
  } else {
    const std::uint32_t round = other.rounds.load(std::memory_order_relaxed);
    other.marks[round % 2].store(mark, std::memory_order_relaxed);
    other.rounds.store(round + 1, std::memory_order_release);
  }
  return rpc::Bytes{};
}

void Leaving::lose(std::uint32_t node) noexcept {
  others_[node].stage.store(Mark::gone, std::memory_order_release);
}

void Leaving::post_to_all(Mark mark) noexcept {
  const auto byte = static_cast<std::byte>(mark);
  for (std::uint32_t i = 0; i < rpc_.node_count(); ++i) {
    // A node that is lost has been noted, and waits for nothing.
    (void)guarded([&] {
      (void)rpc_.post((rpc_.node() + i) % rpc_.node_count(), kLeave, {&byte, 1});
      return STERNA_SUCCESS;
    });
  }
}

void Leaving::await_all(Mark stage) noexcept {
  for (std::uint32_t node = 0; node < rpc_.node_count(); ++node) {
    while (others_[node].stage.load(std::memory_order_acquire) < stage) {
      threads::sleep_for(kLookNs);
    }
  }
}

Leaving::Mark Leaving::pass_round(Mark here) noexcept {
  rpc::SentRequests sent = rpc_.sent_requests();
  const bool is_busy = rounds_ == 0 || sent != sent_before_;
  sent.posted_units += rpc_.node_count() * rpc::units_of_post(1);  // By post_to_all().
  sent_before_ = sent;
  post_to_all(is_busy ? Mark::busy : here);
  const std::uint32_t round = rounds_++;
  Mark least = Mark::quiet;
  for (std::uint32_t node = 0; node < rpc_.node_count(); ++node) {
    const Other& other = others_[node];
    // Who has ended without this round has found with all who were left that nothing goes on. The
    // stage is read first: its marks of rounds came before it.
    while (other.stage.load(std::memory_order_acquire) < Mark::ended &&
           other.rounds.load(std::memory_order_acquire) <= round) {
      threads::sleep_for(kLookNs);
    }
    if (other.rounds.load(std::memory_order_acquire) > round) {
      least = std::min(least, other.marks[round % 2].load(std::memory_order_relaxed));
    }
  }
  return least;
}

void Leaving::end() noexcept {
  post_to_all(Mark::ended);
  await_all(Mark::ended);
}

void Leaving::go() noexcept {
  // With an answer: it has come when our network goes.
  const auto byte = static_cast<std::byte>(Mark::gone);
  for (std::uint32_t i = 0; i < rpc_.node_count(); ++i) {
    (void)guarded([&] {
      (void)rpc_.call((rpc_.node() + i) % rpc_.node_count(), kLeave, {&byte, 1});
      return STERNA_SUCCESS;
    });
  }
  await_all(Mark::gone);
}

void leave(Program& program) noexcept {
  for (auto found = Leaving::Mark::busy; found != Leaving::Mark::quiet;) {
    const rpc::AwaitedReplies awaited = await_end_here(program);
    found = program.leaving->pass_round(awaited.waiting != 0 ? Leaving::Mark::waiting
                                                             : Leaving::Mark::quiet);
    if (found == Leaving::Mark::waiting) {
      program.rpc->withdraw_awaited(awaited);
    }
  }
  join_forgotten(program);
  program.leaving->end();
  // Long replies that nobody will take now, and long pieces on their way to those who drop them.
  program.rpc->withdraw_replies();
  while (program.rpc->loose_part_count() + OutBox::waiting_count() != 0) {
    threads::sleep_for(kLookNs);
  }
  program.leaving->go();
  (void)await_end_here(program);  // Of a node that is lost, a request may have come late.
}

}  // namespace sterna::runtime::capi
