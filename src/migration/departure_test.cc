// The source's half of a move where it does not come to an offer: the rank is held, and asks again.
#include <gtest/gtest.h>

#include "migration/migrator.h"
#include "net/simulation/sim_cluster.h"
#include "threads/team_fixture.h"

namespace sterna::migration {
namespace {

/// Asked what holds the rank, it gives it another order: as somebody else might just then.
class OrderingHost final : public RankHost {
 public:
  std::int32_t order = -1;  // -1: none.
  int stays = 0;

 private:
  std::string describe_blockers(memory::RankSlot& slot) noexcept override {
    if (order != -1) {
      slot.move_request.store(order, std::memory_order_release);
    }
    return {};
  }
  void for_each_image_extent(memory::RankSlot&,
                             FunctionRef<void(std::span<std::byte>)>) noexcept override {}
  Result<> prepare(std::uint32_t) noexcept override { return Done{}; }
  void arrive(memory::RankSlot&) noexcept override {}
  void handing_over(std::uint32_t, std::uint32_t, std::uint64_t) noexcept override {}
  void flushed(std::uint32_t) noexcept override {}
  void stayed(std::uint32_t, std::uint32_t, const std::string&) noexcept override { ++stays; }
};

/// Rank 0, on node 0 of three, waits for the rest of a large message of rank 1.
struct Held : testing::Test {
  Held() {
    for (const auto& node : cluster.nodes) {
      rpcs.push_back(
          std::make_unique<rpc::Rpc>(rpc::RpcOptions{.transport = node.get(), .team = &*team}));
    }
    migrator = std::make_unique<Migrator>(MigratorOptions{.space = &team.space(),
                                                          .team = &*team,
                                                          .transport = cluster.nodes[0].get(),
                                                          .rpc = rpcs[0].get(),
                                                          .host = &host,
                                                          .residents = &residents,
                                                          .fingerprint = 7,
                                                          .fault_step = {}});
  }

  /// What the rank is asked after it followed `to_node` at a safe point, and was held.
  std::int32_t request_after(std::uint32_t to_node) {
    std::int32_t request = -2;
    team.run([&] {
      net::Transport& node = *cluster.nodes[0];
      net::SendRequest send;
      net::RecvRequest receive;
      std::vector<std::byte> bytes(std::size_t{1} << 20);
      std::vector<std::byte> into(bytes.size());
      node.receive(*cluster.endpoints[0], receive, {1, 0, 0},
                   net::Buffer::of(into.data(), into.size()));
      cluster.nodes[1]->send(*cluster.endpoints[1], send, {0, 0, 0},
                             net::Buffer::of(bytes.data(), bytes.size()));
      while (node.begin_leave(0)) {
        node.cancel_leave(0);
        ASSERT_FALSE(receive.done.done()) << "nothing held it";
        (void)cluster.poll();
        cluster.clock.advance(1000);
      }
      memory::RankSlot* const slot = team.space().map_rank(0).value();
      migrator->move_self(*slot, to_node);
      request = slot->move_request.load(std::memory_order_relaxed);
      team.space().unmap_rank(0);
      cluster.settle();
      EXPECT_TRUE(receive.done.done() && send.done.done());
    });
    return request;
  }

  threads::TestTeam team{1};
  net::SimCluster cluster{{.node_count = 3}, 3};
  std::vector<std::unique_ptr<rpc::Rpc>> rpcs;
  OrderingHost host;
  Residents residents;
  std::unique_ptr<Migrator> migrator;
};

TEST_F(Held, ItIsAskedAgain) {
  EXPECT_EQ(request_after(1), 1);
  EXPECT_EQ(host.stays, 0);
}

TEST_F(Held, ALaterOrderHolds) {
  host.order = 2;
  EXPECT_EQ(request_after(1), 2);
}

}  // namespace
}  // namespace sterna::migration
