// Notes what a rank acquires of its process. For shims; from any thread of the rank.
#pragma once

#include <cstdint>

#include "program/rank_data.h"

namespace sterna::program {

/// `format` and its arguments name the object: "file %s is open". `key` finds it again.
[[gnu::format(printf, 4, 5)]] void add_blocker(RankData& data, BlockerKind kind, std::uint64_t key,
                                               const char* format, ...) noexcept;

/// Nothing happens if there is none.
void remove_blocker(RankData& data, BlockerKind kind, std::uint64_t key) noexcept;

[[nodiscard]] inline std::uint64_t blocker_key(const void* object) noexcept {
  return reinterpret_cast<std::uint64_t>(object);
}

}  // namespace sterna::program
