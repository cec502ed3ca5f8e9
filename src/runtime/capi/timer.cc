// control.h: timers.
#include <new>

#include <sterna/control.h>

#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/sync/alarm.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::RuntimeScope;

namespace {

threads::Alarm& alarm_in(sterna_timer* timer) noexcept {
  static_assert(sizeof(threads::Alarm) <= sizeof *timer);
  return *std::launder(reinterpret_cast<threads::Alarm*>(timer));
}

}  // namespace

sterna_status sterna_timer_init(sterna_timer* timer, void (*function)(void*), void* argument,
                                uint64_t period_ns) noexcept {
  if (timer == nullptr || function == nullptr) {
    return capi::refuse_argument(__func__);
  }
  auto* const alarm = new (timer) threads::Alarm;
  alarm->function = function;
  alarm->argument = argument;
  alarm->period_ns = period_ns;
  return STERNA_SUCCESS;
}

sterna_status sterna_timer_set(sterna_timer* timer, uint64_t delay_ns) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (timer == nullptr || alarm_in(timer).function == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  const sterna::Result<> armed = program->alarms->arm(alarm_in(timer), capi::deadline_of(delay_ns));
  return armed ? STERNA_SUCCESS : capi::to_status(armed.error().code);
}

sterna_status sterna_timer_cancel(sterna_timer* timer) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (timer == nullptr) {
    return capi::refuse_argument(__func__);
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return program->alarms->disarm(alarm_in(timer)) ? STERNA_SUCCESS : STERNA_NOT_FOUND;
}
