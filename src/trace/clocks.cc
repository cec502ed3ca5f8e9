// One clock for all nodes, and which send belongs to which receive.
//
// Nodes of one host share CLOCK_MONOTONIC. Between hosts, a message gives a bound: it is received
// after it was sent. With messages both ways the difference of the clocks lies between the tightest
// of the bounds, and their middle is wrong by half the difference of the two shortest ways at most,
// as in NTP. Without messages both ways, what is left is the moment when all nodes had met, which
// the launcher told all of them at once.
#include <algorithm>
#include <deque>
#include <limits>
#include <tuple>

#include "trace/reader.h"

namespace sterna::trace {
namespace {

using Route = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;  // Ranks, context, tag.

Route route_of(const Event& event) {
  return {event.subject, event.value >> 40, event.extra};
}

constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

/// Of all messages from `from` to `to` (groups of nodes with one clock): the least difference.
struct Bounds {
  std::map<std::pair<std::string, std::string>, std::int64_t> least;

  [[nodiscard]] std::int64_t of(const std::string& from, const std::string& to) const {
    const auto found = least.find({from, to});
    return found == least.end() ? kNoBound : found->second;
  }
};

Bounds measure(const Timeline& timeline, const std::vector<MessagePair>& pairs) {
  std::map<std::uint32_t, std::string> host_of;
  for (const NodeInfo& node : timeline.nodes) {
    host_of[node.node] = node.boot_id;
  }
  Bounds bounds;
  for (const MessagePair& pair : pairs) {
    const Event& sent = timeline.events[pair.sent];
    const Event& received = timeline.events[pair.received];
    const std::string& from = host_of[sent.node];
    const std::string& to = host_of[received.node];
    if (from != to) {
      const auto difference = static_cast<std::int64_t>(received.ns - sent.ns);
      auto [place, is_new] = bounds.least.try_emplace({from, to}, difference);
      place->second = std::min(place->second, difference);
    }
  }
  return bounds;
}

}  // namespace

std::vector<MessagePair> pair_messages(const std::vector<Event>& events) {
  std::map<Route, std::pair<std::deque<std::size_t>, std::deque<std::size_t>>> open;
  std::vector<MessagePair> pairs;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Kind kind = events[i].kind;
    if (kind != Kind::sends && kind != Kind::receives) {
      continue;
    }
    auto& [sent, received] = open[route_of(events[i])];
    (kind == Kind::sends ? sent : received).push_back(i);
    if (!sent.empty() && !received.empty()) {
      if (events[sent.front()].value == events[received.front()].value) {
        pairs.push_back({sent.front(), received.front()});
      }
      sent.pop_front();
      received.pop_front();
    }
  }
  return pairs;
}

void align_clocks(Timeline& timeline, const std::map<std::uint32_t, std::uint64_t>& wired_up_ns) {
  const NodeInfo& first = timeline.nodes.front();
  const std::string home = first.boot_id;
  const bool is_one_host = std::ranges::all_of(
      timeline.nodes, [&](const NodeInfo& node) { return node.boot_id == home; });
  if (is_one_host) {
    return;
  }
  // By node and within a node by time, so that pairs of one route are found in order whatever the
  // clocks say: sends of a rank that moves between hosts are few, and their bytes are compared.
  std::ranges::stable_sort(timeline.events, [](const Event& a, const Event& b) {
    return std::tie(a.node, a.ns) < std::tie(b.node, b.ns);
  });
  const Bounds bounds = measure(timeline, pair_messages(timeline.events));
  const auto first_met = wired_up_ns.at(first.node);
  std::map<std::uint32_t, std::int64_t> offset_of;
  for (NodeInfo& node : timeline.nodes) {
    if (node.boot_id != home) {
      const std::int64_t to = bounds.of(home, node.boot_id);
      const std::int64_t back = bounds.of(node.boot_id, home);
      node.is_offset_from_messages = to != kNoBound && back != kNoBound;
      node.clock_offset_ns = node.is_offset_from_messages
                                 ? back / 2 - to / 2
                                 : static_cast<std::int64_t>(first_met - wired_up_ns.at(node.node));
    }
    offset_of[node.node] = node.clock_offset_ns;
  }
  // Times stay positive: everything is shifted by as much as the most negative offset.
  std::int64_t least = 0;
  for (const auto& [node, offset] : offset_of) {
    least = std::min(least, offset);
  }
  for (Event& event : timeline.events) {
    event.ns += static_cast<std::uint64_t>(offset_of[event.node] - least);
  }
}

}  // namespace sterna::trace
