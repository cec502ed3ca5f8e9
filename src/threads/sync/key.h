// Thread-specific data of user threads: a value per thread and key.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace sterna::threads {

class Team;

inline constexpr std::uint32_t kKeyCountMax = 128;

/// Of one Team. A value; create_key() makes it.
struct Key {
  std::uint32_t index = 0;
};

/// A thread's value for the key with its index.
struct KeyValue {
  void* value = nullptr;
  std::uint32_t generation = 0;  // Of the key when it was set: another one later: there is none.
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
/// False: no memory, no such key, or not a user thread.
[[nodiscard]] bool set_specific(Key key, void* value) noexcept;

}  // namespace sterna::threads
