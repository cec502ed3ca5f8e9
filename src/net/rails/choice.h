// The rail that a strategy chooses, checked: a strategy may be a user's, and a choice that cannot
// be kept to would hold up a link for ever.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "net/packets/strategy.h"

namespace sterna::net {

struct RailChoice {
  std::uint32_t rail = kNoRail;       // kNoRail: the packet waits.
  const char* broken_rule = nullptr;  // By the strategy; then it is the first rail with room.
};

/// What the strategy says where that can be kept to. It may let a packet wait for what is on its
/// way, or for a rail that its driver called full: their end asks again. Nothing else would.
[[nodiscard]] inline RailChoice checked_rail(const Strategy& strategy,
                                             std::span<const RailView> rails,
                                             std::uint32_t bytes) noexcept {
  RailChoice choice{.rail = strategy.choose_rail(rails, bytes)};
  if (choice.rail < rails.size() && rails[choice.rail].has_room) [[likely]] {
    return choice;
  }
  const auto free = std::ranges::find_if(rails, &RailView::has_room);
  if (choice.rail == kNoRail) {
    const bool is_awaited = std::ranges::any_of(rails, [](const RailView& rail) {
      return rail.in_flight_bytes != 0 || (rail.is_up && !rail.has_room);
    });
    if (free == rails.end() || is_awaited) {
      return choice;
    }
    choice.broken_rule = "it chooses a rail where all are free and nothing is on its way";
  } else if (choice.rail >= rails.size()) {
    choice.broken_rule = "a rail it chooses is one of those it is shown";
  } else if (free == rails.end()) {
    return {};  // No choice could be kept to.
  } else {
    choice.broken_rule = "a rail it chooses has room";
  }
  choice.rail = free == rails.end() ? kNoRail : static_cast<std::uint32_t>(free - rails.begin());
  return choice;
}

}  // namespace sterna::net
