// Processes that wait for each other and have ended up on one processor: how they notice, and where
// each goes.
//
// What comes over a loopback socket wakes its sleeper on the processor of the sender, where the two
// caches have nothing in common, and the system takes 10 to 40 ms to part them again: it takes who
// has just run for one that is better left. Meanwhile a message takes two switches. So a process
// that finds the processor taken each time that it yields goes to its home, if any processor of the
// machine has nothing to do: each process of a host has another home, as long as there are enough.
// Where others compute beside them, two that wait for each other are best left on one processor.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace sterna::progress {

/// Of those that wait in a process, who count what their yields take.
class HomeWatch {
 public:
  struct Rule {
    std::uint32_t in_a_row;  // So many long yields: it goes, ...
    std::uint64_t pause_ns;  // ...then not so soon again: doubled as long as it does not help.
    std::uint32_t helped;    // It has, when so many short ones followed in a row.
  };
  // Home may be where others compute.
  static constexpr Rule kOfOneCaller{.in_a_row = 4, .pause_ns = 1'000'000, .helped = 1};
  // Beside workers, who wake now and then where a caller polls, and serve what it waits for.
  static constexpr Rule kOfSeveral{.in_a_row = 32, .pause_ns = 32'000'000, .helped = 256};

  // Who sleeps after one yield, as processors that are shared are left.
  static constexpr Rule kOfWorkers{.in_a_row = 2, .pause_ns = 4'000'000, .helped = 256};

  explicit HomeWatch(const Rule& rule = kOfOneCaller) noexcept : rule_{rule} {}

  /// Whether to go now. Alone on a processor a yield takes a quarter of a microsecond.
  [[nodiscard]] bool has_yielded(std::uint64_t begin_ns, std::uint64_t end_ns) noexcept {
    if (end_ns - begin_ns < kSharedNs) [[likely]] {
      long_ = 0;
      if (++short_ >= rule_.helped) {
        pause_ns_ = rule_.pause_ns;
      }
      return false;
    }
    short_ = 0;
    if (++long_ < rule_.in_a_row || end_ns < next_ns_) {
      return false;
    }
    long_ = 0;
    next_ns_ = end_ns + pause_ns_;
    pause_ns_ = std::min(2 * pause_ns_, kPauseNsMax);
    return true;
  }

  static constexpr std::uint64_t kSharedNs = 2'000;
  static constexpr std::uint64_t kPauseNsMax = 1'000'000'000;

 private:
  const Rule rule_;
  std::uint32_t long_ = 0;  // In a row, as the next one.
  std::uint32_t short_ = 0;
  std::uint64_t next_ns_ = 0;
  std::uint64_t pause_ns_ = rule_.pause_ns;
};

/// Of the processors of `allowed`, that of the process `index` of its host; -1: there is none.
[[nodiscard]] int home_in(const cpu_set_t& allowed, std::uint32_t index) noexcept;

/// How many threads run or want to, of the text of /proc/loadavg; 0: it does not say.
[[nodiscard]] std::uint32_t running_in(std::string_view loadavg) noexcept;

/// The calling kernel thread goes there, and may run where it could before. At home already, or
/// bound to one processor, or if more threads run than there are processors, it stays.
void go_home(std::uint32_t index) noexcept;
/// The same, but to any other processor than this one, which may be taken, too.
void go_elsewhere() noexcept;

}  // namespace sterna::progress
