// For tests: visits every interleaving of a small model of processes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace sterna::threads {

/// `State` is plain bytes without padding. Step(state, process) makes one atomic step of a process
/// and returns false if it cannot move. Visits all states that can be reached; `is_bad(state,
/// is_final)` says whether one breaks the property. Returns whether none does.
template <typename State, typename Step, typename IsBad>
bool holds_in_all_interleavings(const State& initial, int process_count, Step step, IsBad is_bad,
                                std::size_t& state_count) {
  static_assert(std::has_unique_object_representations_v<State>);
  const auto key = [](const State& state) {
    std::array<unsigned char, sizeof state> bytes;
    std::memcpy(bytes.data(), &state, sizeof state);
    return bytes;
  };
  std::set<std::array<unsigned char, sizeof initial>> seen{key(initial)};
  std::vector<State> open{initial};
  while (!open.empty()) {
    const State state = open.back();
    open.pop_back();
    bool is_final = true;
    for (int process = 0; process < process_count; ++process) {
      State next = state;
      if (step(next, process)) {
        is_final = false;
        if (seen.insert(key(next)).second) {
          open.push_back(next);
        }
      }
    }
    if (is_bad(state, is_final)) {
      state_count = seen.size();
      return false;
    }
  }
  state_count = seen.size();
  return true;
}

}  // namespace sterna::threads
