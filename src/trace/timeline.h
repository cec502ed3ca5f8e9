// A trace that was read: all events of all nodes in one order, on one clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/trace_format.h"

namespace sterna::trace {

struct Event {
  std::uint64_t ns = 0;  // Since the first event of the trace.
  std::uint64_t subject = 0;
  std::uint64_t value = 0;
  std::uint32_t extra = 0;
  std::uint32_t node = 0;
  std::uint16_t worker = kNoWorker;
  Kind kind = Kind::none;
};

struct NodeInfo {
  std::uint32_t node = 0;
  std::uint32_t pid = 0;
  std::uint32_t worker_count = 0;
  std::string host;
  std::string boot_id;
  std::int64_t clock_offset_ns = 0;  // What was added to its clock.
  bool is_offset_from_messages = false;
  std::uint64_t events = 0;
  std::uint64_t broken_records = 0;  // Begun and not ended, or of no known kind.
  bool is_cut_short = false;         // There was no room for all of its records.
};

/// Threads of different nodes may have one key: (node, key). Ranks, functions have node 0.
using NameKey = std::pair<std::uint32_t, std::uint64_t>;
[[nodiscard]] inline NameKey name_key(std::uint32_t node, std::uint64_t key) noexcept {
  const KeyClass its = class_of(key);
  return {its == KeyClass::rank || its == KeyClass::function ? 0 : node, key};
}

struct Timeline {
  std::vector<NodeInfo> nodes;           // In the order of their numbers.
  std::vector<Event> events;             // By time; of each kernel thread in its order.
  std::map<NameKey, std::string> names;  // As told.
  std::uint32_t rank_count = 0;
  std::uint64_t begin_ns = 0;  // CLOCK_MONOTONIC of the first node at the first event.

  /// Never empty: "rank 3", "MPI_Send", "thread 17".
  [[nodiscard]] std::string name_of(std::uint32_t node, std::uint64_t key) const;
  [[nodiscard]] std::uint64_t duration_ns() const noexcept {
    return events.empty() ? 0 : events.back().ns;
  }
};

/// A message: two places in Timeline::events.
struct MessagePair {
  std::size_t sent = 0;
  std::size_t received = 0;
};

/// The n-th message of one source, destination, context and tag met the n-th receive of it. Those
/// whose bytes differ are left out: something between them was not recorded.
[[nodiscard]] std::vector<MessagePair> pair_messages(const std::vector<Event>& events);

}  // namespace sterna::trace
