// Tables of thread-specific data: made at the first set, a block of values at the first set there.
#include "threads/sync/key.h"

#include <memory>
#include <new>

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

/// Null: nothing was set there.
KeyValue* find_value(const KeyTable* table, std::uint32_t index) noexcept {
  KeyTable::Block* const block =
      table != nullptr ? table->blocks[index / KeyTable::kBlockValues] : nullptr;
  return block != nullptr ? &(*block)[index % KeyTable::kBlockValues] : nullptr;
}

/// The value of a thread that calls; null: no memory.
KeyValue* make_value(Thread& me, std::uint32_t index) noexcept {
  std::unique_ptr<KeyTable> table{me.keys == nullptr ? new (std::nothrow) KeyTable : nullptr};
  std::unique_ptr<KeyTable::Block> block{new (std::nothrow) KeyTable::Block};
  if (block == nullptr || (me.keys == nullptr && table == nullptr)) {
    return nullptr;
  }
  me.end_flags |= EndFlag::belongings;
  const SpinGuard guard{me.team->state()->keys_lock};
  if (table != nullptr) {
    me.keys = table.release();
  }
  me.keys->blocks[index / KeyTable::kBlockValues] = block.release();
  return find_value(me.keys, index);
}

/// One round; false: a destructor was called, which may have set values.
bool drop_values(TeamState& state, Thread& thread) noexcept {
  bool is_clean = true;
  for (std::uint32_t i = 0; i < kKeyCountMax; ++i) {
    KeyValue* const its = find_value(thread.keys, i);
    if (its == nullptr) {
      i += KeyTable::kBlockValues - 1;  // None in this block, which i is at the begin of.
      continue;
    }
    void* const value = its->value.load(std::memory_order_relaxed);
    if (value == nullptr) {
      continue;
    }
    its->value.store(nullptr, std::memory_order_relaxed);
    void (*destructor)(void*) = nullptr;
    {
      const SpinGuard guard{state.keys_lock};
      if (its->generation.load(std::memory_order_relaxed) == generation_of(state, i)) {
        destructor = state.keys[i].destructor;
      }
    }
    if (destructor != nullptr) {
      is_clean = false;
      destructor(value);
      thread.cleanup = nullptr;  // One that it left there lay in a frame that is gone.
    }
  }
  return is_clean;
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
  return Error{Errc::unsupported, "all 1024 keys for thread-specific data are in use: delete some"};
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
  const KeyValue* const its = me != nullptr ? find_value(me->keys, key.index) : nullptr;
  return its != nullptr && its->generation.load(std::memory_order_relaxed) ==
                               generation_of(*me->team->state(), key.index)
             ? its->value.load(std::memory_order_relaxed)
             : nullptr;
}

void* specific_of(const Thread& thread, Key key) noexcept {
  TeamState& state = *thread.team->state();
  const SpinGuard guard{state.keys_lock};  // Its end takes the table away inside.
  const KeyValue* const its = find_value(thread.keys, key.index);
  return its != nullptr &&
                 its->generation.load(std::memory_order_acquire) == generation_of(state, key.index)
             ? its->value.load(std::memory_order_acquire)
             : nullptr;
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
  KeyValue* its = find_value(me->keys, key.index);
  if (its == nullptr) {
    its = make_value(*me, key.index);
  }
  if (its == nullptr) {
    return false;
  }
  its->value.store(value, std::memory_order_release);
  its->generation.store(generation, std::memory_order_release);
  return true;
}

void end_keys(Thread& thread) noexcept {
  TeamState& state = *thread.team->state();
  for (int round = 0; round < kDestructorRounds && !drop_values(state, thread); ++round) {
  }
  std::unique_ptr<KeyTable> table;
  {
    const SpinGuard guard{state.keys_lock};
    table.reset(thread.keys);
    thread.keys = nullptr;
  }
  for (KeyTable::Block* const block : table->blocks) {
    delete block;
  }
}

}  // namespace sterna::threads
