// What a process and its kernel threads had of processors, as the system tells it.
#include "threads/preemption/crowd.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>

#include "base/syscall.h"
#include "threads/carriers/carrier.h"
#include "threads/worker.h"

namespace sterna::threads {
namespace {

// A file of /proc costs 10 us where the caches are of somebody else, as much as the rest of a tick.
constexpr std::uint32_t kTicksALook = 8;

std::uint64_t time_of(clockid_t clock) noexcept {
  timespec time{};
  (void)clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// The first bytes of a file of the system about the carrier's kernel thread, with a zero at their
/// end. Without memory, as a tick must.
bool read_file_of(const Carrier& carrier, const char* name, char (&text)[128]) noexcept {
  char path[64] = "/proc/self/task/";
  char* const end = path + sizeof path;
  const int id = carrier.kernel_id.load(std::memory_order_relaxed);
  std::strcpy(std::to_chars(path + std::strlen(path), end - 16, id).ptr, name);
  const long file = raw_system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY);
  if (file < 0) {
    return false;
  }
  const long bytes = raw_system_call(SYS_read, file, reinterpret_cast<long>(text), sizeof text - 1);
  raw_system_call(SYS_close, file);
  text[std::max(bytes, 0L)] = '\0';
  return bytes > 0;
}

bool is_computing(const Worker& worker) noexcept {
  return worker.busy_begin.load(std::memory_order_relaxed) != 0;
}

}  // namespace

std::uint64_t processor_time(const Carrier& carrier) noexcept {
  return time_of(carrier.processor_clock);
}

bool is_asleep(const Carrier& carrier) noexcept {
  char text[128];
  if (!read_file_of(carrier, "/stat", text)) {
    return false;
  }
  // "<id> (<name>) <state> ...": the name, 15 bytes at most, may itself hold parentheses.
  const char* const end = std::strrchr(text, ')');
  return end != nullptr && end[1] == ' ' && (end[2] == 'S' || end[2] == 'D');
}

std::optional<Share> share_of(const Carrier& carrier) noexcept {
  char text[128];
  if (!read_file_of(carrier, "/schedstat", text)) {
    return std::nullopt;
  }
  Share share;  // "<ran> <waited> <how often it ran>"
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, share.ran_ns);
  if (error != std::errc{} || at == end ||
      std::from_chars(at + 1, end, share.waited_ns).ec != std::errc{}) {
    return std::nullopt;
  }
  return share;
}

std::uint32_t intervals_for(const Share& since) noexcept {
  const std::uint64_t wanted_ns = since.ran_ns + since.waited_ns;
  const std::uint64_t intervals = wanted_ns / std::max<std::uint64_t>(since.ran_ns, 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(intervals, 1, kIntervalsMax));
}

std::uint32_t Crowd::look(std::uint64_t now_ns, const TeamState& team) noexcept {
  std::size_t computing = 0;
  for (const auto& worker : team.workers) {
    computing += is_computing(*worker) ? 1 : 0;
  }
  if (!had_little(now_ns, computing)) {
    good_for_ = 0;
    return intervals_ = 1;
  }
  if (good_for_ == 0) {
    look_at_all(team);
  } else {
    --good_for_;
  }
  return intervals_;
}

void Crowd::look_at_all(const TeamState& team) noexcept {
  std::optional<std::uint32_t> intervals;
  for (std::size_t i = 0; i < looks_.size(); ++i) {
    const Worker& worker = *team.workers[i];
    const Carrier* const carrier = worker.carrier.load(std::memory_order_acquire);
    if (!is_computing(worker) || carrier == nullptr) {
      continue;
    }
    if (const std::optional<std::uint32_t> its = look_at(*carrier, looks_[i])) {
      intervals = std::min(*its, intervals.value_or(kIntervalsMax));
    }
  }
  if (intervals) {  // Else as before: those that compute were not seen before.
    intervals_ = *intervals;
    good_for_ = kTicksALook - 1;
  }
}

/// Whether less than half of what `computing` kernel threads could have used since the last tick.
bool Crowd::had_little(std::uint64_t now_ns, std::size_t computing) noexcept {
  const std::uint64_t used_ns = time_of(CLOCK_PROCESS_CPUTIME_ID);
  const std::uint64_t usable_ns = (now_ns - std::exchange(last_ns_, now_ns)) * computing;
  return used_ns - std::exchange(last_used_ns_, used_ns) < usable_ns / 2;
}

/// None: it has another kernel thread than at the last look.
std::optional<std::uint32_t> Crowd::look_at(const Carrier& carrier, Look& look) noexcept {
  const std::optional<Share> share = share_of(carrier);
  if (!share) {
    return 1;
  }
  const Look before = std::exchange(look, {&carrier, *share});
  if (before.carrier != &carrier) {
    return std::nullopt;
  }
  const Share since{share->ran_ns - before.share.ran_ns,
                    share->waited_ns - before.share.waited_ns};
  if (since.ran_ns == 0 && since.waited_ns == 0) {  // It still waits for what ended that time.
    return is_asleep(carrier) ? 1 : kIntervalsMax;
  }
  return intervals_for(since);
}

}  // namespace sterna::threads
