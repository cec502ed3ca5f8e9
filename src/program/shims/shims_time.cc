// Time: not bound to the vDSO, whose address and code are of one machine; sleeping lets other ranks
// of the worker run.
#include <cerrno>

#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/syscall.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"

namespace sterna::program {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

time_t shim_time(time_t* result) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) {
    *result = now.tv_sec;
  }
  return now.tv_sec;
}

int shim_gettimeofday(timeval* result, void*) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) {
    *result = {now.tv_sec, now.tv_nsec / 1000};
  }
  return 0;
}

void sleep_ns(std::uint64_t duration_ns) noexcept {
  RankData* const data = find_calling_data();
  if (data != nullptr && is_main_of(*data)) {
    on_worker(*data, [&] { host_calls().sleep_for(*data->slot, duration_ns); });
    return;
  }
  timespec rest{static_cast<time_t>(duration_ns / kSecond),
                static_cast<long>(duration_ns % kSecond)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, &rest) == EINTR) {
  }
}

unsigned shim_sleep(unsigned seconds) {
  sleep_ns(std::uint64_t{seconds} * kSecond);
  return 0;
}

int shim_usleep(useconds_t microseconds) {
  sleep_ns(std::uint64_t{microseconds} * 1000);
  return 0;
}

bool is_duration(const timespec& time) noexcept {
  return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < kSecond;
}

int shim_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* rest) {
  if (!is_duration(*time)) {
    return EINVAL;
  }
  std::int64_t duration = time->tv_sec * kSecond + time->tv_nsec;
  if ((flags & TIMER_ABSTIME) != 0) {
    timespec now{};
    if (::clock_gettime(clock, &now) != 0) {
      return last_error_number();
    }
    duration -= now.tv_sec * kSecond + now.tv_nsec;
  }
  if (duration > 0) {
    sleep_ns(static_cast<std::uint64_t>(duration));
  }
  if (rest != nullptr && (flags & TIMER_ABSTIME) == 0) {
    *rest = {};
  }
  return 0;
}

int shim_nanosleep(const timespec* time, timespec* rest) {
  const int number = shim_clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
  if (number != 0) {
    set_last_error_number(number);
    return -1;
  }
  return 0;
}

int shim_yield() {
  RankData& data = calling_data();
  if (is_main_of(data)) {
    on_worker(data, [&] { host_calls().yield(*data.slot); });
    return 0;
  }
  return ::sched_yield();
}

}  // namespace

std::span<const Shim> time_shims() {
  static const Shim shims[] = {
      function_shim("time", shim_time),
      function_shim("gettimeofday", shim_gettimeofday),
      function_shim("sleep", shim_sleep),
      function_shim("usleep", shim_usleep),
      function_shim("nanosleep", shim_nanosleep),
      function_shim("clock_nanosleep", shim_clock_nanosleep),
      function_shim("sched_yield", shim_yield),
      function_shim("pthread_yield", shim_yield),
  };
  return shims;
}

}  // namespace sterna::program
