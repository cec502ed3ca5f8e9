// For tests: what the models of moves have in common: messages in order, and a table of processes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "threads/model_explorer.h"

namespace sterna::migration {

/// The messages from one node to another, oldest first; plain bytes. 0 is no message.
template <int kPlaces>
struct ModelWire {
  std::uint8_t messages[kPlaces] = {};

  [[nodiscard]] bool is_empty() const { return messages[0] == 0; }
  [[nodiscard]] bool has_room() const { return messages[kPlaces - 1] == 0; }
  /// False: there is no room.
  bool send(std::uint8_t message) {
    for (std::uint8_t& place : messages) {
      if (place == 0) {
        place = message;
        return true;
      }
    }
    return false;
  }
  /// 0: there is none.
  std::uint8_t take() {
    const std::uint8_t first = messages[0];
    for (int i = 0; i + 1 < kPlaces; ++i) {
      messages[i] = messages[i + 1];
    }
    messages[kPlaces - 1] = 0;
    return first;
  }
};

/// Makes one atomic step; false if it cannot move.
template <typename State>
using ModelProcess = FunctionRef<bool(State&)>;

/// A process that happens once, at any time.
[[nodiscard]] inline bool happen_once(std::uint8_t& has_happened) {
  return has_happened++ == 0;
}

/// See threads::holds_in_all_interleavings().
template <typename State, std::size_t kCount, typename IsBad>
bool holds_for_all_orders(const State& initial, const ModelProcess<State> (&processes)[kCount],
                          IsBad is_bad, std::size_t& states) {
  return threads::holds_in_all_interleavings(
      initial, int{kCount}, [&](State& state, int process) { return processes[process](state); },
      is_bad, states);
}

}  // namespace sterna::migration
