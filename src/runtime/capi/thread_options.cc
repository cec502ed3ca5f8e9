// thread.h: the options of a thread, checked.
#include <sterna/thread.h>

#include "memory/layout.h"
#include "runtime/capi/threads/handle.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;

namespace {

/// SUCCESS, or why not, with a text.
sterna_status check_options(const sterna_thread_options& options,
                            const threads::Team& team) noexcept {
  const auto wrong = [](const char* rule) noexcept {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "thread options: {}", rule);
  };
  if (options.size_bytes != sizeof options) {
    return wrong("size_bytes is sizeof(sterna_thread_options): use STERNA_THREAD_OPTIONS_DEFAULT");
  }
  if (options.preemption > STERNA_PREEMPTION_MAX) {
    return wrong("preemption is STERNA_PREEMPTION_...: use STERNA_THREAD_OPTIONS_DEFAULT");
  }
  if (options.is_bound > 1 || options.is_detached > 1 || options.is_cancellable > 1 ||
      options.is_frozen > 1) {
    return wrong("is_bound, is_detached, is_cancellable and is_frozen are 0 or 1");
  }
  if (options.worker != STERNA_ANY_WORKER && options.worker >= team.worker_count()) {
    return wrong("worker is below sterna_worker_count(), or STERNA_ANY_WORKER");
  }
  if (options.worker == STERNA_ANY_WORKER && options.is_bound != 0) {
    return wrong("a bound thread has a worker");
  }
  if (options.place != nullptr && options.worker != STERNA_ANY_WORKER) {
    return wrong("a thread has a place or a worker, not both");
  }
  if (options.auto_bubbles > STERNA_AUTO_BUBBLES_FILIATION || options.has_own_locals > 1 ||
      options.is_migratable > 1 || options.reserved != 0) {
    return wrong(
        "auto_bubbles is one of STERNA_AUTO_BUBBLES_..., has_own_locals and is_migratable are 0 or "
        "1, reserved is 0");
  }
  if (options.priority > STERNA_PRIORITY_MAX) {
    return wrong("priority is 0 to STERNA_PRIORITY_MAX");
  }
  if (options.stack_bytes > capi::kStackBytesMax) {
    return wrong("stack_bytes is at most 2 GiB");
  }
  if (options.guard_bytes % sterna::memory::kPageBytes != 0) {
    return wrong("guard_bytes is a multiple of the page, 4096");
  }
  if (options.preemption > STERNA_PREEMPTION_JOB && !team.can_preempt()) {
    return capi::refuse_preemption("thread options");
  }
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status capi::refuse_preemption(std::string_view what) noexcept {
  return refuse(STERNA_UNSUPPORTED,
                "{}: a preemption of its own needs the setting take_over=on, or preemption", what);
}

sterna_status capi::convert(const sterna_thread_options& options, const threads::Team& team,
                            threads::ThreadOptions& spawned) noexcept {
  if (const sterna_status status = check_options(options, team); status != STERNA_SUCCESS) {
    return status;
  }
  spawned.name = options.name;
  if (options.stack_bytes != 0) {
    spawned.stack_bytes = options.stack_bytes;
  }
  spawned.worker = options.worker;
  spawned.bound = options.is_bound != 0;
  spawned.detached = options.is_detached != 0;
  spawned.preemption = static_cast<threads::Preemption>(options.preemption);
  spawned.cancellable = options.is_cancellable != 0;
  spawned.held = options.is_frozen != 0;
  spawned.guard_bytes = options.guard_bytes;
  spawned.priority = static_cast<std::uint8_t>(options.priority);
  if (options.place != nullptr) {
    const WorkerRange range = workers_at(options.place);
    if (range.count == 0) {
      return STERNA_NOT_FOUND;
    }
    spawned.bound = true;
    spawned.worker = range.first;
    spawned.worker_count = range.count;
  }
  return STERNA_SUCCESS;
}
