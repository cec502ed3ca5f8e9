// Calls at a time, once or again and again.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "base/result.h"
#include "threads/sync/condition.h"
#include "threads/sync/mutex.h"

namespace sterna::threads {

class Team;
struct Cleanup;
struct Thread;

/// One call to come; memory of the caller, which outlives it until disarm() or the (last) call.
struct Alarm {
  void (*function)(void*) = nullptr;
  void* argument = nullptr;
  // 0: once. Else the next call is due so long after the last one was; those that are late are
  // made up for, in no more than half of the time of their worker.
  std::uint64_t period_ns = 0;
  // Guard: the mutex of the Alarms.
  std::uint64_t deadline_ns = 0;
  bool is_armed = false;
};

/// The alarms of a team. One user thread of real-time priority makes all calls, in the order of
/// their deadlines; it exists while some alarm is armed. A call may do what a user thread may, but
/// holds up the others while it does.
class Alarms {
 public:
  explicit Alarms(Team& team) noexcept : team_{team} {}
  /// No alarm is armed.
  ~Alarms();
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;

  /// Arms it, or changes the deadline if it is armed. Fails when no thread can be made. From
  /// anywhere. Switches.
  Result<> arm(Alarm& alarm, std::uint64_t deadline_ns) noexcept;
  /// No call begins after it, and none is under way, unless it is made within that call. False: it
  /// was not armed. Switches.
  bool disarm(Alarm& alarm) noexcept;
  /// All of them, if the thread that makes the calls is the only one of the team: it ends soon. The
  /// call that is under way is not waited for.
  void disarm_if_alone() noexcept;
  /// That thread, and so many others, are all that the team has.
  [[nodiscard]] bool is_alone_with(std::uint32_t others) noexcept;

 private:
  static void serve(void* alarms) noexcept;
  static void replace_server(void* alarms) noexcept;
  Result<> start_server() noexcept;
  void serve_all(Cleanup& at_end) noexcept;
  void call_first() noexcept;

  Team& team_;
  Mutex mutex_;        // Guard of all below.
  Condition changed_;  // The first deadline, or the end of a call.
  std::set<std::pair<std::uint64_t, Alarm*>> armed_;
  Alarm* called_ = nullptr;
  Thread* server_ = nullptr;  // Null: no thread serves.
};

}  // namespace sterna::threads
