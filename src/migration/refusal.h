// Every reason of the runtime not to move a rank. RankSlot::refusals counts how often each was met;
// from kBlockerKindFirst on it counts what the rank holds of its process now (program/blockers.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "memory/rank_slot.h"

namespace sterna::migration {

inline constexpr std::size_t kBlockerKindFirst = 16;
/// 1: the program wants its rank to stay (sterna_set_migratable).
inline constexpr std::size_t kBlockerKindOrder = 31;

/// Whether the rank holds something that keeps it here for now. Reasons of the past do not count:
/// a node that had no memory, a file that was closed since.
[[nodiscard]] inline bool is_held(const memory::RankSlot& slot) noexcept {
  return std::any_of(std::begin(slot.refusals) + kBlockerKindFirst, std::end(slot.refusals),
                     [](const auto& count) { return count.load(std::memory_order_relaxed) != 0; });
}

enum class Refusal : std::uint8_t {
  none,
  live_exception,  // It is handling a C++ exception of the runtime's copy of the language library.
  copy_in_progress,  // A matched rendezvous reads or writes its memory at this moment.
  other_layout,      // The destination has other binaries, or the same at other addresses.
  no_memory,         // The destination cannot map the slot.
  peer_lost,         // The destination ended before it had accepted.
  held_resource,     // The rank holds a file, a thread, a mapping: program/blockers.h says which.
  unknown_node,      // There is no such node, or the rank is there already.
  refused_there,     // The destination said no for another reason.
  random_addresses,  // This process could not turn address randomisation off.
};

[[nodiscard]] constexpr std::string_view to_string(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::none:
      return "nothing";
    case Refusal::live_exception:
      return "it is handling a C++ exception inside the runtime";
    case Refusal::copy_in_progress:
      return "a large message from or to it is being copied";
    case Refusal::other_layout:
      return "the other node has different binaries, or the same ones at other addresses";
    case Refusal::no_memory:
      return "the other node has no memory for it";
    case Refusal::peer_lost:
      return "the other node has ended";
    case Refusal::held_resource:
      return "it holds a resource of its process";
    case Refusal::unknown_node:
      return "there is no such node to go to";
    case Refusal::refused_there:
      return "the other node refused it";
    case Refusal::random_addresses:
      return "this system gives every process other addresses, and does not let us change that";
  }
  return "an unknown reason";
}

}  // namespace sterna::migration
