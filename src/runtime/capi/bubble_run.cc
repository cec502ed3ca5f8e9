// bubble.h, the half that runs them: submitting, the barrier, joining.
#include <utility>

#include "runtime/capi/bubble_object.h"
#include "runtime/capi/handle.h"
#include "runtime/scope.h"
#include "threads/cancel.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
using capi::Member;
using sterna::runtime::RuntimeScope;

namespace {

/// One more thread, which runs or is about to, takes part in the barrier. A barrier has one place
/// at least: with the first thread and with the last one its count stays.
void enter_barrier(sterna_bubble& bubble) noexcept {
  const sterna::SpinGuard guard{bubble.lock};
  if (bubble.running++ != 0) {
    (void)bubble.barrier.add_count(1);
  }
}

void leave_barrier(sterna_bubble& bubble) noexcept {
  const sterna::SpinGuard guard{bubble.lock};
  if (--bubble.running != 0) {
    (void)bubble.barrier.add_count(-1);
  }
}

/// Runs the program's function; however it ends, the others do not wait for it at their barrier.
void run_member(void* argument) {
  auto& member = *static_cast<Member*>(argument);
  {
    const RuntimeScope scope;
    member.leaving.function = [](void* bubble) {
      leave_barrier(*static_cast<sterna_bubble*>(bubble));
    };
    member.leaving.argument = member.bubble;
    sterna::threads::push_cleanup(member.leaving);
  }
  member.function(member.argument);
}

/// Its entity is in the tree, and it has a place at its barrier.
sterna_status start(capi::Program& program, Member& member) noexcept {
  sterna::threads::ThreadOptions options;
  options.name = member.name.empty() ? nullptr : member.name.c_str();
  if (member.stack_bytes != 0) {
    options.stack_bytes = member.stack_bytes;
  }
  options.entity = &member.entity;
  options.is_user_code = true;
  options.preemptible = member.is_preemptible;
  auto made = program.team->spawn(options, run_member, &member);
  if (made) {
    member.thread.store(made.value(), std::memory_order_release);
    return STERNA_SUCCESS;
  }
  leave_barrier(*member.bubble);
  program.scheduler->filiation().ended(member.entity);
  return capi::refuse(capi::to_status(made.error().code), "{}", made.error().text);
}

/// Of a list that may be growing: null after the last.
template <typename List>
auto* element(sterna_bubble& bubble, List& list, std::size_t index) noexcept {
  const sterna::SpinGuard guard{bubble.lock};
  return index < list.size() ? list[index].get() : nullptr;
}

/// Joins what has not been; whether that was anything: then others may have come.
bool join_threads(sterna_bubble& bubble) noexcept {
  bool has_joined = false;
  for (std::size_t i = 0; Member* const member = element(bubble, bubble.members, i); ++i) {
    if (auto* const thread = member->thread.exchange(nullptr, std::memory_order_acquire)) {
      sterna::threads::join(*thread);
      has_joined = true;
    }
  }
  for (std::size_t i = 0; sterna_bubble* const child = element(bubble, bubble.children, i); ++i) {
    has_joined = join_threads(*child) || has_joined;
  }
  return has_joined;
}

void remove_all(sterna::sched::Engine& engine, sterna_bubble& bubble) noexcept {
  for (const auto& child : bubble.children) {
    remove_all(engine, *child);
  }
  engine.spill(bubble.bubble);  // Children that its threads have left behind live on.
  engine.remove(bubble.bubble);
}

/// The caller is a thread of it, or of a bubble in it.
bool has_caller(const sterna_bubble& bubble) noexcept {
  const sterna::threads::Thread* const me = sterna::threads::self();
  if (me == nullptr || me->entry != run_member) {
    return false;
  }
  const sterna_bubble* outer = static_cast<const Member*>(me->argument)->bubble;
  while (outer != nullptr && outer != &bubble) {
    outer = outer->holder;
  }
  return outer != nullptr;
}

/// SUCCESS: the caller may join it, and nobody else does.
sterna_status begin_join(sterna_bubble& bubble) noexcept {
  if (has_caller(bubble)) {
    return capi::refuse(
        STERNA_DEADLOCK, "bubble {}: {}, which it holds, joins it, and would wait for itself",
        static_cast<const void*>(&bubble), capi::words_for(sterna::threads::self()));
  }
  const sterna::SpinGuard guard{bubble.lock};
  if (std::exchange(bubble.is_joined, true)) {
    return STERNA_BUSY;
  }
  return STERNA_SUCCESS;
}

}  // namespace

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
  const SpinGuard guard{bubble.lock};
  bubble.is_submitted = true;
}

sterna_status capi::start_all(Program& program, const std::vector<Member*>& members) noexcept {
  for (Member* const member : members) {  // All of them before one can be at the barrier alone.
    enter_barrier(*member->bubble);
  }
  sterna_status status = STERNA_SUCCESS;
  for (Member* const member : members) {
    const sterna_status started = start(program, *member);
    status = status == STERNA_SUCCESS ? started : status;
  }
  return status;
}

sterna_status sterna_bubble_submit(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
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
    return capi::start_all(*program, members);
  });
}

sterna_status sterna_bubble_barrier(sterna_bubble* bubble, int* is_last) noexcept {
  const RuntimeScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  const sterna::threads::Thread* const me = sterna::threads::self();
  const auto* const entity =
      me != nullptr ? static_cast<const sterna::sched::Entity*>(me->entity) : nullptr;
  if (bubble == nullptr || entity == nullptr || entity->holder() != &bubble->bubble) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{} is not held by that bubble: its own threads meet at its barrier, those "
                        "of bubbles inside at theirs",
                        capi::words_for(me));
  }
  const bool was_last = bubble->barrier.arrive_and_wait();
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
  if (bubble == nullptr || bubble->holder != nullptr || !bubble->is_submitted) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "bubble {} is not submitted, or in another one, with which it is joined",
                        static_cast<const void*>(bubble));
  }
  if (const sterna_status status = begin_join(*bubble); status != STERNA_SUCCESS) {
    return status == STERNA_BUSY
               ? capi::refuse(STERNA_BUSY, "bubble {} is being joined by somebody: that is enough",
                              static_cast<const void*>(bubble))
               : status;
  }
  // Half a bubble could not be joined again.
  const sterna::threads::Uncancellable uncancellable{sterna::threads::self()};
  while (join_threads(*bubble)) {  // Who ran may have added others.
  }
  remove_all(program->scheduler->engine(), *bubble);
  delete bubble;
  return STERNA_SUCCESS;
}
