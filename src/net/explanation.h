// What a node would do now with a message to another node, and why: told to whoever looks at a
// running job (`sterna info --why net PEER SIZE --job ID`).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sterna::net {

/// One figure of the cost model, as it is now.
struct LearntCost {
  std::string name;  // As in WayCosts.
  double value = 0;
  std::string origin;             // profile, cached, sampled.
  std::uint32_t corrections = 0;  // By messages, since then.
};

struct Threshold {
  std::string name;
  std::uint64_t bytes = 0;  // CostModel::kNever: never.
};

/// What one rail of a link would take of the message.
struct RailShare {
  std::string name;   // Of the driver.
  std::string state;  // As in RailReport.
  bool is_measured = false;
  std::uint64_t latency_ns = 0;
  std::uint64_t ps_per_byte = 0;
  std::uint64_t in_flight_bytes = 0;  // Of other messages, now: the share comes behind them.
  std::uint64_t bytes = 0;
  std::uint64_t ns = 0;  // Until the last of them has come.
};

struct WayExplanation {
  std::uint32_t node = 0;
  std::uint64_t bytes = 0;
  bool is_here = false;  // The peer is on the node that was asked: nothing below but `protocol`.
  bool is_lost = false;  // The node: nothing goes there any more.
  std::string driver;    // Or "link(tcp+tcp)".
  std::string strategy;
  std::string protocol;  // The sums of the cost model; in words.
  std::string forming;   // What the strategy does with what waits.
  std::string choice;    // By which rail the first packet goes; without a link empty.
  std::string copies;    // Whether its packets are copied (tell_link_copies); the same.
  std::vector<Threshold> thresholds;
  std::vector<LearntCost> costs;
  std::vector<RailShare> rails;  // Of a link.
};

/// A question about more is none.
inline constexpr std::uint64_t kExplainedBytesMax = std::uint64_t{1} << 40;

}  // namespace sterna::net
