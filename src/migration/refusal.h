// Every reason of the runtime not to move a rank. Kinds from 16 on belong to program/ (what the rank
// holds of its process); RankSlot::refusals counts both.
#pragma once

#include <cstdint>
#include <string_view>

namespace sterna::migration {

enum class Refusal : std::uint8_t {
  none,
  live_exception,    // It is handling a C++ exception of the runtime's copy of the language library.
  copy_in_progress,  // A matched rendezvous reads or writes its memory at this moment.
  other_layout,      // The destination has other binaries, or the same at other addresses.
  no_memory,         // The destination cannot map the slot.
  peer_lost,         // The destination ended before it had accepted.
  held_resource,     // The rank holds a file, a thread, a mapping: program/blockers.h says which.
  unknown_node,      // There is no such node, or the rank is there already.
  refused_there,     // The destination said no for another reason.
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
  }
  return "an unknown reason";
}

}  // namespace sterna::migration
