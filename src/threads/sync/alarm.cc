// The thread that makes the calls.
#include "threads/sync/alarm.h"

#include <algorithm>

#include "base/check.h"
#include "threads/carriers/border.h"
#include "threads/control/cancel.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::threads {
namespace {

// So many calls without a wait between them; then the others of the worker run.
constexpr std::uint32_t kRowMax = 32;
constexpr std::uint64_t kPauseNsMin = 50'000;

}  // namespace

Alarms::~Alarms() {
  check(armed_.empty(), "no alarm is armed when its team ends");
}

/// mutex_ is held.
Result<> Alarms::start_server() noexcept {
  Result<Thread*> server = team_.spawn(
      {.name = "alarms", .priority = kPriorityCount - 1, .detached = true}, serve, this);
  if (!server) {
    return server.error();
  }
  server_ = server.value();
  return Done{};
}

Result<> Alarms::arm(Alarm& alarm, std::uint64_t deadline_ns) noexcept {
  const Uncancellable uncancellable{self()};  // Its end would leave the mutex locked.
  const MutexGuard guard{mutex_};
  if (server_ == nullptr) {
    if (Result<> started = start_server(); !started) {
      return started;
    }
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
  for (bool was_armed = false;;) {
    if (alarm.is_armed) {  // Also if the call that is awaited has armed it again.
      armed_.erase({alarm.deadline_ns, &alarm});
      alarm.is_armed = false;
      was_armed = true;
      changed_.broadcast();
    }
    if (called_ != &alarm || self() == server_) {
      return was_armed;
    }
    changed_.wait(mutex_);
  }
}

bool Alarms::is_alone_with(std::uint32_t others) noexcept {
  const MutexGuard guard{mutex_};
  return server_ != nullptr && team_.live_thread_count() == others + 1;
}

void Alarms::disarm_if_alone() noexcept {
  const MutexGuard guard{mutex_};
  // Under the mutex: a thread that waits for its alarm is seen, and could not have armed it since.
  if (server_ == nullptr || team_.live_thread_count() != 1) {
    return;
  }
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
    alarm.deadline_ns += std::min(alarm.period_ns, kNever - 1 - alarm.deadline_ns);
    armed_.insert({alarm.deadline_ns, &alarm});
  }
  // Copied: after a last call the memory is the caller's again.
  void (*const function)(void*) = alarm.function;
  void* const argument = alarm.argument;
  called_ = &alarm;
  mutex_.unlock();
  Thread& me = *self();
  leave_runtime(me);
  function(argument);
  (void)enter_runtime(me);
  mutex_.lock();
  called_ = nullptr;
  changed_.broadcast();
}

/// A function has ended its thread: another one goes on.
void Alarms::replace_server(void* alarms) noexcept {
  auto& its = *static_cast<Alarms*>(alarms);
  const MutexGuard guard{its.mutex_};
  its.called_ = nullptr;
  its.server_ = nullptr;
  if (!its.armed_.empty()) {
    (void)its.start_server();  // If it fails: who arms next tries again.
  }
  its.changed_.broadcast();
}

/// mutex_ is held, and held again.
void Alarms::serve_all(Cleanup& at_end) noexcept STERNA_LOCKS_UNCHECKED {
  std::uint64_t begin_ns = team_.now_ns();  // Of calls in a row.
  std::uint32_t row = 0;
  while (!armed_.empty()) {
    const std::uint64_t now_ns = team_.now_ns();
    const std::uint64_t deadline_ns = armed_.begin()->first;
    if (now_ns < deadline_ns) {
      (void)changed_.wait_until(mutex_, deadline_ns);
    } else if (row < kRowMax) {
      row += 1;
      call_first();
      self()->cleanup = &at_end;  // What the function has left lay in a frame that is gone.
      continue;
    } else {
      // Periods shorter than what they ask for: the others of the worker have as much time.
      const std::uint64_t pause_ns = std::max(now_ns - begin_ns, kPauseNsMin);
      while (!armed_.empty() && changed_.wait_until(mutex_, now_ns + pause_ns)) {
      }
    }
    begin_ns = team_.now_ns();
    row = 0;
  }
}

void Alarms::serve(void* alarms) noexcept {
  auto& its = *static_cast<Alarms*>(alarms);
  Cleanup at_end{.function = replace_server, .argument = alarms};
  push_cleanup(at_end);
  const MutexGuard guard{its.mutex_};
  its.serve_all(at_end);
  (void)pop_cleanup(false);
  its.server_ = nullptr;
}

}  // namespace sterna::threads
