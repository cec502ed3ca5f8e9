// See counters.h.
#include "threads/control/counters.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/check.h"
#include "base/syscall.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

struct Kind {
  std::uint32_t type;
  std::uint64_t config;
  const char* name;
};
constexpr std::array<Kind, kEventCount> kKinds{{
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, "references to the cache"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "misses of the cache"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches"},
    {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "missed branches"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "processor time"},
    {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "page faults"},
}};

const Kind& kind_of(Event event) noexcept {
  return kKinds[static_cast<std::size_t>(event)];
}

/// Of the calling kernel thread, on any processor; negative: minus an errno.
long open_event(Event event) noexcept {
  perf_event_attr wanted{};
  wanted.size = sizeof wanted;
  wanted.type = kind_of(event).type;
  wanted.config = kind_of(event).config;
  wanted.exclude_kernel = 1;  // Without, most kernels refuse it to users.
  wanted.exclude_hv = 1;
  return raw_system_call(SYS_perf_event_open, reinterpret_cast<long>(&wanted), 0, -1, -1,
                         PERF_FLAG_FD_CLOEXEC);
}

/// Of the kernel thread that runs `thread`, which is the caller; not self(), on whose stack a
/// handler of a signal is not.
EventFiles& files_of(const Thread& thread) noexcept {
  if (thread.is_taken.load(std::memory_order_relaxed)) {
    // On an errand (errand.cc) it has no worker: what was its own has another carrier by now.
    return static_cast<Carrier*>(thread.context.stack)->event_files;
  }
  const Worker& worker = *thread.worker.load(std::memory_order_relaxed);
  return worker.carrier.load(std::memory_order_relaxed)->event_files;
}

/// What /proc says about who may count; -9: nothing.
int paranoia() noexcept {
  const long file = raw_system_call(SYS_openat, AT_FDCWD,
                                    reinterpret_cast<long>("/proc/sys/kernel/perf_event_paranoid"),
                                    O_RDONLY | O_CLOEXEC);
  char text[16] = {};
  const long bytes =
      file < 0 ? -1
               : raw_system_call(SYS_read, file, reinterpret_cast<long>(text), sizeof text - 1);
  if (file >= 0) {
    raw_system_call(SYS_close, file);
  }
  return bytes > 0 ? std::atoi(text) : -9;
}

Error event_error(Event event, int error) {
  const std::string what = std::string{"counting "} + kind_of(event).name + ": ";
  switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
    case EINVAL:
      return {Errc::unsupported, what +
                                     "this machine (a virtual one?) does not have that counter; "
                                     "processor time and page faults are counted everywhere"};
    case ENOSYS:
      return {Errc::unsupported, what + "this kernel was built without perf_event_open"};
    case EACCES:
    case EPERM: {
      const int level = paranoia();
      return {Errc::refused,
              what + "the kernel forbids it (kernel.perf_event_paranoid is " +
                  (level == -9 ? std::string{"not to be read"} : std::to_string(level)) +
                  "): it must be 2 or less, as by `sysctl kernel.perf_event_paranoid=2`, or the "
                  "process needs CAP_PERFMON; containers filter the call, too"};
    }
    default:
      return system_error(what + "perf_event_open", error);
  }
}

}  // namespace

bool EventFiles::read(Event event, std::uint64_t& value) noexcept {
  int& file = files_[static_cast<std::size_t>(event)];
  if (file == 0) {
    const long opened = open_event(event);
    file = opened < 0 ? -1 : static_cast<int>(opened) + 1;
  }
  return file > 0 && raw_system_call(SYS_read, file - 1, reinterpret_cast<long>(&value),
                                     sizeof value) == sizeof value;
}

void EventFiles::close_all() noexcept {
  for (int& file : files_) {
    if (file > 0) {
      raw_system_call(SYS_close, file - 1);
    }
    file = 0;
  }
}

Result<> try_event(Event event) noexcept {
  const long file = open_event(event);
  if (file < 0) {
    return event_error(event, static_cast<int>(-file));
  }
  raw_system_call(SYS_close, file);
  return Done{};
}

CounterSet::CounterSet(std::span<const Event> events) noexcept : count_{events.size()} {
  check(count_ <= kEventCount, "a set counts different events");
  for (std::size_t i = 0; i < count_; ++i) {
    counters_[i].event = events[i];
  }
  hook_.before = [](void* self) { static_cast<CounterSet*>(self)->end_turn(); };
  hook_.after = [](void* self) { static_cast<CounterSet*>(self)->begin_turn(); };
  hook_.argument = this;
}

void CounterSet::begin_turn() noexcept {
  EventFiles& files = files_of(*counted());
  for (std::size_t i = 0; i < count_; ++i) {
    counters_[i].is_open = files.read(counters_[i].event, counters_[i].begin);
    if (!counters_[i].is_open) {
      is_incomplete_.store(true, std::memory_order_relaxed);
    }
  }
}

void CounterSet::end_turn() noexcept {
  EventFiles& files = files_of(*counted());
  for (std::size_t i = 0; i < count_; ++i) {
    Counter& counter = counters_[i];
    std::uint64_t now = 0;
    if (counter.is_open && files.read(counter.event, now)) {
      counter.sum.store(counter.sum.load(std::memory_order_relaxed) + now - counter.begin,
                        std::memory_order_relaxed);
    }
    counter.is_open = false;
  }
}

void CounterSet::start() noexcept {
  counted_.store(self(), std::memory_order_release);
  add_switch_hook(hook_);
  begin_turn();
}

void CounterSet::stop() noexcept {
  end_turn();
  check(remove_switch_hook(hook_), "counters are stopped by the thread that they count");
  counted_.store(nullptr, std::memory_order_release);
}

bool CounterSet::read(std::uint64_t* values) noexcept {
  if (counted() == self() && counted() != nullptr) {
    end_turn();
    begin_turn();
  }
  for (std::size_t i = 0; i < count_; ++i) {
    values[i] = counters_[i].sum.load(std::memory_order_relaxed);
  }
  return !is_incomplete_.load(std::memory_order_relaxed);
}

void CounterSet::reset() noexcept {
  const bool is_mine = counted() == self() && counted() != nullptr;
  if (is_mine) {
    end_turn();
  }
  for (Counter& counter : counters_) {
    counter.sum.store(0, std::memory_order_relaxed);
  }
  is_incomplete_.store(false, std::memory_order_relaxed);
  if (is_mine) {
    begin_turn();
  }
}

}  // namespace sterna::threads
