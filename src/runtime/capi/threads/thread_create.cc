// thread.h: creation of threads, in slots of the runtime and in stacks of the program's.
#include <algorithm>
#include <cstring>
#include <new>

#include <sterna/bubble.h>
#include <sterna/thread.h>

#include "memory/rank_slot.h"
#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"
#include "threads/carriers/locals.h"
#include "threads/control/roster.h"
#include "threads/flags.h"
#include "threads/life/life.h"
#include "threads/life/unstarted.h"
#include "threads/this_thread.h"
#include "threads/user_calls.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::HotScope;
using sterna::runtime::RuntimeScope;

namespace {

/// What comes before its start.
sterna::Result<threads::Thread*> make(const capi::Program& program,
                                      const threads::ThreadOptions& options,
                                      const capi::ThreadExtras& extras, threads::Entry entry,
                                      void* argument) noexcept {
  auto made = threads::make_unstarted(
      *program.team, options, extras.has_own_locals || program.has_own_locals, entry, argument);
  if (made && extras.is_migratable) {
    threads::set_flags(*made.value(), made.value()->flags | threads::ThreadFlag::migratable);
  }
  return made;
}

}  // namespace

sterna::Result<threads::Thread*> capi::spawn(const Program& program,
                                             const threads::ThreadOptions& options,
                                             const ThreadExtras& extras, threads::Entry entry,
                                             void* argument) noexcept {
  if (extras.is_migratable) {
    auto made = make(program, options, extras, entry, argument);
    if (made) {
      threads::start_unstarted(*made.value(), options.worker);
    }
    return made;
  }
  return extras.has_own_locals || program.has_own_locals
             ? program.team->spawn_with_locals(options, entry, argument)
             : program.team->spawn(options, entry, argument);
}

namespace {

/// The slot whose stack begins there; no bytes: it is none of sterna_stack_create.
sterna::memory::StackSlot slot_of_stack(const void* stack) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(stack);
  const sterna::memory::SlotRange range = sterna::memory::slot_at(address);
  const sterna::memory::StackSlot slot{range.base, range.bytes};
  if (!sterna::memory::is_stack_address(address) || slot.stack_low() != address) {
    return {};
  }
  // Of sterna_stack_create from then to sterna_stack_destroy: else it is the runtime's, or
  // nobody's.
  const auto& its = *static_cast<const threads::Thread*>(slot.descriptor());
  return (threads::flags_of(its) & threads::ThreadFlag::adopted) != 0 ? slot
                                                                      : sterna::memory::StackSlot{};
}

/// Nobody has the stack: never used, or its thread was joined. Not inlined: g++ would warn of the
/// null descriptor of what is no slot, which callers have refused.
[[gnu::noinline]] bool is_free(const sterna::memory::StackSlot& slot) noexcept {
  const auto& last = *static_cast<const threads::Thread*>(slot.descriptor());
  return last.team == nullptr ||
         last.joiner.load(std::memory_order_acquire) == threads::Joined::reaped;
}

sterna_status make_on_stack(const capi::Program& program, const sterna_thread_options& used,
                            const threads::ThreadOptions& options, threads::Entry entry,
                            void* argument, threads::Thread*& thread) noexcept {
  void* const stack = used.stack;
  const sterna::memory::StackSlot slot = slot_of_stack(stack);
  if (slot.bytes == 0 || options.guard_bytes != 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a stack is what sterna_stack_create gave, until sterna_stack_destroy; it "
                        "has no more guards");
  }
  if (!is_free(slot)) {
    return capi::refuse(STERNA_BUSY, "that stack is {}'s, which was not joined",
                        capi::words_for(static_cast<const threads::Thread*>(slot.descriptor())));
  }
  threads::Locals* locals = nullptr;
  if (used.has_own_locals != 0 || program.has_own_locals) {
    auto own = threads::make_locals();
    if (!own) {
      return capi::refuse(capi::to_status(own.error().code), "{}", own.error().text);
    }
    locals = own.value();
  }
  // Nobody reads of it while it becomes another thread.
  threads::unlist_adopted(*program.team, *static_cast<threads::Thread*>(slot.descriptor()));
  thread = program.team->adopt({.base = static_cast<std::byte*>(stack),
                                .bytes = slot.stack_top() - slot.stack_low(),
                                .descriptor = static_cast<threads::Thread*>(slot.descriptor())},
                               options, entry, argument);
  threads::list_adopted(*program.team, *thread);
  if (locals != nullptr) {
    threads::give_locals(*thread, *locals);
  }
  threads::leave_unstarted(*thread);
  if (used.is_migratable != 0) {
    threads::set_flags(*thread, thread->flags | threads::ThreadFlag::migratable);
  }
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status capi::make_unstarted(const Program& program, const sterna_thread_options& options,
                                   const threads::ThreadOptions& converted, threads::Entry entry,
                                   void* argument, threads::Thread*& thread) noexcept {
  if (options.stack != nullptr) {
    return make_on_stack(program, options, converted, entry, argument, thread);
  }
  auto made = make(program, converted, extras_of(options), entry, argument);
  if (!made) {
    return refuse(to_status(made.error().code), "{}", made.error().text);
  }
  thread = made.value();
  return STERNA_SUCCESS;
}

namespace {

/// In a stack of the program's. SUCCESS: it runs.
sterna_status start_on_stack(const capi::Program& program, const sterna_thread_options& used,
                             const threads::ThreadOptions& options, sterna_thread_function function,
                             void* argument, sterna_thread** thread) noexcept {
  threads::Thread* made = nullptr;
  const sterna_status status = make_on_stack(program, used, options, function, argument, made);
  if (status == STERNA_SUCCESS) {
    if (thread != nullptr) {
      *thread = capi::handle_of(made);
    }
    threads::start_unstarted(*made, options.worker);
  }
  return status;
}

sterna_status start_in_slot(const capi::Program& program, const sterna_thread_options& used,
                            const threads::ThreadOptions& options, sterna_thread_function function,
                            void* argument, sterna_thread** thread) noexcept {
  auto made = capi::spawn(program, options, capi::extras_of(used), function, argument);
  if (!made) {
    return capi::refuse(capi::to_status(made.error().code), "{}", made.error().text);
  }
  if (thread != nullptr) {
    *thread = capi::handle_of(made.value());
  }
  return STERNA_SUCCESS;
}

[[gnu::noinline]] sterna_status create_by(const sterna_thread_options* options,
                                          sterna_thread_function function, void* argument,
                                          sterna_thread** thread) noexcept {
  const HotScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  const capi::Program& program = *capi::program();
  const sterna_thread_options used =
      options == nullptr ? sterna_thread_options STERNA_THREAD_OPTIONS_DEFAULT : *options;
  threads::ThreadOptions spawned;
  spawned.is_user_code = true;
  if (const sterna_status status = capi::convert(used, *program.team, spawned);
      status != STERNA_SUCCESS) {
    return status;
  }
  if (function == nullptr ||
      (thread == nullptr && used.is_detached == 0 && used.bubble == nullptr)) {
    return capi::refuse(
        STERNA_INVALID_ARGUMENT,
        "a thread needs a function, and a place for its handle unless it is detached");
  }
  if (used.bubble != nullptr) {
    return capi::add_member(*used.bubble, used, function, argument, thread);
  }
  if (const sterna_status status = capi::join_filiation(program, used, spawned);
      status != STERNA_SUCCESS) {
    return status;
  }
  const sterna_status status =
      used.stack != nullptr ? start_on_stack(program, used, spawned, function, argument, thread)
                            : start_in_slot(program, used, spawned, function, argument, thread);
  if (status != STERNA_SUCCESS && spawned.entity != nullptr) {
    program.scheduler->filiation().ended(*static_cast<sterna::sched::Entity*>(spawned.entity));
  }
  return status;
}

[[gnu::noinline]] sterna_status leave_create(threads::Thread* me) noexcept {
  threads::leave_birth(*me);
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status sterna_thread_create(const sterna_thread_options* options,
                                   sterna_thread_function function, void* argument,
                                   sterna_thread** thread) noexcept {
  // A thread without options of a hot caller is like all others if the settings ask for nothing
  // else, and the caller belongs to no bubble. All calls from here are the last thing that is done:
  // so nothing is kept over one.
  const capi::Program* const program = capi::the_program;
  threads::Thread* const me = sterna::runtime::find_hot_caller();
  if (options == nullptr && thread != nullptr && function != nullptr && program != nullptr &&
      me != nullptr && me->entity == nullptr && !program->has_own_locals) [[likely]] {
    const threads::Born born =
        threads::try_spawn_in_user_code(*program->team, *me, function, argument);
    if (born.thread != nullptr) [[likely]] {
      // As handle_of(), of the number that it has had.
      *thread = reinterpret_cast<sterna_thread*>(reinterpret_cast<std::uintptr_t>(born.thread) |
                                                 born.id << capi::kHandleShift);
      return threads::try_leave_birth(*me) ? STERNA_SUCCESS : leave_create(me);
    }
  }
  return create_by(options, function, argument, thread);
}

sterna_status sterna_stack_create(size_t bytes, void** stack, size_t* size) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (stack == nullptr || bytes == 0 || bytes > capi::kStackBytesMax) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "a stack has 1 byte to 2 GiB, and a place for it");
  }
  auto slot = program->space->acquire_stack(bytes * threads::kStackFactor);
  if (!slot) {
    return capi::refuse(capi::to_status(slot.error().code), "{}", slot.error().text);
  }
  // A slot that was another thread's before: not of one that is there.
  auto* const descriptor = new (slot.value().descriptor()) threads::Thread;
  descriptor->flags = threads::ThreadFlag::adopted;
  *stack = reinterpret_cast<void*>(slot.value().stack_low());
  if (size != nullptr) {
    *size = slot.value().stack_top() - slot.value().stack_low();
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_stack_destroy(void* stack) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  const sterna::memory::StackSlot slot = slot_of_stack(stack);
  if (slot.bytes == 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a stack is what sterna_stack_create gave, and is destroyed once");
  }
  if (!is_free(slot)) {
    return capi::refuse(STERNA_BUSY, "that stack is {}'s, which was not joined",
                        capi::words_for(static_cast<const threads::Thread*>(slot.descriptor())));
  }
  auto& last = *static_cast<threads::Thread*>(slot.descriptor());
  threads::unlist_adopted(*program->team, last);
  threads::set_flags(last, 0);
  program->space->release_stack(slot);
  return STERNA_SUCCESS;
}
