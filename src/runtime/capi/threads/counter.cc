// counter.h: calls at switches, counters of the processor.
#include <new>

#include <sterna/counter.h>

#include "memory/rank_slot.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/control/counters.h"
#include "threads/this_thread.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;

struct sterna_counters {
  explicit sterna_counters(std::span<const threads::Event> events) noexcept : set{events} {}

  threads::CounterSet set;
  sterna_thread* counted = nullptr;  // Its handle, which says whether it is still there.
};

namespace {

static_assert(STERNA_EVENT_COUNT == threads::kEventCount);
static_assert(static_cast<int>(threads::Event::page_faults) == STERNA_EVENT_PAGE_FAULTS);

/// The calling user thread of this program; else null, with a text.
threads::Thread* caller(sterna_status& status) noexcept {
  threads::Thread* const me = threads::self();
  if (me == nullptr || sterna::memory::rank_slot_of(me) != nullptr) {
    status = capi::refuse(STERNA_UNSUPPORTED,
                          "this call is for user threads, not for kernel threads and not for "
                          "mobile ranks");
    return nullptr;
  }
  return me;
}

/// The same for a call that is given a hook.
threads::Thread* caller_with(const sterna_switch_hook* hook, sterna_status& status,
                             const char* function) noexcept {
  threads::Thread* const me = caller(status);
  if (me != nullptr && hook == nullptr) {
    status = capi::refuse_argument(function);
    return nullptr;
  }
  return me;
}

threads::SwitchHook& hook_in(sterna_switch_hook* hook) noexcept {
  static_assert(sizeof(threads::SwitchHook) == sizeof *hook &&
                offsetof(threads::SwitchHook, argument) == offsetof(sterna_switch_hook, argument));
  return *reinterpret_cast<threads::SwitchHook*>(hook);
}

bool has_hook(const threads::Thread& me, const threads::SwitchHook& hook) noexcept {
  const threads::SwitchHook* one =
      (me.flags & threads::ThreadFlag::hooked) != 0 ? me.switch_hooks : nullptr;
  while (one != nullptr && one != &hook) {
    one = one->older;
  }
  return one != nullptr;
}

/// Somebody is counted who has not ended.
bool is_counting(const sterna_counters& counters) noexcept {
  return counters.set.counted() != nullptr && capi::thread_of(counters.counted) != nullptr;
}

bool counts_caller(const sterna_counters& counters) noexcept {
  return counters.set.counted() != nullptr && counters.set.counted() == threads::self() &&
         counters.counted == capi::handle_of(threads::self());
}

/// Whether each can be counted; else why not.
sterna_status check_events(std::span<const threads::Event> events) noexcept {
  for (const threads::Event event : events) {
    if (sterna::Result<> tried = threads::try_event(event); !tried) {
      return capi::refuse(capi::to_status(tried.error().code), "{}", tried.error().text);
    }
  }
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status sterna_thread_add_switch_hook(sterna_switch_hook* hook) noexcept {
  const RuntimeScope scope;
  sterna_status status = STERNA_SUCCESS;
  const threads::Thread* const me = caller_with(hook, status, __func__);
  if (me == nullptr) {
    return status;
  }
  if (has_hook(*me, hook_in(hook))) {
    return capi::refuse(STERNA_BUSY, "{} has that hook already", capi::words_for(me));
  }
  threads::add_switch_hook(hook_in(hook));
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_remove_switch_hook(sterna_switch_hook* hook) noexcept {
  const RuntimeScope scope;
  sterna_status status = STERNA_SUCCESS;
  const threads::Thread* const me = caller_with(hook, status, __func__);
  if (me == nullptr) {
    return status;
  }
  return threads::remove_switch_hook(hook_in(hook))
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_NOT_FOUND,
                            "{} does not have that hook: the thread that added it removes it",
                            capi::words_for(me));
}

sterna_status sterna_counters_create(const sterna_event* events, size_t count,
                                     sterna_counters** counters) noexcept {
  const RuntimeScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if (events == nullptr || counters == nullptr || count == 0 || count > STERNA_EVENT_COUNT) {
    return capi::refuse_argument(__func__);
  }
  std::array<threads::Event, threads::kEventCount> wanted{};
  unsigned seen = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto event = static_cast<unsigned>(events[i]);
    if (event >= STERNA_EVENT_COUNT || (seen & (1U << event)) != 0) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "event {} is named twice, or none of STERNA_EVENT_...", event);
    }
    seen |= 1U << event;
    wanted[i] = static_cast<threads::Event>(event);
  }
  const std::span<const threads::Event> chosen{wanted.data(), count};
  if (const sterna_status status = check_events(chosen); status != STERNA_SUCCESS) {
    return status;
  }
  auto* const made = new (std::nothrow) sterna_counters{chosen};
  if (made == nullptr) {
    return STERNA_OUT_OF_MEMORY;
  }
  *counters = made;
  return STERNA_SUCCESS;
}

sterna_status sterna_counters_start(sterna_counters* counters) noexcept {
  const RuntimeScope scope;
  sterna_status status = STERNA_SUCCESS;
  threads::Thread* const me = caller(status);
  if (me == nullptr) {
    return status;
  }
  if (counters == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (is_counting(*counters)) {
    return capi::refuse(STERNA_BUSY, "the counters count {} already: sterna_counters_stop first",
                        capi::words_for(counters->set.counted()));
  }
  counters->counted = capi::handle_of(me);
  counters->set.start();
  return STERNA_SUCCESS;
}

sterna_status sterna_counters_stop(sterna_counters* counters) noexcept {
  const RuntimeScope scope;
  sterna_status status = STERNA_SUCCESS;
  if (caller(status) == nullptr) {
    return status;
  }
  if (counters == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (!counts_caller(*counters)) {
    return capi::refuse(STERNA_REFUSED,
                        "the counters do not count {}: the thread that started them stops them",
                        capi::words_for(threads::self()));
  }
  counters->set.stop();
  counters->counted = nullptr;
  return STERNA_SUCCESS;
}

sterna_status sterna_counters_read(sterna_counters* counters, uint64_t* values) noexcept {
  const RuntimeScope scope;
  if (counters == nullptr || values == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return counters->set.read(values)
             ? STERNA_SUCCESS
             : capi::refuse(STERNA_TRUNCATED,
                            "a kernel thread could not open its counters (raise the limit of open "
                            "files, `ulimit -n`): turns there are missing");
}

sterna_status sterna_counters_reset(sterna_counters* counters) noexcept {
  const RuntimeScope scope;
  if (counters == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (!counts_caller(*counters) && is_counting(*counters)) {
    return capi::refuse(STERNA_BUSY, "the counters count {}, which alone may reset them",
                        capi::words_for(counters->set.counted()));
  }
  counters->set.reset();
  return STERNA_SUCCESS;
}

sterna_status sterna_counters_destroy(sterna_counters* counters) noexcept {
  const RuntimeScope scope;
  if (counters != nullptr && is_counting(*counters)) {
    return capi::refuse(STERNA_BUSY, "the counters count {}: it stops them, or is joined, first",
                        capi::words_for(counters->set.counted()));
  }
  delete counters;
  return STERNA_SUCCESS;
}
