// Kernel threads that send, receive and poll at the same time. Made for ThreadSanitizer; without
// it, it still counts messages and checks their order.
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr int kMessages = 3000;

/// One rank's life: to each message of its partner it answers with one of its own.
void play(SimCluster& cluster, std::uint32_t rank, std::uint32_t partner, std::uint64_t bytes,
          std::atomic<int>& wrong) {
  std::vector<std::uint64_t> out(bytes / 8);
  std::vector<std::uint64_t> in(bytes / 8);
  Transport& node = cluster.node_of(rank);
  for (int i = 0; i < kMessages; ++i) {
    SendRequest send;
    RecvRequest receive;
    out[0] = static_cast<std::uint64_t>(i);
    node.receive(*cluster.endpoints[rank], receive, {partner, 0, 0}, Buffer::of(in.data(), bytes));
    node.send(*cluster.endpoints[rank], send, {partner, 0, 0}, Buffer::of(out.data(), bytes));
    while (!receive.done.done() || !send.done.done()) {
      std::this_thread::yield();
    }
    wrong += in[0] == static_cast<std::uint64_t>(i) ? 0 : 1;
  }
}

class Races : public testing::TestWithParam<std::uint64_t> {};  // Bytes of a message.

TEST_P(Races, RanksOnSeveralThreadsKeepTheirOrder) {
  // Ranks 0, 2, 4 on node 0 and 1, 3, 5 on node 1; 4 and 0 talk within the node, as 5 and 1 would.
  SimCluster cluster{{.node_count = 2, .has_direct = true, .channel_packets_max = 4}, 6};
  std::atomic<int> wrong{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> pollers;
  for (std::uint32_t node = 0; node < 2; ++node) {
    pollers.emplace_back([&cluster, &is_over, node] {
      while (!is_over) {
        cluster.nodes[node]->poll();
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> ranks;
  for (const auto& [rank, partner] :
       {std::pair{0U, 1U}, {1U, 0U}, {2U, 4U}, {4U, 2U}, {3U, 5U}, {5U, 3U}}) {
    ranks.emplace_back([&cluster, &wrong, rank = rank, partner = partner] {
      play(cluster, rank, partner, GetParam(), wrong);
    });
  }
  for (std::thread& thread : ranks) {
    thread.join();
  }
  is_over = true;
  for (std::thread& thread : pollers) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}
INSTANTIATE_TEST_SUITE_P(Bytes, Races, testing::Values(8, 6000, 40'000));

}  // namespace
}  // namespace sterna::net
