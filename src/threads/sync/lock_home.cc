// The table of homes.
#include "threads/sync/lock_home.h"

#include <array>
#include <bitset>
#include <new>

#include "base/spin_lock.h"

namespace sterna::threads {
namespace {

struct Table {
  // A: who finds a home sees it whole. Set once each.
  std::array<std::atomic<LockHome*>, LockHome::kCount> homes{};
  SpinLock lock;
  std::bitset<LockHome::kCount> is_taken;  // By a worker. Guard: lock.
};

Table& table() noexcept {
  static constinit Table the_table{};
  return the_table;
}

}  // namespace

LockHome* lock_home(std::uint32_t number) noexcept {
  std::atomic<LockHome*>& place = table().homes[number];
  LockHome* home = place.load(std::memory_order_acquire);  // A
  if (home == nullptr) {
    auto* const made = new (std::nothrow) LockHome{BiasedLock{register_process_barrier()}, number};
    if (made == nullptr || place.compare_exchange_strong(home, made, std::memory_order_acq_rel,
                                                         std::memory_order_acquire)) {  // A
      return made;
    }
    delete made;
  }
  return home;
}

LockHome* acquire_lock_home() noexcept {
  if (!register_process_barrier()) {
    return nullptr;
  }
  Table& all = table();
  std::uint32_t number = 1;
  {
    const SpinGuard guard{all.lock};
    while (number < LockHome::kCount && all.is_taken[number]) {
      ++number;
    }
    if (number == LockHome::kCount) {
      return nullptr;
    }
    all.is_taken[number] = true;
  }
  LockHome* const home = lock_home(number);
  if (home == nullptr) {
    const SpinGuard guard{all.lock};
    all.is_taken[number] = false;
  }
  return home;
}

void release_lock_home(LockHome* home) noexcept {
  if (home != nullptr) {
    Table& all = table();
    const SpinGuard guard{all.lock};
    all.is_taken[home->number] = false;
  }
}

}  // namespace sterna::threads
