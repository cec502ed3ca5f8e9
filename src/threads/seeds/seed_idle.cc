// What a worker without threads does about seeds: its own, then those of others.
//
// Of those of bubbles it takes what the plan lets it run. What the plan leaves to others, though
// the program does not, becomes a thread where it is planned: there the policy, asked what an idle
// worker is to have, sees it, as it would have from the start. That is for those who have looked
// before and found nothing, and ever more rarely while the policy gives them nothing.
#include <algorithm>
#include <array>
#include <utility>

#include "threads/life/life.h"
#include "threads/seeds/seed.h"

namespace sterna::threads {
namespace {
constexpr std::size_t kBatchMax = 64;
constexpr std::uint64_t kLoneSeedNs = 400;
constexpr std::uint64_t kQuickSeedNs = 20'000;
// After a look at seeds of which this worker may run none: not before that, the next pause.
constexpr std::uint64_t kRefusedNsMin = 24'000;
constexpr std::uint64_t kRefusedNsMax = 1'500'000;
}  // namespace

/// Where a seed waits: here, or elsewhere. A lone one is about to be joined, unless it stays.
Worker* Worker::find_seed() noexcept {
  if (seeds.count() > 0) {
    return this;
  }
  // Seeds of bubbles may be for us whatever the options say: so may their threads.
  const bool steals = team.options.steal || team.options.dispatch != nullptr;
  if (!steals || (seed_refusals != 0 && cycles() - seeds_refused_at < seed_pause())) {
    return nullptr;
  }
  const std::size_t count = team.workers.size();
  for (std::size_t i = 0; i < count; ++i) {
    Worker& victim = *team.workers[(seed_first + i) % count];
    const std::int64_t waiting = victim.seeds.count();
    if (waiting <= 0 || &victim == this) {
      continue;
    }
    if (waiting > 1) {
      return &victim;
    }
    const std::int64_t taken = victim.seeds.taken_count();
    if (seed_victim != &victim || seed_taken != taken) {
      seed_victim = &victim;
      seed_taken = taken;
      seed_since = cycles();
    } else if (cycles() - seed_since > team.to_cycles(kLoneSeedNs)) {
      return &victim;
    }
  }
  return nullptr;
}

std::uint64_t Worker::seed_pause() const noexcept {
  return team.to_cycles(std::min(kRefusedNsMin << std::min(seed_refusals - 1, 16U), kRefusedNsMax));
}

/// What it has looked at there was not for it.
void Worker::note_refusal(const Worker& victim) noexcept {
  ++seed_refusals;
  seeds_refused_at = cycles();
  seed_first = victim.index + 1;  // Others may have something.
}

/// How many seeds to take now: one, a large piece of work as a rule; but where what was taken last
/// was done in not much more time than a visit costs, twice as many.
std::size_t Worker::next_seed_batch() noexcept {
  const std::uint64_t now = cycles();
  seed_batch = now - seeds_stolen_at < team.to_cycles(kQuickSeedNs)
                   ? std::min<std::size_t>(2 * seed_batch, kBatchMax)
                   : std::max<std::size_t>(seed_batch / 4, 1);
  seeds_stolen_at = now;
  return seed_batch;
}

/// What this worker may run, oldest first: how many. Who has found nothing before looks at all
/// there are, and takes one that the policy might give it.
std::size_t Worker::steal_seeds(Worker& victim, std::span<Seed*> taken) noexcept {
  Dispatch* const dispatch = team.options.dispatch;
  const bool is_patient = seed_refusals != 0;
  bool has_refused = false;
  const Seed* perhaps = nullptr;
  const auto is_wanted = [&](const Seed& seed) noexcept {
    const Reach reach = seed.planter != nullptr ? dispatch->reach(*seed.planter, *this)
                        : team.options.steal    ? Reach::here
                                                : Reach::no;
    if (reach == Reach::here) {
      return true;
    }
    if (reach == Reach::perhaps && perhaps == nullptr) {
      perhaps = &seed;
    }
    if (!std::exchange(has_refused, true) && seed.planter != nullptr) {
      dispatch->wake_beside(*seed.planter, false);  // Those whom it waits for may sleep.
    }
    return false;
  };
  const std::size_t batch = is_patient ? seed_batch : next_seed_batch();
  const std::size_t count =
      victim.seeds.steal(taken.first(batch), is_patient ? SeedDeque::kClaimMax : batch, is_wanted);
  if (count == 0 && is_patient && perhaps != nullptr && victim.seeds.take_out(*perhaps)) {
    taken[0] = const_cast<Seed*>(perhaps);
    return 1;
  }
  if (count == 0 && has_refused) {
    note_refusal(victim);
  }
  return count;
}

/// Its own newest, which is joined first. False: there is no memory for a thread.
bool Worker::germinate() noexcept {
  Result<Thread*> thread = make_thread(team, this, kSeedThreadOptions);
  if (!thread) {
    return false;
  }
  Seed* const seed = seeds.pop_newest();
  if (seed != nullptr && start_seed(team, *thread.value(), *seed)) {
    return true;
  }
  if (seed != nullptr) {
    check(seeds.push(*seed), "what was in the deque fits again");
  }
  keep_slot(team, this, *thread.value());
  return false;
}

/// The last of what was taken becomes a thread, the others wait here.
bool Worker::take_seeds_of(Worker& victim) noexcept {
  Result<Thread*> thread = make_thread(team, this, kSeedThreadOptions);
  if (!thread) {
    return false;
  }
  std::array<Seed*, kBatchMax> taken;
  const std::size_t count = steal_seeds(victim, taken);
  const auto put_here = [&](Seed& seed) noexcept {
    check(seeds.push(seed), "an empty deque has room for what was stolen");
  };
  for (std::size_t i = 0; i + 1 < count; ++i) {
    put_here(*taken[i]);
  }
  if (count != 0) {
    const bool is_placed = taken[count - 1]->planter != nullptr;
    if (start_seed(team, *thread.value(), *taken[count - 1])) {
      const bool has_found = !is_placed || fetch();
      if (!has_found) {
        note_refusal(victim);  // Its policy gives us nothing.
      }
      return has_found;
    }
    put_here(*taken[count - 1]);
  }
  keep_slot(team, this, *thread.value());
  return false;
}

/// Whether Dispatch has a thread for us.
bool Worker::fetch() noexcept {
  lock.lock();
  Thread* const thread = team.options.dispatch->next(*this, nullptr);
  if (thread != nullptr) {
    queue.push_back(*thread);
  }
  lock.unlock();
  return thread != nullptr;
}

bool Worker::take_seed() noexcept {
  Worker* const owner = find_seed();
  if (owner == nullptr) {
    return false;
  }
  if (owner == this) {
    return germinate();
  }
  const bool has_found = take_seeds_of(*owner);
  if (has_found) {
    seed_refusals = 0;
  }
  return has_found;
}

}  // namespace sterna::threads
