// Spare carriers: who takes one, and who makes more.
//
// To make one takes memory, and so perhaps a lock of malloc, which a preempted thread may hold. So
// the ticker, without which that thread would never go on, makes none. A team that takes workers
// over has some from the start; while they are few, one of them makes others (ever more rarely
// while the system refuses them). If that one has to wait for a lock, the others still go round,
// and who holds it goes on an errand (preempt.cc).
#include <algorithm>
#include <memory>
#include <new>

#include "threads/scheduler.h"
#include "threads/wait/futex.h"

namespace sterna::threads {
namespace {

// A system that has no kernel threads left is asked again after so many ticks at most.
constexpr std::uint32_t kPauseTicksMax = 256;

/// One for each worker's next preemption, one to be taken at once, one to make others.
std::size_t wanted_spares(const TeamState& team) noexcept {
  return team.workers.size() + 2;
}

/// Its place is taken: it starts. Null: there may be no more, or no memory, or the team ends.
Carrier* make_place(TeamState& team) noexcept {
  // Before the section, and given back after it: the ticker takes that lock.
  std::unique_ptr<Carrier> made{new (std::nothrow) Carrier{team}};
  const SpinGuard guard{team.carriers_lock};
  if (team.is_stopped.load(std::memory_order_relaxed)) {
    return nullptr;
  }
  for (const auto& carrier : team.carriers) {
    if (carrier->word.load(std::memory_order_acquire) == Carrier::kFailed) {
      carrier->word.store(Carrier::kStarts, std::memory_order_relaxed);
      return carrier.get();
    }
  }
  if (made == nullptr || team.carriers.size() >= team.options.carriers_max) {
    return nullptr;
  }
  made->word.store(Carrier::kStarts, std::memory_order_relaxed);
  // The vector has the room: see Team::open.
  return team.carriers.emplace_back(std::move(made)).get();
}

/// A new spare one. False: see above, or the system has no more kernel threads.
bool make_carrier(TeamState& team) noexcept {
  Carrier* const made = make_place(team);
  if (made == nullptr) {
    return false;
  }
  if (!start_carrier(*made)) {
    const SpinGuard guard{team.carriers_lock};
    team.spare_pause = std::clamp(2 * team.spare_pause_next, 1U, kPauseTicksMax);
    team.spare_pause_next = team.spare_pause;
    made->word.store(Carrier::kFailed, std::memory_order_release);
    return false;
  }
  {
    const SpinGuard guard{team.carriers_lock};
    team.spare_pause = team.spare_pause_next = 0;
  }
  while (made->word.load(std::memory_order_acquire) == Carrier::kStarts) {
    futex_wait(made->word, Carrier::kStarts, kNever);
  }
  return true;
}

std::size_t spare_count(TeamState& team) noexcept {
  const SpinGuard guard{team.carriers_lock};
  std::size_t count = 0;
  for (const auto& carrier : team.carriers) {
    count += carrier->word.load(std::memory_order_relaxed) == Carrier::kSpare ? 1 : 0;
  }
  return count;
}

}  // namespace

Carrier* take_spare(TeamState& team) noexcept {
  const SpinGuard guard{team.carriers_lock};
  for (const auto& carrier : team.carriers) {
    if (carrier->try_reserve()) {
      return carrier.get();
    }
  }
  return nullptr;
}

Carrier* reserve_carrier(TeamState& team) noexcept {
  Carrier* spare = take_spare(team);
  // Once more, if another one was faster to take what we have made.
  while (spare == nullptr && make_carrier(team)) {
    spare = take_spare(team);
  }
  return spare;
}

void make_spares(TeamState& team, bool is_one) noexcept {
  const std::size_t wanted = wanted_spares(team) - (is_one ? 1 : 0);
  while (spare_count(team) < wanted && make_carrier(team)) {
  }
  team.is_making.store(0, std::memory_order_release);
  futex_wake(&team.is_making, 1);
}

void ask_for_spares(TeamState& team) noexcept {
  const SpinGuard guard{team.carriers_lock};
  if (team.spare_pause != 0) {
    --team.spare_pause;
    return;
  }
  std::size_t count = 0;
  Carrier* maker = nullptr;
  bool has_room = team.carriers.size() < team.options.carriers_max;
  for (const auto& carrier : team.carriers) {
    const std::uint32_t state = carrier->word.load(std::memory_order_relaxed);
    has_room = has_room || state == Carrier::kFailed;
    if (state == Carrier::kSpare) {
      ++count;
      maker = carrier.get();
    }
  }
  if (maker == nullptr || !has_room || count >= wanted_spares(team) ||
      team.is_making.load(std::memory_order_relaxed) != 0) {
    return;
  }
  team.is_making.store(1, std::memory_order_relaxed);
  if (std::uint32_t spare = Carrier::kSpare; maker->word.compare_exchange_strong(
          spare, Carrier::kMakes, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    futex_wake(&maker->word, 1);
  } else {
    team.is_making.store(0, std::memory_order_relaxed);
  }
}

}  // namespace sterna::threads
