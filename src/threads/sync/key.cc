// Tables of thread-specific data: made at the first set, one array per thread.
#include "threads/sync/key.h"

#include <algorithm>
#include <new>
#include <utility>

#include "threads/life/life.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

constexpr int kDestructorRounds = 4;  // As PTHREAD_DESTRUCTOR_ITERATIONS.

std::uint32_t generation_of(const TeamState& team, std::uint32_t index) noexcept {
  return team.keys[index].generation.load(std::memory_order_relaxed);
}

bool is_used(std::uint32_t generation) noexcept {
  return generation % 2 != 0;
}

}  // namespace

Result<Key> create_key(Team& team, void (*destructor)(void*)) noexcept {
  TeamState& state = *team.state();
  const SpinGuard guard{state.keys_lock};
  for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
    if (KeyEntry& key = state.keys[i]; !is_used(generation_of(state, i))) {
      key.destructor = destructor;
      key.generation.store(generation_of(state, i) + 1, std::memory_order_relaxed);
      return Key{i};
    }
  }
  return Error{Errc::unsupported, "threads: all 128 keys for thread-specific data are in use"};
}

void delete_key(Team& team, Key key) noexcept {
  TeamState& state = *team.state();
  const SpinGuard guard{state.keys_lock};
  if (const std::uint32_t generation = generation_of(state, key.index); is_used(generation)) {
    // The values that threads have are those of an earlier key from now on.
    state.keys[key.index].generation.store(generation + 1, std::memory_order_relaxed);
    state.keys[key.index].destructor = nullptr;
  }
}

bool is_key(Team& team, Key key) noexcept {
  return key.index < kKeyCountMax && is_used(generation_of(*team.state(), key.index));
}

void* get_specific(Key key) noexcept {
  const Thread* const me = self();
  if (me == nullptr || me->keys == nullptr) {
    return nullptr;
  }
  const KeyValue& its = me->keys[key.index];
  return its.generation == generation_of(*me->team->state(), key.index) ? its.value : nullptr;
}

bool set_specific(Key key, void* value) noexcept {
  Thread* const me = self();
  if (me == nullptr) {
    return false;
  }
  const std::uint32_t generation = generation_of(*me->team->state(), key.index);
  if (!is_used(generation)) {
    return false;
  }
  if (me->keys == nullptr) {
    me->keys = new (std::nothrow) KeyValue[kKeyCountMax];
  }
  if (me->keys == nullptr) {
    return false;
  }
  me->end_flags |= EndFlag::belongings;
  me->keys[key.index] = {.value = value, .generation = generation};
  return true;
}

void end_keys(Thread& thread) noexcept {
  TeamState& state = *thread.team->state();
  bool is_clean = false;
  for (int round = 0; round < kDestructorRounds && !is_clean; ++round) {
    is_clean = true;
    for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
      const KeyValue its = std::exchange(thread.keys[i], {});
      if (its.value == nullptr) {
        continue;
      }
      void (*destructor)(void*) = nullptr;
      {
        const SpinGuard guard{state.keys_lock};
        if (its.generation == generation_of(state, i)) {
          destructor = state.keys[i].destructor;
        }
      }
      if (destructor != nullptr) {
        is_clean = false;
        destructor(its.value);
        thread.cleanup = nullptr;  // One that it left there lay in a frame that is gone.
      }
    }
  }
  delete[] thread.keys;
  thread.keys = nullptr;
}

}  // namespace sterna::threads
