// Opens a team for a row.
#include "bench/rows/on_team.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <sched.h>

#include "bench/preferred.h"

namespace sterna::bench {

bool run_on_team(const Row& row, Bench& bench, void (*body)(void*), void* argument,
                 const TeamShape& shape) {
  const auto fail = [&](const std::string& why) {
    bench.add({.id = row.id, .target = row.target, .note = why});
    return false;
  };
  AllRanges ranges;
  Result<std::unique_ptr<memory::IsoSpace>> space = memory::IsoSpace::open({.leases = &ranges});
  if (!space) {
    return fail(space.error().text);
  }
  const Preferred preferred;
  // Kernel threads that are created inherit the processor: two processors would double their cost.
  std::vector<std::uint32_t> processors;
  const std::uint32_t here = static_cast<std::uint32_t>(std::max(::sched_getcpu(), 0));
  const std::uint32_t there = std::max(std::thread::hardware_concurrency(), 1U);
  for (std::uint32_t i = 0; i < shape.worker_count; ++i) {
    processors.push_back((here + i) % there);
  }
  Result<std::unique_ptr<threads::Team>> team =
      threads::Team::open({.worker_count = shape.worker_count,
                           .processors = processors,
                           .preempt = shape.preempt,
                           .slice_ns = shape.slice_ns,
                           .iso_space = space.value().get()});
  if (!team) {
    return fail(team.error().text);
  }
  Result<threads::Thread*> thread =
      team.value()->spawn({.stack_bytes = 256 * 1024}, body, argument);
  if (!thread) {
    return fail(thread.error().text);
  }
  threads::join(*thread.value());
  return true;
}

}  // namespace sterna::bench
