// control.h: cancellation, freezing, priorities, places, the list of threads.
#include "threads/control/control.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include <sterna/control.h>

#include "base/syscall.h"
#include "memory/rank_slot.h"
#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/carriers/carrier.h"
#include "threads/control/cancel.h"
#include "threads/control/roster.h"
#include "threads/flags.h"
#include "threads/preemption/preempt.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;

namespace {

/// The calling user thread of this program; null on kernel threads and in ranks.
threads::Thread* caller() noexcept {
  threads::Thread* const me = threads::self();
  return me != nullptr && sterna::memory::rank_slot_of(me) == nullptr ? me : nullptr;
}

sterna_status not_here() noexcept {
  return capi::refuse(STERNA_UNSUPPORTED,
                      "this call is for user threads, not for kernel threads "
                      "and not for mobile ranks");
}

threads::Cleanup& cleanup_in(sterna_cleanup* cleanup) noexcept {
  static_assert(sizeof(threads::Cleanup) <= sizeof *cleanup);
  return *new (cleanup) threads::Cleanup;
}

}  // namespace

sterna_status sterna_thread_cancel(sterna_thread* thread) noexcept {
  const RuntimeScope scope;
  threads::Thread* const cancelled = capi::thread_of(thread);
  if (cancelled == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if ((threads::flags_of(*cancelled) & threads::ThreadFlag::cancellable) == 0) {
    return capi::refuse(STERNA_REFUSED,
                        "{} cannot be cancelled: set is_cancellable in the options that create it",
                        capi::words_for(cancelled));
  }
  threads::cancel(*cancelled);
  return STERNA_SUCCESS;
}

void sterna_thread_test_cancel(void) noexcept {
  const RuntimeScope scope;
  if (caller() != nullptr && !capi::is_in_poll()) {
    threads::test_cancel();
  }
}

sterna_status sterna_thread_set_cancellable(int is_cancellable, int* before) noexcept {
  const RuntimeScope scope;
  const threads::Thread* const me = caller();
  if (me == nullptr) {
    return not_here();
  }
  if (is_cancellable != 0 && (me->flags & threads::ThreadFlag::cancellable) == 0) {
    return capi::refuse(STERNA_REFUSED,
                        "{} was not created cancellable: set is_cancellable in its options",
                        capi::words_for(me));
  }
  const bool was = threads::set_cancellable(is_cancellable != 0);
  if (before != nullptr) {
    *before = was ? 1 : 0;
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_cleanup_push(sterna_cleanup* cleanup, void (*function)(void*),
                                         void* argument) noexcept {
  const RuntimeScope scope;
  if (cleanup == nullptr || function == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (caller() == nullptr) {
    return not_here();
  }
  threads::Cleanup& pushed = cleanup_in(cleanup);
  pushed.function = function;
  pushed.argument = argument;
  threads::push_cleanup(pushed);
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_cleanup_pop(int execute) noexcept {
  const RuntimeScope scope;
  if (caller() == nullptr) {
    return not_here();
  }
  // The outermost cleanup of a bubble's thread is ours: by it the bubble learns of its end.
  const capi::Member* const member = capi::member_of(threads::self());
  const bool is_ours = member != nullptr && threads::self()->cleanup == &member->leaving;
  return !is_ours && threads::pop_cleanup(execute != 0)
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_NOT_FOUND,
                            "{} has no cleanup to pop: push and pop come in pairs",
                            capi::words_for(threads::self()));
}

sterna_status sterna_thread_after_exit(void (*function)(void*), void* argument) noexcept {
  const RuntimeScope scope;
  if (caller() == nullptr) {
    return not_here();
  }
  threads::call_after_exit(function, argument);
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_freeze(sterna_thread* const* list, size_t count,
                                   uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  if (list == nullptr && count != 0) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return capi::guarded([&] {
    std::vector<threads::Thread*> frozen;
    for (size_t i = 0; i < count; ++i) {
      frozen.push_back(capi::thread_of(list[i]));
      if (frozen.back() == nullptr) {
        return STERNA_INVALID_ARGUMENT;
      }
    }
    return threads::hold(frozen, capi::deadline_of(timeout_ns)) ? STERNA_SUCCESS : STERNA_TIMED_OUT;
  });
}

sterna_status sterna_thread_unfreeze(sterna_thread* thread) noexcept {
  const RuntimeScope scope;
  threads::Thread* const frozen = capi::thread_of(thread);
  if (frozen == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  threads::unhold(*frozen);
  return STERNA_SUCCESS;
}

sterna_status sterna_scheduling_freeze(uint64_t timeout_ns) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  switch (threads::hold_all(*program->team, capi::deadline_of(timeout_ns))) {
    case threads::HoldAll::held:
      return STERNA_SUCCESS;
    case threads::HoldAll::timed_out:
      return capi::refuse(
          STERNA_TIMED_OUT,
          "some threads still compute, or are in the kernel; they stop at their next "
          "call that may switch, unless sterna_scheduling_unfreeze comes first");
    default:
      return capi::refuse(STERNA_BUSY,
                          "scheduling is frozen already: sterna_scheduling_unfreeze ends that");
  }
}

sterna_status sterna_scheduling_unfreeze(void) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  return threads::unhold_all(*program->team)
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_REFUSED,
                            "scheduling is not frozen: sterna_scheduling_freeze comes first");
}

sterna_status sterna_thread_set_priority(sterna_thread* thread, uint32_t priority) noexcept {
  const RuntimeScope scope;
  threads::Thread* const changed = capi::thread_of(thread);
  if (changed == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (priority > STERNA_PRIORITY_MAX) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: priority {} is not 0 to {}",
                        capi::words_for(changed), priority, STERNA_PRIORITY_MAX);
  }
  const auto wanted = static_cast<std::uint8_t>(priority);
  if (capi::member_of(changed) == nullptr) {
    threads::set_priority(*changed, wanted);
    return STERNA_SUCCESS;
  }
  // It may end meanwhile, and its entity go, but for this lock. Who has left needs none any more.
  const sterna::FairGuard guard{capi::bubbles_lock};
  if (capi::living_member_of(*changed) != nullptr) {
    threads::set_priority(*changed, wanted);
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_priority(const sterna_thread* thread, uint32_t* priority) noexcept {
  const RuntimeScope scope;
  const threads::Thread* const asked = capi::thread_of(thread);
  if (asked == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (priority == nullptr) {
    return capi::refuse_argument(__func__);
  }
  *priority = asked->priority.load(std::memory_order_relaxed);
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_yield_to(sterna_thread* thread) noexcept {
  const RuntimeScope scope;
  threads::Thread* const next = capi::thread_of(thread);
  if (next == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return threads::yield_to(*next) ? STERNA_SUCCESS : STERNA_BUSY;
}

void sterna_preemption_disable(void) noexcept {
  threads::disable_preemption();
}

sterna_status sterna_preemption_enable(void) noexcept {
  const threads::Thread* const me = threads::self();
  if (me != nullptr &&
      (me->preempt_off.load(std::memory_order_relaxed) & ~threads::kPreemptBits) == 0) {
    return capi::refuse(STERNA_REFUSED, "{}: sterna_preemption_disable was not called before",
                        capi::words_for(me));
  }
  threads::enable_preemption();
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_set_preemption(sterna_thread* thread, std::uint32_t mode) noexcept {
  const RuntimeScope scope;  // Who allows it for itself gives way when it is left.
  threads::Thread* const changed = capi::thread_of(thread);
  if (changed == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (mode > STERNA_PREEMPTION_MAX) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{}: mode is STERNA_PREEMPTION_..., 0 to {}, not {}",
                        capi::words_for(changed), STERNA_PREEMPTION_MAX, mode);
  }
  if (mode > STERNA_PREEMPTION_JOB && !changed->team->can_preempt()) {
    return capi::refuse_preemption(capi::words_for(changed));
  }
  threads::set_preemption(*changed, static_cast<threads::Preemption>(mode));
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_preemption(const sterna_thread* thread, std::uint32_t* mode) noexcept {
  const RuntimeScope scope;
  const threads::Thread* const asked = capi::thread_of(thread);
  if (asked == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (mode == nullptr) {
    return capi::refuse_argument(__func__);
  }
  *mode = static_cast<std::uint32_t>(threads::preemption_of(*asked));
  return STERNA_SUCCESS;
}

sterna_status sterna_blocking_begin(void) noexcept {
  const threads::Thread* const me = threads::self();
  if (me != nullptr && sterna::memory::rank_slot_of(me) != nullptr) {
    return not_here();
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return me == nullptr || threads::enter_blocking() ? STERNA_SUCCESS : STERNA_BUSY;
}

void sterna_blocking_end(void) noexcept {
  threads::leave_blocking();
}

sterna_status sterna_thread_stay_at(const char* place) noexcept {
  const RuntimeScope scope;
  if (place == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  const threads::Thread* const me = caller();
  if (me == nullptr || (me->flags & threads::ThreadFlag::placed) != 0) {
    return capi::refuse(STERNA_UNSUPPORTED, "{} is placed by its bubble's policy, or by the system",
                        capi::words_for(me));
  }
  const capi::WorkerRange range = capi::workers_at(place);
  if (range.count == 0) {
    return STERNA_NOT_FOUND;
  }
  threads::stay_on(range.first, range.count);
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_list(sterna_thread_info* infos, size_t capacity,
                                 size_t* count) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if ((infos == nullptr && capacity != 0) || count == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    std::vector<threads::ThreadInfo> found;  // As many as there are, whatever room there is.
    do {
      found.resize(std::min(capacity, threads::list_threads(*program->team, {}) + 16));
      *count = threads::list_threads(*program->team, found);
    } while (found.size() < std::min(capacity, *count));
    for (size_t i = 0; i < std::min(capacity, *count); ++i) {
      const threads::ThreadInfo& one = found[i];
      infos[i] = {};
      infos[i].thread = capi::handle_of(one.thread);
      infos[i].number = one.id;
      infos[i].state = static_cast<sterna_thread_state>(one.state);
      infos[i].priority = one.priority;
      infos[i].worker = one.worker;
      infos[i].is_bound = (one.flags & threads::ThreadFlag::bound) != 0;
      infos[i].is_detached = (one.flags & threads::ThreadFlag::detached) != 0;
      infos[i].is_in_bubble = (one.flags & threads::ThreadFlag::placed) != 0;
      infos[i].is_migratable = (one.flags & threads::ThreadFlag::migratable) != 0;
      std::memcpy(infos[i].name, one.name, sizeof infos[i].name);
    }
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_thread_stack(const sterna_thread* thread, void** base, size_t* bytes,
                                  size_t* used_bytes) noexcept {
  const RuntimeScope scope;
  const threads::Thread* const asked = capi::thread_of(thread);
  if (asked == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  const threads::StackUse use = threads::stack_use(*asked);
  if (base != nullptr) {
    *base = use.base;
  }
  if (bytes != nullptr) {
    *bytes = use.bytes;
  }
  if (used_bytes != nullptr) {
    *used_bytes = use.used_bytes;
  }
  return STERNA_SUCCESS;
}

int* sterna_errno(void) noexcept {
  return sterna::error_number_address();
}
