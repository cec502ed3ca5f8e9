// What happened in many simulated histories: a checker that never had anything to check is none.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sterna::net::simulation {

struct Tally {
  std::uint64_t messages = 0;
  std::uint64_t moves = 0;
  std::uint64_t lost_nodes = 0;
  std::uint64_t broken_wires = 0;
  std::uint64_t sent_again = 0;       // Packets, by links.
  std::uint64_t cancelled_sends = 0;  // Which ended so.
  std::uint64_t urgent = 0;           // Messages with a priority.
  std::uint64_t short_receives = 0;   // By the short way.
  std::uint64_t probed = 0;           // Messages seen by a probe.
  std::uint64_t near_bounds = 0;      // Histories in which a window was three quarters full.
  std::uint64_t kept_most = 0;        // Messages that one rank kept for others.
  std::uint64_t kept_histories = 0;   // In which any was kept.
  std::uint64_t lent = 0;             // Parts of messages that were read where they lay.
  std::uint64_t lent_twice = 0;       // Bytes of them that also came in frames.

  [[nodiscard]] std::string text(std::uint64_t histories) const {
    return fmt::format(
        "{} histories: {} messages, {} with a priority, {} sends taken back, {} received the short "
        "way, {} probed; {} moves, {} nodes lost, {} wires broken, {} packets sent again; {} times "
        "a window was nearly full; in {} one kept messages for others, {} at most; "
        "{} parts lent, {} bytes of them came twice",
        histories, messages, urgent, cancelled_sends, short_receives, probed, moves, lost_nodes,
        broken_wires, sent_again, near_bounds, kept_histories, kept_most, lent, lent_twice);
  }
  void expect_all() const {
    EXPECT_GT(moves, 100U);
    EXPECT_GT(lost_nodes, 2U);
    EXPECT_GT(broken_wires, 100U);
    EXPECT_GT(sent_again, 100U);
    EXPECT_GT(cancelled_sends, 50U);
    EXPECT_GT(urgent, 500U);
    EXPECT_GT(probed, 100U);
    EXPECT_GT(short_receives, 20U);
    EXPECT_GT(near_bounds, 10U) << "the bounds were never near";
    EXPECT_GT(lent, 500U);
    EXPECT_GT(lent_twice, 0U) << "no rail was lost behind what it had brought";
    EXPECT_GT(kept_histories, 10U) << "the windows were never full";
  }
};

}  // namespace sterna::net::simulation
