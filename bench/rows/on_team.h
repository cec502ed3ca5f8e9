// For rows of threads: code that runs as a user thread of a team in this process.
#pragma once

#include "base/check.h"
#include "base/clock.h"
#include "bench/bench.h"
#include "threads/team.h"
#include "threads/this_thread.h"

namespace sterna::bench {

/// Runs `body(argument)` as a user thread of a team of `worker_count` workers, each on a processor
/// of its own, with priority. False: says why on the row.
bool run_on_team(const Row& row, Bench& bench, void (*body)(void*), void* argument,
                 std::uint32_t worker_count = 1);

/// Time of one of `count` operations.
template <typename Operation>
double ns_per(int count, Operation&& operation) {
  const std::uint64_t begin = now_ns();
  operation();
  return static_cast<double>(now_ns() - begin) / count;
}

/// On a thread of the team.
inline threads::Thread* spawn(threads::Entry entry, void* argument,
                              const threads::ThreadOptions& options = {}) {
  Result<threads::Thread*> thread = threads::self()->team->spawn(options, entry, argument);
  check(thread.has_value(), "the benchmark's thread starts");
  return thread.value();
}

}  // namespace sterna::bench
