// For tests: two ranks in nodes that share memory, of which one sends, and the other computes.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "net/driver.h"
#include "net/matching/short_pair.h"
#include "net/transfer/absence.h"

namespace sterna::net {

inline constexpr std::int32_t kTag = 5;
inline constexpr std::size_t kBytes = 300'000;
inline constexpr int kPolls = 1000;

/// Rank 0 sends; the program of rank 1 is away, and nobody polls there unless a test does.
class InvitationPair : public testing::Test {
 protected:
  explicit InvitationPair(const std::vector<std::pair<const char*, const char*>>& set = {})
      : pair{set} {}
  void SetUp() override {
    pair.meet();
    if (!pair.nodes[0]->cost(1).is_direct()) {
      GTEST_SKIP() << "this system does not let a process write another one's memory";
    }
    pair.nodes[1]->absence().leave_reads(true);
    pair.nodes[1]->absence().flag()->store(AbsenceFlag::kAway);
    for (std::size_t i = 0; i < kBytes; ++i) {
      sent[i] = static_cast<std::byte>(i * 7 + 1);
    }
  }
  void post(RecvRequest& request, std::span<std::byte> into, std::int32_t tag = kTag,
            std::uint32_t source = 0) {
    request.may_be_written = true;
    pair.receive(1, request, tag, into, source);
  }
  void poll_sender() {
    for (int i = 0; i < kPolls; ++i) {
      pair.poll(0);
    }
  }
  std::uint64_t invited() { return pair.nodes[0]->statistics().messages_invited; }

  Pair pair;
  std::vector<std::byte> sent = std::vector<std::byte>(kBytes);
  std::vector<std::byte> got = std::vector<std::byte>(kBytes);
  SendRequest send;
  RecvRequest receive;
};

}  // namespace sterna::net
