// Tables of thread-specific data: made at the first set, one array per thread.
#include "threads/sync/key.h"

#include <algorithm>
#include <new>

#include "threads/life.h"
#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

constexpr int kDestructorRounds = 4;  // As PTHREAD_DESTRUCTOR_ITERATIONS.

}  // namespace

Result<Key> create_key(Team& team, void (*destructor)(void*)) noexcept {
  TeamState& state = *team.state();
  const SpinGuard guard{state.keys_lock};
  for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
    if (!state.keys[i].is_used) {
      state.keys[i] = {.is_used = true, .destructor = destructor};
      return Key{i};
    }
  }
  return Error{Errc::unsupported, "threads: all 128 keys for thread-specific data are in use"};
}

void delete_key(Team& team, Key key) noexcept {
  TeamState& state = *team.state();
  const SpinGuard guard{state.keys_lock};
  state.keys[key.index] = {};
}

void* get_specific(Key key) noexcept {
  const Thread* const me = self();
  return me != nullptr && me->keys != nullptr ? me->keys[key.index] : nullptr;
}

bool set_specific(Key key, void* value) noexcept {
  Thread* const me = self();
  if (me == nullptr) {
    return false;
  }
  if (me->keys == nullptr) {
    me->keys = new (std::nothrow) void* [kKeyCountMax] {};
  }
  if (me->keys == nullptr) {
    return false;
  }
  me->end_flags |= EndFlag::belongings;
  me->keys[key.index] = value;
  return true;
}

void end_keys(Thread& thread) noexcept {
  TeamState& state = *thread.team->state();
  bool is_clean = false;
  for (int round = 0; round < kDestructorRounds && !is_clean; ++round) {
    is_clean = true;
    for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
      void* const value = thread.keys[i];
      if (value == nullptr) {
        continue;
      }
      thread.keys[i] = nullptr;
      KeyEntry key;
      {
        const SpinGuard guard{state.keys_lock};
        key = state.keys[i];
      }
      if (key.is_used && key.destructor != nullptr) {
        is_clean = false;
        key.destructor(value);
        thread.cleanup = nullptr;  // One that it left there lay in a frame that is gone.
      }
    }
  }
  delete[] thread.keys;
  thread.keys = nullptr;
}

}  // namespace sterna::threads
