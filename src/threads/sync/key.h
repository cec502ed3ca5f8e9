// Thread-specific data of user threads: a value per thread and key. The values of a thread lie in
// blocks that its first sets make, so that few keys cost little, and none nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/result.h"

namespace sterna::threads {

class Team;
struct Thread;

inline constexpr std::uint32_t kKeyCountMax = 1024;

/// Of one Team. A value; create_key() makes it.
struct Key {
  std::uint32_t index = 0;
};

/// A thread's value for the key with its index. Written by the thread, the value before the
/// generation (release); others read the generation first (acquire), so that what they find for the
/// generation that the key has is a value of that key, and what it points to is there.
struct KeyValue {
  std::atomic<void*> value{nullptr};
  std::atomic<std::uint32_t> generation{0};  // Of the key when it was set: another one: no value.
};

/// The values of a thread. Written by the thread under TeamState::keys_lock, read by it without, by
/// others with that lock.
struct KeyTable {
  static constexpr std::uint32_t kBlockValues = 32;
  using Block = std::array<KeyValue, kBlockValues>;
  std::array<Block*, kKeyCountMax / kBlockValues> blocks{};
};

/// `destructor` (may be null) runs on the thread, at its end, for a value that is not null; in up
/// to four rounds, since destructors may set values. unsupported: all kKeyCountMax keys are in use.
Result<Key> create_key(Team& team, void (*destructor)(void*)) noexcept;
/// Values are dropped, destructors not called.
void delete_key(Team& team, Key key) noexcept;

/// It was created, and not deleted.
[[nodiscard]] bool is_key(Team& team, Key key) noexcept;

/// Of the current user thread; null where set was never called, and on kernel threads.
[[nodiscard]] void* get_specific(Key key) noexcept;
/// Of any thread that has not ended, at this moment. From anywhere.
[[nodiscard]] void* specific_of(const Thread& thread, Key key) noexcept;
/// False: no memory, no such key, or not a user thread.
[[nodiscard]] bool set_specific(Key key, void* value) noexcept;

}  // namespace sterna::threads
