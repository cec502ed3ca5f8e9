// The ticker that goes to rest and a worker that finds work and computes, all interleavings.
// Negative control: a ticker that asks only before it says that it rests.
#include <gtest/gtest.h>

#include "threads/model_explorer.h"

namespace sterna::threads {
namespace {

struct Node {
  std::uint8_t is_idle;     // The worker's: wants_ticks() is its opposite.
  std::uint8_t is_resting;  // Ticker::word_.
  std::uint8_t ticker_at;
  std::uint8_t worker_at;
  std::uint8_t turns_left;  // Of working, each with a time of idleness before it.
};

enum TickerAt : std::uint8_t { kTick, kAnnounce, kAsk, kAsleep };

bool step_ticker(Node& node, bool asks_again) {
  switch (node.ticker_at) {
    case kTick:
      if (node.is_idle == 0) {
        return false;  // Ticks, for ever.
      }
      node.ticker_at = kAnnounce;
      return true;
    case kAnnounce:
      node.is_resting = 1;
      node.ticker_at = asks_again ? kAsk : kAsleep;
      return true;
    case kAsk:
      if (node.is_idle == 0) {
        node.is_resting = 0;
        node.ticker_at = kTick;
      } else {
        node.ticker_at = kAsleep;
      }
      return true;
    default:
      if (node.is_resting != 0) {
        return false;
      }
      node.ticker_at = kTick;
      return true;
  }
}

bool step_worker(Node& node) {
  switch (node.worker_at) {
    case 0:  // Searches, finds.
      node.is_idle = 0;
      node.worker_at = 1;
      return true;
    case 1:  // kick()
      node.is_resting = 0;
      node.worker_at = 2;
      return true;
    default:
      if (node.turns_left == 0) {
        return false;  // Computes, for ever.
      }
      --node.turns_left;
      node.is_idle = 1;
      node.worker_at = 0;
      return true;
  }
}

bool explore(bool asks_again) {
  Node initial{};
  initial.is_idle = 1;
  initial.turns_left = 3;
  std::size_t states = 0;
  return holds_in_all_interleavings(
      initial, 2,
      [&](Node& node, int process) {
        return process == 0 ? step_ticker(node, asks_again) : step_worker(node);
      },
      [](const Node& node, bool is_final) { return is_final && node.ticker_at != kTick; }, states);
}

TEST(TickerModel, NoWorkerComputesWhileTheTickerRests) {
  EXPECT_TRUE(explore(true));
}

TEST(TickerModel, TickerThatDoesNotAskAgainIsFoundAtRest) {
  EXPECT_FALSE(explore(false));
}

}  // namespace
}  // namespace sterna::threads
