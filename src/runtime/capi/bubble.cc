// bubble.h: bubbles of C programs on sched::Scheduler.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <sterna/bubble.h>

#include "runtime/capi/handle.h"
#include "runtime/capi/program.h"
#include "runtime/scope.h"
#include "threads/cancel.h"
#include "threads/sync/barrier.h"
#include "threads/this_thread.h"

namespace {

/// A thread of a bubble, to come or running. Its entity is removed when the thread ends.
struct Member {
  sterna::sched::Entity entity;
  std::string name;
  std::size_t stack_bytes = 0;
  bool is_preemptible = true;
  sterna_thread_function function = nullptr;
  void* argument = nullptr;
  sterna_bubble* bubble = nullptr;
  // Null: not started yet, or joined. Release by who starts it, acquire by who joins: what the
  // thread's object holds is seen. Who finds null here joins the one that starts it, and looks
  // again.
  std::atomic<sterna::threads::Thread*> thread{nullptr};
};

}  // namespace

/// Before it is submitted: of the program, which builds it from one thread at a time. Afterwards
/// any of its threads may add to it, and one thread joins it.
struct sterna_bubble {
  sterna::sched::Bubble bubble;
  sterna::SpinLock lock;                                 // Guard of the next four once it runs.
  std::vector<std::unique_ptr<Member>> members;          // Only grows.
  std::vector<std::unique_ptr<sterna_bubble>> children;  // The same.
  std::uint32_t running = 0;                             // Threads of its own that have not ended.
  bool is_submitted = false;
  sterna_bubble* holder = nullptr;
  sterna::threads::Barrier barrier{1};  // Of those that run; a place is kept when nobody does.
};

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

namespace {

// Bubbles in bubbles: less than the scheduler allows, for the root and the threads.
constexpr std::uint32_t kDepthMax = sterna::sched::kNestingMax - 4;

std::uint32_t height(const sterna_bubble& bubble) noexcept {
  std::uint32_t most = 0;
  for (const auto& child : bubble.children) {
    most = std::max(most, height(*child));
  }
  return most + 1;
}

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
  sterna::threads::Cleanup leaving;
  {
    const RuntimeScope scope;
    leaving.function = [](void* bubble) { leave_barrier(*static_cast<sterna_bubble*>(bubble)); };
    leaving.argument = member.bubble;
    sterna::threads::push_cleanup(leaving);
  }
  member.function(member.argument);
  const RuntimeScope scope;
  (void)sterna::threads::pop_cleanup(true);
}

void insert_all(sterna::sched::Engine& engine, sterna::sched::Bubble& holder,
                sterna_bubble& bubble) noexcept {
  (void)engine.insert(holder, bubble.bubble);
  for (const auto& member : bubble.members) {
    (void)engine.insert(bubble.bubble, member->entity);
  }
  for (const auto& child : bubble.children) {
    insert_all(engine, bubble.bubble, *child);
  }
  const sterna::SpinGuard guard{bubble.lock};
  bubble.is_submitted = true;
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
  return capi::to_status(made.error().code);
}

sterna_status start_all(capi::Program& program, const std::vector<Member*>& members) noexcept {
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

void list_all(const sterna_bubble& bubble, std::vector<Member*>& members) {
  for (const auto& member : bubble.members) {
    members.push_back(member.get());
  }
  for (const auto& child : bubble.children) {
    list_all(*child, members);
  }
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

}  // namespace

sterna_status sterna_bubble_create(sterna_bubble** bubble) noexcept {
  const RuntimeScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if (bubble == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  *bubble = new (std::nothrow) sterna_bubble;
  return *bubble != nullptr ? STERNA_SUCCESS : STERNA_OUT_OF_MEMORY;
}

sterna_status sterna_bubble_add_thread(sterna_bubble* bubble, const sterna_thread_options* options,
                                       sterna_thread_function function, void* argument) noexcept {
  const RuntimeScope scope;
  const sterna_thread_options used =
      options == nullptr ? sterna_thread_options STERNA_THREAD_OPTIONS_DEFAULT : *options;
  if (bubble == nullptr || function == nullptr || used.size_bytes != sizeof used ||
      used.worker != STERNA_ANY_WORKER || used.is_bound != 0 || used.is_detached != 0 ||
      used.is_cancellable != 0 || used.is_frozen != 0 || used.guard_bytes != 0 ||
      used.priority != STERNA_PRIORITY_NORMAL || used.place != nullptr || used.is_preemptible > 1 ||
      (used.bubble != nullptr && used.bubble != bubble) || used.stack != nullptr ||
      used.auto_bubbles > STERNA_AUTO_BUBBLES_FILIATION || used.reserved != 0) {
    return STERNA_INVALID_ARGUMENT;  // What a member cannot have is refused, not dropped.
  }
  return capi::guarded([&] {
    auto made = std::make_unique<Member>();
    Member& member = *made;
    member.name = used.name == nullptr ? "" : used.name;
    member.stack_bytes = used.stack_bytes;
    member.is_preemptible = used.is_preemptible != 0;
    member.function = function;
    member.argument = argument;
    member.bubble = bubble;
    const capi::Program* const its = capi::program();
    member.entity.makes_bubbles = its != nullptr && capi::makes_bubbles(*its, used);
    {
      const sterna::SpinGuard guard{bubble->lock};
      bubble->members.push_back(std::move(made));
      if (!bubble->is_submitted) {
        return STERNA_SUCCESS;
      }
    }
    // It runs already: so does this one.
    capi::Program& program = *capi::program();
    (void)program.scheduler->engine().insert(bubble->bubble, member.entity);
    return start_all(program, {&member});
  });
}

sterna_status sterna_bubble_add_bubble(sterna_bubble* bubble, sterna_bubble* child) noexcept {
  const RuntimeScope scope;
  if (bubble == nullptr || child == nullptr || child->holder != nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  std::uint32_t depth = height(*child);
  for (const sterna_bubble* outer = bubble; outer != nullptr; outer = outer->holder) {
    if (outer == child) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "a bubble cannot be put into one that it holds: bubbles nest as a tree");
    }
    if (++depth > kDepthMax) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "bubbles are nested {} deep at most: put some beside each other",
                          kDepthMax);
    }
  }
  if (child->is_submitted) {
    return capi::refuse(STERNA_BUSY,
                        "a bubble that runs cannot be put into another one: put it there before it "
                        "is submitted");
  }
  return capi::guarded([&] {
    std::vector<Member*> members;
    list_all(*child, members);  // What may fail comes before it is owned twice.
    {
      const sterna::SpinGuard guard{bubble->lock};
      bubble->children.emplace_back();
      bubble->children.back().reset(child);
      child->holder = bubble;
      if (!bubble->is_submitted) {
        return STERNA_SUCCESS;
      }
    }
    capi::Program& program = *capi::program();
    insert_all(program.scheduler->engine(), bubble->bubble, *child);
    return start_all(program, members);
  });
}

sterna_status sterna_bubble_set_level(sterna_bubble* bubble, uint32_t level) noexcept {
  const RuntimeScope scope;
  if (bubble == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (bubble->is_submitted) {
    return STERNA_BUSY;
  }
  // Programs do not know how deep the machine of the day is: the deepest level then.
  const capi::Program* const program = capi::program();
  bubble->bubble.level =
      program == nullptr ? level : std::min(level, program->topology->depth_count() - 1);
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_set_priority(sterna_bubble* bubble, uint32_t priority) noexcept {
  const RuntimeScope scope;
  if (bubble == nullptr || priority >= sterna::sched::kPriorityCount) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (bubble->is_submitted) {
    return STERNA_BUSY;
  }
  bubble->bubble.priority = static_cast<std::uint8_t>(priority);
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_set_slice(sterna_bubble* bubble, uint64_t slice_ns) noexcept {
  const RuntimeScope scope;
  if (bubble == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (bubble->is_submitted) {
    return STERNA_BUSY;
  }
  bubble->bubble.slice_ns = slice_ns;
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_phase(uint32_t number) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  program->scheduler->engine().set_phase(number);
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_shake(void) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  program->scheduler->engine().shake();
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_submit(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (bubble == nullptr || bubble->holder != nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (bubble->is_submitted) {
    return STERNA_BUSY;
  }
  return capi::guarded([&] {
    std::vector<Member*> members;
    list_all(*bubble, members);
    insert_all(program->scheduler->engine(), program->scheduler->root(), *bubble);
    program->scheduler->engine().submit(bubble->bubble);
    return start_all(*program, members);
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
    return STERNA_INVALID_ARGUMENT;
  }
  // Half a bubble could not be joined again.
  const sterna::threads::Uncancellable uncancellable{sterna::threads::self()};
  while (join_threads(*bubble)) {  // Who ran may have added others.
  }
  remove_all(program->scheduler->engine(), *bubble);
  delete bubble;
  return STERNA_SUCCESS;
}

sterna_status sterna_bubble_destroy(sterna_bubble* bubble) noexcept {
  const RuntimeScope scope;
  if (bubble != nullptr && (bubble->holder != nullptr || bubble->is_submitted)) {
    return STERNA_INVALID_ARGUMENT;
  }
  delete bubble;
  return STERNA_SUCCESS;
}
