// thread.million: a million threads that all wait, against the page faults of as many stacks.
#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "memory/layout.h"
#include "threads/sync/semaphore.h"

namespace sterna::bench {
namespace {

/// Pages of this process that are in memory, in bytes.
double resident_bytes() {
  std::ifstream file{"/proc/self/statm"};
  double all = 0;
  double resident = 0;
  file >> all >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Memory that is in use until it is given to what is measured, piece by piece, outside its time.
/// A virtual machine gives back to its host what is free, within a second or two: to get it again
/// takes several times as long as the fault that is measured, for whoever is slower the more.
class Feed {
 public:
  /// For `count` stacks of one page in memory.
  explicit Feed(int count) {
    bytes_ = static_cast<std::size_t>(count) * kFedBytes + (std::size_t{8} << 20);
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    memory_ = memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  ~Feed() {
    if (memory_ != nullptr) {
      ::munmap(memory_, bytes_);
    }
  }
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// So many stacks are about to be made.
  void give(int count) noexcept {
    const std::size_t wanted = static_cast<std::size_t>(count) * kFedBytes;
    const std::size_t bytes = std::min(wanted / kPageBytes * kPageBytes, bytes_ - given_);
    if (memory_ != nullptr && bytes != 0) {
      (void)::madvise(memory_ + given_, bytes, MADV_DONTNEED);
      given_ += bytes;
    }
  }

  /// What `make(begin, end)` takes for stacks 0 to `count`, fed, ns each.
  template <typename Make>
  static double ns_each(int count, Make&& make) {
    constexpr int kPiece = 8192;
    Feed feed{count};
    double ns = 0;
    for (int begin = 0; begin < count; begin += kPiece) {
      const int end = std::min(begin + kPiece, count);
      feed.give(end - begin);
      ns += ns_per(1, [&] { make(begin, end); });
    }
    return ns / count;
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kFedBytes = kPageBytes + kPageBytes / 8;  // With tables of pages.
  std::size_t bytes_ = 0;
  std::size_t given_ = 0;
  char* memory_ = nullptr;
};

/// Of each thread.
struct Phases {
  double create_ns = 0;  // Until all have blocked.
  double end_ns = 0;     // Woken, ended, joined.
  double bytes = 0;      // In memory while it waits; without tables of pages.
};

struct Million {
  int count;
  Phases each = {};
  threads::Semaphore gate{};

  static void wait(void* million) { static_cast<Million*>(million)->gate.acquire(); }
  static void run(void* argument) {
    auto& its = *static_cast<Million*>(argument);
    std::vector<threads::Thread*> all(static_cast<std::size_t>(its.count));
    const double before = resident_bytes();
    its.each.create_ns = Feed::ns_each(its.count, [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        all[static_cast<std::size_t>(i)] = spawn(wait, argument);
        if (i % 64 == 63) {
          threads::yield();  // They run, and block.
        }
      }
      threads::yield();
    });
    its.each.bytes = (resident_bytes() - before) / its.count;
    its.each.end_ns = ns_per(its.count, [&] {
      its.gate.release(static_cast<std::uint32_t>(its.count));
      for (threads::Thread* const thread : all) {
        threads::join(*thread);
      }
    });
  }
};

/// The first touch of one page in each of `count` stacks of 64 KiB.
double fault_ns(int count) {
  constexpr std::size_t kStackBytes = 64 << 10;
  const std::size_t bytes = kStackBytes * static_cast<std::size_t>(count);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return 0;
  }
  (void)::madvise(memory, bytes, MADV_NOHUGEPAGE);
  auto* const stacks = static_cast<volatile char*>(memory);
  const double time = Feed::ns_each(count, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      stacks[(static_cast<std::size_t>(i) + 1) * kStackBytes - 64] = 1;
    }
  });
  ::munmap(memory, bytes);
  return time;
}

/// The same with a guard below each: what is there before a thread is. 0: no space for them.
double stack_ns(int count) {
  AllRanges ranges;
  Result<std::unique_ptr<memory::IsoSpace>> space = memory::IsoSpace::open({.leases = &ranges});
  if (!space) {
    return 0;
  }
  bool is_whole = true;
  const double time = Feed::ns_each(count, [&](int begin, int end) {
    for (int i = begin; i < end && is_whole; ++i) {
      Result<memory::StackSlot> slot = space.value()->acquire_stack(threads::kDefaultStackBytes);
      is_whole = slot.has_value();
      if (is_whole) {
        *static_cast<volatile char*>(slot.value().descriptor()) = 1;
      }
    }
  });
  return is_whole ? time : 0;
}

/// Lines of what the phases cost, for information, and beside what they should.
void add_phases(const Row& row, Bench& bench, int count, const std::vector<Phases>& all,
                bool is_cold) {
  const auto add = [&](const char* what, const char* unit, double Phases::* part, double aim) {
    std::vector<double> values;
    for (const Phases& each : all) {
      values.push_back(each.*part);
    }
    const Figure figure{.id = row.id,
                        .params = fmt::format("{} threads, {}", count, what),
                        .unit = unit,
                        .value = median(values)};
    bench.add_aim(figure, aim);
  };
  if (is_cold) {
    add("fresh stacks, created and blocked", "ns", &Phases::create_ns, 1900);
    return;
  }
  add("created and blocked", "ns", &Phases::create_ns, 2300);
  add("woken and joined", "ns", &Phases::end_ns, 350);
  add("memory", "bytes", &Phases::bytes, 4300);
}

}  // namespace

void run_million(const Row& row, Bench& bench) {
  std::vector<double> ours;
  std::vector<double> faults;
  std::vector<double> stacks;
  std::vector<Phases> millions;
  std::vector<Phases> cold;
  const int count = bench.options().quick ? 10'000 : 1'000'000;
  const int cold_count = count / 100;
  const auto measure = [&](int thread_count, std::vector<Phases>& all) {
    Million million{.count = thread_count};
    if (!run_on_team(row, bench, Million::run, &million)) {
      return false;
    }
    all.push_back(million.each);
    return true;
  };
  for (int round = bench.rounds(3); round > 0; --round) {
    if (!measure(cold_count, cold) || !measure(count, millions)) {
      return;
    }
    ours.push_back(millions.back().create_ns + millions.back().end_ns);
    if (const double time = fault_ns(count); time > 0) {
      faults.push_back(time);
    }
    if (const double time = stack_ns(count); time > 0) {
      stacks.push_back(time);
    }
  }
  Figure figure{.id = row.id,
                .params = fmt::format("{} threads, each", count),
                .unit = "ns",
                .value = median(ours),
                .reference = "page faults of the stacks",
                .target = row.target};
  if (!faults.empty()) {
    figure.reference_value = median(faults);
  }
  bench.add(figure);
  if (!stacks.empty() && !faults.empty()) {
    figure.params = fmt::format("{} stacks and their guards, no threads, each", count);
    figure.value = median(stacks);
    figure.target.reset();
    bench.add(figure);
  }
  add_phases(row, bench, cold_count, cold, true);
  add_phases(row, bench, count, millions, false);
}

}  // namespace sterna::bench
