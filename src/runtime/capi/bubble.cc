// bubble.h: bubbles of C programs on sched::Scheduler.
#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <sterna/bubble.h>

#include "runtime/capi/program.h"
#include "runtime/scope.h"
#include "threads/cancel.h"
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
  sterna::threads::Thread* thread = nullptr;  // Null: not started.
};

}  // namespace

/// Guard of all: the program, which builds, submits and joins a bubble from one thread at a time.
struct sterna_bubble {
  sterna::sched::Bubble bubble;
  std::vector<std::unique_ptr<Member>> members;
  std::vector<std::unique_ptr<sterna_bubble>> children;
  sterna_bubble* holder = nullptr;
  bool is_submitted = false;
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

void insert_all(sterna::sched::Engine& engine, sterna::sched::Bubble& holder,
                sterna_bubble& bubble) noexcept {
  bubble.is_submitted = true;
  (void)engine.insert(holder, bubble.bubble);
  for (const auto& member : bubble.members) {
    (void)engine.insert(bubble.bubble, member->entity);
  }
  for (const auto& child : bubble.children) {
    insert_all(engine, bubble.bubble, *child);
  }
}

sterna_status start_all(capi::Program& program, sterna_bubble& bubble) noexcept {
  sterna_status status = STERNA_SUCCESS;
  for (const auto& member : bubble.members) {
    sterna::threads::ThreadOptions options;
    options.name = member->name.empty() ? nullptr : member->name.c_str();
    if (member->stack_bytes != 0) {
      options.stack_bytes = member->stack_bytes;
    }
    options.entity = &member->entity;
    options.is_user_code = true;
    options.preemptible = member->is_preemptible;
    auto made = program.team->spawn(options, member->function, member->argument);
    if (made) {
      member->thread = made.value();
    } else {
      program.scheduler->engine().remove(member->entity);
      status = capi::to_status(made.error().code);
    }
  }
  for (const auto& child : bubble.children) {
    const sterna_status inner = start_all(program, *child);
    status = inner == STERNA_SUCCESS ? status : inner;
  }
  return status;
}

void join_all(capi::Program& program, sterna_bubble& bubble) noexcept {
  for (const auto& member : bubble.members) {
    if (member->thread != nullptr) {
      sterna::threads::join(*member->thread);
    }
  }
  for (const auto& child : bubble.children) {
    join_all(program, *child);
  }
  program.scheduler->engine().remove(bubble.bubble);
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
      (used.bubble != nullptr && used.bubble != bubble) || used.stack != nullptr) {
    return STERNA_INVALID_ARGUMENT;  // What a member cannot have is refused, not dropped.
  }
  if (bubble->is_submitted) {
    return STERNA_BUSY;
  }
  return capi::guarded([&] {
    auto member = std::make_unique<Member>();
    member->name = used.name == nullptr ? "" : used.name;
    member->stack_bytes = used.stack_bytes;
    member->is_preemptible = used.is_preemptible != 0;
    member->function = function;
    member->argument = argument;
    bubble->members.push_back(std::move(member));
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_bubble_add_bubble(sterna_bubble* bubble, sterna_bubble* child) noexcept {
  const RuntimeScope scope;
  if (bubble == nullptr || child == nullptr || child->holder != nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  std::uint32_t depth = height(*child);
  for (const sterna_bubble* outer = bubble; outer != nullptr; outer = outer->holder) {
    if (outer == child || ++depth > kDepthMax) {
      return STERNA_INVALID_ARGUMENT;
    }
  }
  if (bubble->is_submitted || child->is_submitted) {
    return STERNA_BUSY;
  }
  return capi::guarded([&] {
    // What may fail comes before it is owned twice.
    bubble->children.reserve(bubble->children.size() + 1);
    bubble->children.emplace_back(child);
    child->holder = bubble;
    return STERNA_SUCCESS;
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
  insert_all(program->scheduler->engine(), program->scheduler->root(), *bubble);
  program->scheduler->engine().submit(bubble->bubble);
  return start_all(*program, *bubble);
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
  join_all(*program, *bubble);
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
