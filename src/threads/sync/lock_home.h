// Where mutexes are at home (sync/mutex.h): one home for each worker, with the lock by which the
// threads of that worker, and nobody else, change the words of mutexes that are biased to it.
//
// A home is a number, and lives as long as the process: a word that names it may lie in a mutex
// that outlives the team, or that came from another node as bytes. When a worker ends, the next one
// may get its home: then what was biased to the old one is biased to the new one, which is as good,
// since all that a bias says is by which lock its word is changed.
#pragma once

#include <cstdint>

#include "threads/carriers/border.h"
#include "threads/queues/biased_lock.h"

namespace sterna::threads {

struct LockHome {
  BiasedLock lock;  // Its owner: the worker that has the home.
  const std::uint32_t number;

  static constexpr std::uint32_t kCount = 4096;  // Numbers are from 1 to kCount - 1.
};

/// For a worker. Null: none is left, or locks that are biased cost as much as others here.
[[nodiscard]] LockHome* acquire_lock_home() noexcept;
/// Its worker has ended. Null: nothing.
void release_lock_home(LockHome* home) noexcept;
/// From 1 to kCount - 1. Null: there is no memory.
[[nodiscard]] LockHome* lock_home(std::uint32_t number) noexcept;

/// That of the worker that runs `me`, the current user thread.
[[nodiscard]] inline LockHome* home_of(const Thread& me) noexcept {
  return border_of(*me.worker.load(std::memory_order_relaxed)).lock_home;
}

}  // namespace sterna::threads
