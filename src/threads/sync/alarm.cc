// The thread that makes the calls.
#include "threads/sync/alarm.h"

#include "base/check.h"
#include "threads/cancel.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::threads {

Alarms::~Alarms() {
  check(armed_.empty(), "no alarm is armed when its team ends");
}

Result<> Alarms::arm(Alarm& alarm, std::uint64_t deadline_ns) noexcept {
  const MutexGuard guard{mutex_};
  if (server_ == nullptr) {
    Result<Thread*> server = team_.spawn(
        {.name = "alarms", .priority = kPriorityCount - 1, .detached = true}, serve, this);
    if (!server) {
      return server.error();
    }
    server_ = server.value();
  }
  if (alarm.is_armed) {
    armed_.erase({alarm.deadline_ns, &alarm});
  }
  alarm.deadline_ns = deadline_ns;
  alarm.is_armed = true;
  armed_.insert({deadline_ns, &alarm});
  changed_.broadcast();
  return Done{};
}

bool Alarms::disarm(Alarm& alarm) noexcept {
  const Uncancellable uncancellable{self()};  // Its end would leave the mutex locked.
  const MutexGuard guard{mutex_};
  const bool was_armed = alarm.is_armed;
  if (was_armed) {
    armed_.erase({alarm.deadline_ns, &alarm});
    alarm.is_armed = false;
    changed_.broadcast();
  }
  while (called_ == &alarm && self() != server_) {
    changed_.wait(mutex_);
  }
  return was_armed;
}

void Alarms::disarm_all() noexcept {
  const MutexGuard guard{mutex_};
  for (const auto& [deadline_ns, alarm] : armed_) {
    alarm->is_armed = false;
  }
  armed_.clear();
  changed_.broadcast();
}

/// mutex_ is held, and held again.
void Alarms::call_first() noexcept STERNA_LOCKS_UNCHECKED {
  Alarm& alarm = *armed_.begin()->second;
  armed_.erase(armed_.begin());
  alarm.is_armed = alarm.period_ns != 0;
  if (alarm.is_armed) {
    alarm.deadline_ns += alarm.period_ns;
    armed_.insert({alarm.deadline_ns, &alarm});
  }
  // Copied: after a last call the memory is the caller's again.
  void (*const function)(void*) = alarm.function;
  void* const argument = alarm.argument;
  called_ = &alarm;
  mutex_.unlock();
  function(argument);
  mutex_.lock();
  called_ = nullptr;
  changed_.broadcast();
}

void Alarms::serve(void* alarms) noexcept {
  auto& its = *static_cast<Alarms*>(alarms);
  const MutexGuard guard{its.mutex_};
  while (!its.armed_.empty()) {
    const std::uint64_t deadline_ns = its.armed_.begin()->first;
    if (its.team_.now_ns() >= deadline_ns) {
      its.call_first();
    } else {
      (void)its.changed_.wait_until(its.mutex_, deadline_ns);
    }
  }
  its.server_ = nullptr;
}

}  // namespace sterna::threads
