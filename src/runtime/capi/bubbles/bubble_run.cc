// bubble.h, the half that runs them: submitting, the barrier. bubble_join.cc has their end.
#include <atomic>

#include "base/backoff.h"
#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/life/unstarted.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
using capi::Member;
using sterna::runtime::RuntimeScope;

void capi::add_running(sterna_bubble* bubble, std::uint32_t count) noexcept {
  for (; bubble != nullptr; bubble = bubble->holder) {
    bubble->running_here += count;
  }
}

/// The joiner frees the bubble when it has seen the end, which it does under the same lock.
void capi::subtract_running(sterna_bubble* bubble, std::uint32_t count) noexcept {
  for (; bubble != nullptr; bubble = bubble->holder) {
    bubble->running_here -= count;
    if (bubble->running_here == 0 && bubble->is_joined) {
      bubble->ended.release();
    }
  }
}

/// A barrier has one place at least: with the first thread and with the last one its count stays.
void capi::enter(sterna_bubble& bubble) noexcept {
  if (bubble.running++ != 0) {
    (void)bubble.barrier.add_count(1);
  }
  add_running(&bubble, 1);
}

void capi::leave(sterna_bubble& bubble) noexcept {
  if (--bubble.running != 0) {
    (void)bubble.barrier.add_count(-1);
  }
  subtract_running(&bubble, 1);
}

void capi::put_first(sched::Engine& engine, Member& member) noexcept {
  if (member.first_place != sched::kNoPlace) {
    engine.put(member.entity, member.first_place);
  }
}

void capi::put_first(sched::Engine& engine, const sterna_bubble& bubble) noexcept {
  if (bubble.first_place != sched::kNoPlace) {
    engine.put(const_cast<sched::Bubble&>(bubble.bubble), bubble.first_place);
  }
  for (const auto& member : bubble.members) {
    put_first(engine, *member);
  }
  for (const auto& child : bubble.children) {
    put_first(engine, *child);
  }
}

void capi::list_all(const sterna_bubble& bubble, std::vector<Member*>& members) {
  for (const auto& member : bubble.members) {
    members.push_back(member.get());
  }
  for (const auto& child : bubble.children) {
    list_all(*child, members);
  }
}

void capi::insert_all(sched::Engine& engine, sched::Bubble& holder,
                      sterna_bubble& bubble) noexcept {
  (void)engine.insert(holder, bubble.bubble);
  for (const auto& member : bubble.members) {
    (void)engine.insert(bubble.bubble, member->entity);
  }
  for (const auto& child : bubble.children) {
    insert_all(engine, bubble.bubble, *child);
  }
  const FairGuard guard{bubbles_lock};
  bubble.is_submitted = true;
}

/// Its entity is in the tree, and it has a place at its barrier. Afterwards it may be gone.
sterna_status capi::start(Program& program, Member& member) noexcept {
  if (member.made != nullptr) {
    threads::start_unstarted(*member.made);
    return STERNA_SUCCESS;
  }
  threads::ThreadOptions options = member.options;
  options.name = member.name.empty() ? nullptr : member.name.c_str();
  auto made =
      capi::spawn(program, options, member.extras,
                  member.is_joined_by_bubble ? capi::run_member : capi::run_handed_member, &member);
  if (made) {
    return STERNA_SUCCESS;
  }
  program.scheduler->filiation().ended(member.entity);
  {
    const sterna::FairGuard guard{capi::bubbles_lock};
    capi::leave(*member.bubble);
  }
  return capi::refuse(capi::to_status(made.error().code), "{}", made.error().text);
}

sterna_status capi::start_all(Program& program, const std::vector<Member*>& members) noexcept {
  sterna_status status = STERNA_SUCCESS;
  for (Member* const member : members) {
    const sterna_status started = start(program, *member);
    status = status == STERNA_SUCCESS ? started : status;
  }
  return status;
}

namespace {

sterna_status submit(sterna_bubble* bubble) noexcept {
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (bubble == nullptr || bubble->holder != nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "bubble {} is none, or in another one, with which it is submitted",
                        static_cast<const void*>(bubble));
  }
  if (bubble->is_submitted) {
    return capi::refuse(STERNA_BUSY, "bubble {} is submitted once, and runs already",
                        static_cast<const void*>(bubble));
  }
  return capi::guarded([&] {
    std::vector<Member*> members;
    capi::list_all(*bubble, members);
    capi::insert_all(program->scheduler->engine(), program->scheduler->root(), *bubble);
    program->scheduler->engine().submit(bubble->bubble);
    capi::put_first(program->scheduler->engine(), *bubble);
    {
      const sterna::FairGuard guard{capi::bubbles_lock};
      for (Member* const member : members) {  // Before one can be at the barrier alone.
        capi::enter(*member->bubble);
      }
    }
    return capi::start_all(*program, members);
  });
}

}  // namespace

sterna_status sterna_bubble_submit(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
  return submit(bubble);
}

sterna_status sterna_bubble_submit_to(sterna_bubble* bubble, const char* policy) noexcept {
  const RuntimeScope scope;
  if (policy == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  sterna::sched::Engine& engine = capi::program()->scheduler->engine();
  if (!engine.offers(policy)) {
    return capi::refuse(STERNA_NOT_FOUND,
                        "no policy \"{}\" is there to choose: with the policy choice({},...) it is "
                        "(sterna_policy_set)",
                        policy, policy);
  }
  if (bubble != nullptr && bubble->holder == nullptr && !bubble->is_submitted) {
    engine.note(bubble->bubble, [&](sterna::sched::Entity& its) {
      its.wanted_policy = sterna::sched::policy_key(policy);
    });
  }
  return submit(bubble);
}

sterna_status sterna_bubble_barrier(sterna_bubble* bubble, int* is_last) noexcept {
  const RuntimeScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  Member* const me = capi::member_of(sterna::threads::self());
  std::uint8_t stance = Member::free;
  // Somebody who moves us needs some instructions more.
  sterna::Backoff backoff;
  while (me != nullptr &&
         !me->stance.compare_exchange_weak(stance, Member::at_barrier, std::memory_order_acquire)) {
    stance = Member::free;
    backoff.pause();
  }
  const bool is_ours = bubble != nullptr && me != nullptr && me->bubble == bubble;
  const bool was_last = is_ours && bubble->barrier.arrive_and_wait();
  if (me != nullptr) {
    me->stance.store(Member::free, std::memory_order_release);
  }
  if (!is_ours) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{} is not held by that bubble: its own threads meet at its barrier, those "
                        "of bubbles inside at theirs",
                        capi::words_for(sterna::threads::self()));
  }
  if (is_last != nullptr) {
    *is_last = was_last ? 1 : 0;
  }
  return STERNA_SUCCESS;
}
