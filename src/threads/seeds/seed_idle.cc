// What a worker without threads does about seeds: its own, then those of others.
#include <algorithm>
#include <array>

#include "threads/life/life.h"
#include "threads/seeds/seed.h"

namespace sterna::threads {
namespace {
constexpr std::size_t kBatchMax = 64;
constexpr std::uint64_t kLoneSeedCycles = 1'000;
constexpr std::uint64_t kQuickSeedCycles = 50'000;
}  // namespace

/// Where a seed waits: here, or elsewhere. A lone one is about to be joined, unless it stays.
Worker* Worker::find_seed() noexcept {
  if (seeds.count() > 0) {
    return this;
  }
  const std::size_t count = team.options.steal ? team.workers.size() : 1;
  for (std::size_t i = 1; i < count; ++i) {
    Worker& victim = *team.workers[(index + i) % count];
    const std::int64_t waiting = victim.seeds.count();
    if (waiting > 1) {
      return &victim;
    }
    if (waiting == 1) {
      const std::int64_t taken = victim.seeds.taken_count();
      if (seed_victim != &victim || seed_taken != taken) {
        seed_victim = &victim;
        seed_taken = taken;
        seed_since = cycles();
      } else if (cycles() - seed_since > kLoneSeedCycles) {
        return &victim;
      }
    }
  }
  return nullptr;
}

/// How many seeds to take now: one, a large piece of work as a rule; but where what was taken last
/// was done in not much more time than a visit costs, twice as many.
std::size_t Worker::next_seed_batch() noexcept {
  const std::uint64_t now = cycles();
  seed_batch = now - seeds_stolen_at < kQuickSeedCycles
                   ? std::min<std::size_t>(2 * seed_batch, kBatchMax)
                   : std::max<std::size_t>(seed_batch / 4, 1);
  seeds_stolen_at = now;
  return seed_batch;
}

/// Makes a thread of a seed of `from`: of its own the newest, which is joined first.
bool Worker::germinate(Worker& from) noexcept {
  Result<Thread*> thread = make_thread(team, this, kSeedThreadOptions);
  if (!thread) {
    return false;
  }
  std::array<Seed*, kBatchMax> taken;
  std::size_t taken_count = 0;
  if (&from == this) {
    taken[0] = seeds.pop_newest();
    taken_count = taken[0] != nullptr ? 1 : 0;
  } else {
    taken_count = from.seeds.steal(std::span{taken}.first(next_seed_batch()));
  }
  if (taken_count == 0) {
    keep_slot(team, this, *thread.value());
    return false;
  }
  for (std::size_t i = 0; i + 1 < taken_count; ++i) {
    check(seeds.push(*taken[i]), "an empty deque has room for what was stolen");
  }
  start_seed(team, *thread.value(), *taken[taken_count - 1]);
  return true;
}

bool Worker::take_seed() noexcept {
  Worker* const owner = find_seed();
  return owner != nullptr && germinate(*owner);
}

}  // namespace sterna::threads
