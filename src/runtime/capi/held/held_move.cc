// held.h: threads and bubbles of C programs that change their bubble.
//
// All of a move is one section of bubbles_lock: who holds it in the tree, in whose lists it is, who
// counts it. It is counted at its new holder before it leaves the old one, so that a bubble around
// both never looks ended. A thread that has left (its last cleanup has run, under the same lock) is
// not moved: who joins may have taken it.
#include <cstddef>
#include <new>
#include <utility>

#include <sterna/held.h>

#include "runtime/capi/held/held_target.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/life/life.h"
#include "threads/preemption/preempt.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using capi::Member;
using sterna::runtime::RuntimeScope;

namespace {

// Threads that were taken out of all bubbles: their memory, until they have ended. Guard:
// bubbles_lock. Never destroyed: a program that calls exit() without sterna_stop has threads that
// run on, and use it, while static objects go.
capi::Members& homeless() noexcept {
  alignas(capi::Members) static std::byte room[sizeof(capi::Members)];
  static auto* const members = new (room) capi::Members;
  return *members;
}

/// The engine has its own reasons: those are in `changed`.
constexpr capi::Verdict kRefusedVerdict{STERNA_INVALID_ARGUMENT, nullptr};

sterna_status tell(sterna_held held, const capi::Verdict& verdict,
                   const sterna::Result<>& changed) noexcept {
  return changed ? capi::refuse_held(held, verdict)
                 : capi::refuse(capi::to_status(changed.error().code), "{}", changed.error().text);
}

sched::HolderChange change_of(sterna_move move) noexcept {
  return move == STERNA_MOVE_STAY ? sched::HolderChange::stays : sched::HolderChange::now;
}

/// bubbles_lock is held: whether what runs may go there.
capi::Verdict check_holder(const sterna_bubble* holder) noexcept {
  if (holder != nullptr && !holder->is_submitted) {
    return {STERNA_BUSY, "what runs goes into a bubble that runs: submit that first"};
  }
  return holder != nullptr && holder->is_closed ? capi::kClosedVerdict : capi::Verdict{};
}

/// Under bubbles_lock, for a thread that cannot be at a barrier. Counts it at its new bubble first:
/// neither can end between.
capi::Verdict rehouse(sched::Engine& engine, Member& member, sterna_bubble* holder,
                      sterna_move move, sterna::Result<>& changed) noexcept {
  if (const capi::Verdict rule = check_holder(holder); rule.status != STERNA_SUCCESS) {
    return rule;
  }
  changed = engine.change_holder(holder != nullptr ? holder->bubble : engine.root(), member.entity,
                                 change_of(move));
  if (!changed) {
    return kRefusedVerdict;
  }
  sterna_bubble* const former = member.bubble;
  capi::Members& from = former != nullptr ? former->members : homeless();
  capi::Members& to = holder != nullptr ? holder->members : homeless();
  to.splice(to.end(), from, member.self);
  member.bubble = holder;
  if (holder != nullptr) {
    capi::enter(*holder);
  }
  if (former != nullptr) {
    capi::leave(*former);
  }
  capi::tell_preemptible(engine, member);
  return {};
}

/// Under bubbles_lock, for one that does not run yet. Into a bubble that runs: it is counted there,
/// and to be started.
capi::Verdict move_unstarted(Member& member, sterna_bubble* holder, bool& must_start) noexcept {
  if (holder == nullptr) {
    return {STERNA_BUSY, "the thread does not run yet: it leaves all bubbles when it does"};
  }
  if (holder->is_closed) {
    return capi::kClosedVerdict;
  }
  holder->members.splice(holder->members.end(), member.bubble->members, member.self);
  member.bubble = holder;
  must_start = holder->is_submitted;
  if (must_start) {
    capi::enter(*holder);
  }
  return {};
}

/// Under bubbles_lock.
capi::Verdict move_member(sched::Engine& engine, Member& member, sterna_bubble* holder,
                          sterna_move move, sterna::Result<>& changed) noexcept {
  std::uint8_t stance = Member::free;
  if (!member.stance.compare_exchange_strong(stance, Member::moving, std::memory_order_acquire)) {
    return {STERNA_BUSY, "the thread waits at the barrier of its bubble"};
  }
  const capi::Verdict verdict = rehouse(engine, member, holder, move, changed);
  member.stance.store(Member::free, std::memory_order_release);
  return verdict;
}

/// Under bubbles_lock, for a thread of filiation, the caller: no bubble of the program counts it.
capi::Verdict move_child(sched::Engine& engine, sched::Entity& entity, sterna_bubble* holder,
                         sterna_move move, sterna::Result<>& changed) noexcept {
  if (const capi::Verdict rule = check_holder(holder); rule.status != STERNA_SUCCESS) {
    return rule;
  }
  changed = engine.change_holder(holder != nullptr ? holder->bubble : engine.root(), entity,
                                 change_of(move));
  if (!changed) {
    return kRefusedVerdict;
  }
  sterna::threads::set_preemptible_around(*sterna::threads::self(),
                                          !engine.forbids_preemption(entity));
  return {};
}

sterna_status move_thread(sterna_held held, sterna_bubble* holder, sterna_move move) noexcept {
  sched::Engine& engine = capi::program()->scheduler->engine();
  sterna::Result<> changed = sterna::Done{};
  capi::Verdict verdict;
  capi::Members ended;
  sterna::threads::Thread* detached = nullptr;  // Stays: nobody joins it any more.
  Member* started = nullptr;
  {
    const sterna::FairGuard guard{capi::bubbles_lock};
    capi::HeldTarget target;
    bool must_start = false;
    verdict = capi::find_held(held, target);
    if (verdict.status == STERNA_SUCCESS) {
      verdict = target.member == nullptr ? move_child(engine, *target.entity, holder, move, changed)
                : capi::is_unstarted(*target.member)
                    ? move_unstarted(*target.member, holder, must_start)
                    : move_member(engine, *target.member, holder, move, changed);
    }
    started = must_start ? target.member : nullptr;
    if (verdict.status == STERNA_SUCCESS && target.member != nullptr) {
      capi::take_ended(holder != nullptr ? holder->left : homeless(), ended);
    }
    if (verdict.status == STERNA_SUCCESS && target.member != nullptr && holder == nullptr) {
      detached = std::exchange(target.member->is_joined_by_bubble, false) ? target.thread : nullptr;
    }
  }
  if (started != nullptr) {
    return capi::start_late(*capi::program(), *holder, *started);
  }
  if (detached != nullptr) {
    (void)sterna::threads::try_detach(*detached);
  }
  return tell(held, verdict, changed);
}

/// Under bubbles_lock.
capi::Verdict rehouse(sched::Engine& engine, sterna_bubble& bubble, sterna_bubble* holder,
                      sterna_move move, sterna::Result<>& changed) noexcept {
  if (bubble.is_joined || bubble.is_closed) {
    return {STERNA_BUSY, "the bubble is being joined by somebody, who waits for it"};
  }
  capi::Verdict verdict = check_holder(holder);
  if (verdict.status == STERNA_SUCCESS && holder != nullptr) {
    verdict = capi::check_nesting(*holder, bubble);
  }
  if (verdict.status != STERNA_SUCCESS) {
    return verdict;
  }
  changed = engine.change_holder(holder != nullptr ? holder->bubble : engine.root(), bubble.bubble,
                                 change_of(move));
  if (!changed) {
    return kRefusedVerdict;
  }
  sterna_bubble* const former = bubble.holder;
  capi::add_running(holder, bubble.running_here);
  bubble.holder = holder;
  if (former != nullptr && holder != nullptr) {
    holder->children.splice(holder->children.end(), former->children, bubble.self);
  }
  capi::subtract_running(former, bubble.running_here);
  capi::tell_all_preemptible(engine, bubble);
  return {};
}

/// One that does not run, out of its holder, which does not either.
sterna_status take_out(sterna_bubble& bubble) noexcept {
  capi::Bubbles one;
  capi::Verdict verdict;
  {
    const sterna::FairGuard guard{capi::bubbles_lock};
    if (bubble.is_submitted || (bubble.holder != nullptr && bubble.holder->is_submitted)) {
      verdict = {STERNA_BUSY, "the bubble is being started: move it afterwards"};
    } else if (bubble.holder != nullptr) {
      (void)bubble.self->release();
      one.splice(one.end(), bubble.holder->children, bubble.self);
      bubble.holder = nullptr;
    }
  }
  return capi::refuse_held(sterna_held_bubble(&bubble), verdict);
}

sterna_status move_bubble(sterna_bubble& bubble, sterna_bubble* holder, sterna_move move) noexcept {
  if (!bubble.is_submitted) {
    return holder != nullptr ? capi::put_bubble(*holder, bubble, true) : take_out(bubble);
  }
  sched::Engine& engine = capi::program()->scheduler->engine();
  sterna::Result<> changed = sterna::Done{};
  return capi::guarded([&] {
    capi::Verdict verdict;
    capi::Bubbles one;  // An outermost one is in no list: it gets a node here; one that becomes
    {                   // outermost leaves its own here.
      capi::Bubbles spare(1);
      const sterna::FairGuard guard{capi::bubbles_lock};
      sterna_bubble* const former = bubble.holder;
      verdict = rehouse(engine, bubble, holder, move, changed);
      const bool is_moved = verdict.status == STERNA_SUCCESS;
      if (is_moved && former == nullptr && holder != nullptr) {
        spare.front().reset(&bubble);
        bubble.self = spare.begin();
        holder->children.splice(holder->children.end(), spare);
      } else if (is_moved && former != nullptr && holder == nullptr) {
        (void)bubble.self->release();
        one.splice(one.end(), former->children, bubble.self);
      }
    }
    return tell(sterna_held_bubble(&bubble), verdict, changed);
  });
}

}  // namespace

sterna_status sterna_held_move(sterna_held held, sterna_bubble* holder, sterna_move move) noexcept {
  const RuntimeScope scope;
  if (static_cast<unsigned>(move) > STERNA_MOVE_STAY) {
    return capi::refuse_argument(__func__);
  }
  if (const sterna_status status = capi::check_held(held); status != STERNA_SUCCESS) {
    return status;
  }
  return held.bubble != nullptr ? move_bubble(*held.bubble, holder, move)
                                : move_thread(held, holder, move);
}
