// For rows of threads: code that runs as a user thread of a team in this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "bench/statistics.h"
#include "memory/iso_space.h"
#include "threads/carriers/border.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::bench {

/// This process is the whole job: all addresses are its own. A million stacks need several ranges.
class AllRanges final : public memory::LeaseSource {
 public:
  Result<std::uint32_t> lease(std::uint32_t) noexcept override {
    return next_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> next_{1};
};

/// What kind of team.
struct TeamShape {
  std::uint32_t worker_count = 1;
  threads::PreemptMode preempt = threads::PreemptMode::none;
  std::uint64_t slice_ns = 20'000'000;  // PM2's, in papers 000 and 002.
};

/// Runs `body(argument)` as a user thread of a team, each worker on a processor of its own, with
/// priority. False: says why on the row.
bool run_on_team(const Row& row, Bench& bench, void (*body)(void*), void* argument,
                 const TeamShape& shape = {});

/// The same with a callable.
template <typename Body>
bool on_team(const Row& row, Bench& bench, Body body, const TeamShape& shape = {}) {
  return run_on_team(
      row, bench, [](void* what) { (*static_cast<Body*>(what))(); }, &body, shape);
}

/// Time of one of `count` operations.
template <typename Operation>
double ns_per(int count, Operation&& operation) {
  const std::uint64_t begin = now_ns();
  operation();
  return static_cast<double>(now_ns() - begin) / count;
}

/// On a thread of the team.
inline threads::Thread* spawn(threads::Entry entry, void* argument) {
  Result<threads::Thread*> thread = threads::self()->team->spawn(entry, argument);
  check(thread.has_value(), "the benchmark's thread starts");
  return thread.value();
}
inline threads::Thread* spawn(threads::Entry entry, void* argument,
                              const threads::ThreadOptions& options) {
  Result<threads::Thread*> thread = threads::self()->team->spawn(options, entry, argument);
  check(thread.has_value(), "the benchmark's thread starts");
  return thread.value();
}

/// Runs `body(index)` in `count` threads and waits for all. On a thread of the team.
template <typename Body>
void in_threads(int count, const Body& body) {
  struct Member {
    const Body* body;
    int index;
    threads::Thread* thread;
  };
  std::vector<Member> members(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Member& member = members[static_cast<std::size_t>(i)];
    member.body = &body;
    member.index = i;
    member.thread = spawn(
        [](void* argument) {
          const auto& its = *static_cast<Member*>(argument);
          (*its.body)(its.index);
        },
        &member);
  }
  for (const Member& member : members) {
    threads::join(*member.thread);
  }
}

/// Runs what belongs to the program: only there is a thread preempted. The paper's programs have
/// all of their computing in it.
template <typename Code>
void as_program(const Code& code) {
  threads::Thread& me = *threads::self();
  threads::leave_runtime(me);
  code();
  (void)threads::enter_runtime(me);
}

/// Gives the processor away for a tenth of the time since `begin_ns`: who has real-time priority
/// for longer than most of a second is stopped by the system, in the middle of a measurement.
inline void rest_since(std::uint64_t begin_ns) {
  threads::sleep_for((now_ns() - begin_ns) / 10);
}

/// Times both, as ours, other, other, ours, and takes the better of each: who comes first finds a
/// processor that has rested, and is slower for it. On a thread of the team.
template <typename Ours, typename Other>
void take_turns(Pairs& pairs, const Ours& ours, const Other& other) {
  const std::uint64_t begin = now_ns();
  const double first = ns_per(1, ours);
  const double second = ns_per(1, other);
  const double third = ns_per(1, other);
  const double fourth = ns_per(1, ours);
  pairs.add(std::min(first, fourth), std::min(second, third));
  rest_since(begin);
}

}  // namespace sterna::bench
