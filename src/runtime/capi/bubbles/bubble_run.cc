// bubble.h, the half that runs them: submitting, the barrier, joining.
#include <atomic>
#include <utility>

#include "base/check.h"
#include "base/cpu.h"
#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/control/cancel.h"
#include "threads/life/unstarted.h"
#include "threads/preemption/preempt.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
using capi::Member;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::uint64_t kEndPauseNs = 50'000;
constexpr int kLooksAtOnce = 16;

/// One that has left, or was never started: waits for the end of its thread.
void finish(capi::Program& program, Member& member) noexcept {
  if (!member.has_left) {
    return;
  }
  if (!member.is_joined_by_bubble) {  // It is about to be gone, usually in a moment.
    for (int looks = 0; program.scheduler->engine().is_in_tree(member.entity); ++looks) {
      if (looks < kLooksAtOnce) {
        sterna::threads::yield();
      } else {
        sterna::threads::sleep_for(kEndPauseNs);
      }
    }
    return;
  }
  sterna::threads::join(*member.thread);
}

/// What the joiner has taken out: one thing at a time.
struct Taken {
  capi::Members member;
  capi::Bubbles bubble;
};

enum class Next : std::uint8_t { running, taken, done };

/// The last of the innermost: threads, then the bubble that held them.
Next take_last(sterna_bubble& bubble, Taken& taken) noexcept {
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (bubble.running_here != 0) {
    return Next::running;
  }
  sterna_bubble* inner = &bubble;
  while (!inner->children.empty()) {
    inner = inner->children.back().get();
  }
  if (capi::Members& from = inner->members.empty() ? inner->left : inner->members; !from.empty()) {
    taken.member.splice(taken.member.end(), from, std::prev(from.end()));
    return Next::taken;
  }
  inner->is_closed = true;
  if (inner == &bubble) {
    return Next::done;
  }
  taken.bubble.splice(taken.bubble.end(), inner->holder->children, inner->self);
  return Next::taken;
}

void remove_bubble(sterna::sched::Engine& engine, sterna_bubble& bubble) noexcept {
  engine.spill(bubble.bubble);  // Children that its threads have left behind live on.
  engine.remove(bubble.bubble);
}

/// Until it holds nothing more; what was moved out of it meanwhile is not waited for.
void join_all(capi::Program& program, sterna_bubble& bubble) noexcept {
  for (;;) {
    Taken taken;
    const Next next = take_last(bubble, taken);
    if (next == Next::done) {
      return;
    }
    if (next == Next::running) {
      bubble.ended.acquire();
    } else if (!taken.member.empty()) {
      finish(program, *taken.member.front());
    } else {
      remove_bubble(program.scheduler->engine(), *taken.bubble.front());
    }
  }
}

void join_and_free(capi::Program& program, sterna_bubble& bubble) noexcept {
  join_all(program, bubble);
  remove_bubble(program.scheduler->engine(), bubble);
  delete &bubble;
}

/// An outermost bubble that a program has submitted, and not joined; null: there is none.
sterna_bubble* find_unjoined(const sterna::sched::Bubble& root) noexcept {
  for (const auto* held = root.first(); held != nullptr; held = held->next_sibling()) {
    const auto* const bubble =
        held->is_bubble() ? static_cast<const sterna::sched::Bubble*>(held) : nullptr;
    if (bubble != nullptr && bubble->handle != nullptr) {
      return static_cast<sterna_bubble*>(bubble->handle);
    }
  }
  return nullptr;
}

/// The caller is a thread of it, or of a bubble in it. bubbles_lock is held.
bool has_caller(const sterna_bubble& bubble) noexcept {
  const Member* const member = capi::member_of(sterna::threads::self());
  const sterna_bubble* outer = member != nullptr ? member->bubble : nullptr;
  while (outer != nullptr && outer != &bubble) {
    outer = outer->holder;
  }
  return outer != nullptr;
}

/// SUCCESS: the caller may join it, and nobody else does. No text: refuse() may not come here.
sterna_status begin_join(sterna_bubble& bubble) noexcept {
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (bubble.holder != nullptr || !bubble.is_submitted) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (has_caller(bubble)) {
    return STERNA_DEADLOCK;
  }
  return std::exchange(bubble.is_joined, true) ? STERNA_BUSY : STERNA_SUCCESS;
}

sterna_status refuse_join(sterna_status status, const sterna_bubble* bubble) noexcept {
  const auto* const shown = static_cast<const void*>(bubble);
  if (status == STERNA_DEADLOCK) {
    return capi::refuse(status,
                        "bubble {}: {}, which it holds, joins it, and would wait for itself", shown,
                        capi::words_for(sterna::threads::self()));
  }
  return status == STERNA_BUSY
             ? capi::refuse(status, "bubble {} is being joined by somebody: that is enough", shown)
             : capi::refuse(
                   status, "bubble {} is not submitted, or in another one, with which it is joined",
                   shown);
}

}  // namespace

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

void capi::join_forgotten(Program& program) noexcept {
  while (sterna_bubble* const bubble = find_unjoined(program.scheduler->root())) {
    {
      const FairGuard guard{bubbles_lock};
      bubble->is_joined = true;
    }
    join_and_free(program, *bubble);
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
  while (me != nullptr &&
         !me->stance.compare_exchange_weak(stance, Member::at_barrier, std::memory_order_acquire)) {
    stance = Member::free;
    sterna::cpu_pause();
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

sterna_status sterna_bubble_join(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  const sterna_status status = bubble == nullptr ? STERNA_INVALID_ARGUMENT : begin_join(*bubble);
  if (status != STERNA_SUCCESS) {
    return refuse_join(status, bubble);
  }
  // Half a bubble could not be joined again.
  const sterna::threads::Uncancellable uncancellable{sterna::threads::self()};
  join_and_free(*program, *bubble);
  return STERNA_SUCCESS;
}
