// Orders to move one after another, on one worker: the node that the first one names is played here
// and answers when it is told to.
#include <gtest/gtest.h>

#include "migration/migrator.h"
#include "migration/steps.h"
#include "net/simulation/sim_cluster.h"
#include "progress/progress.h"
#include "threads/team_fixture.h"

namespace sterna::migration {
namespace {

class IdleHost final : public RankHost {
  std::string describe_blockers(memory::RankSlot&) noexcept override { return {}; }
  void for_each_image_extent(memory::RankSlot&,
                             FunctionRef<void(std::span<std::byte>)>) noexcept override {}
  Result<> prepare(std::uint32_t) noexcept override { return Done{}; }
  void arrive(memory::RankSlot&) noexcept override {}
  void handing_over(std::uint32_t, std::uint32_t, std::uint64_t) noexcept override {}
  void flushed(std::uint32_t) noexcept override {}
  void stayed(std::uint32_t, std::uint32_t, const std::string&) noexcept override {}
};

/// What a played node is asked.
struct PlayedNode {
  bool may_answer = false;
  int prepared = 0;
  int dropped = 0;

  static Result<rpc::Bytes> on_prepare(void* self, const rpc::Request&) {
    PlayedNode& node = *static_cast<PlayedNode*>(self);
    while (!node.may_answer) {
      threads::yield();
    }
    ++node.prepared;
    return rpc::Bytes{};
  }
  static Result<rpc::Bytes> on_drop(void* self, const rpc::Request&) {
    ++static_cast<PlayedNode*>(self)->dropped;
    return rpc::Bytes{};
  }
};

/// Rank 0 computes on node 0, of three.
class Orders : public testing::Test {
 protected:
  Orders() {
    for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
      rpcs.push_back(std::make_unique<rpc::Rpc>(rpc::RpcOptions{
          .transport = cluster.nodes[i].get(), .progress = progress.get(), .team = &*team}));
      if (i != 0) {
        rpcs[i]->add_service(kPrepareService, rpc::RunIn::thread, PlayedNode::on_prepare,
                             &played[i]);
        rpcs[i]->add_service(kDropService, rpc::RunIn::poll, PlayedNode::on_drop, &played[i]);
      }
    }
    migrator = std::make_unique<Migrator>(MigratorOptions{.space = &team.space(),
                                                          .team = &*team,
                                                          .transport = cluster.nodes[0].get(),
                                                          .progress = progress.get(),
                                                          .rpc = rpcs[0].get(),
                                                          .host = &host,
                                                          .residents = &residents,
                                                          .fingerprint = 7,
                                                          .fault_step = {}});
  }

  /// All below inside this.
  template <typename Function>
  void run(Function&& function) {
    team.run([&] {
      slot = team.space().map_rank(0).value();
      slot->thread = threads::self();
      residents.add(*slot);
      function();
      residents.remove(0);
      team.space().unmap_rank(0);
    });
  }
  void settle() {
    for (int turn = 0; turn < 100; ++turn) {
      threads::yield();
      cluster.settle();
    }
  }
  /// Node 1 is asked to prepare, and does not answer yet.
  void order_to_node_1() {
    ASSERT_TRUE(migrator->ask_ahead(0, 1));
    settle();
    ASSERT_EQ(request(), -1);
  }
  void let_node_1_answer() {
    played[1].may_answer = true;
    settle();
    ASSERT_EQ(played[1].prepared, 1);
  }
  [[nodiscard]] std::int32_t request() const {
    return slot->move_request.load(std::memory_order_relaxed);
  }

  threads::TestTeam team{1};
  net::SimCluster cluster{{.node_count = 3}, 3};
  std::unique_ptr<progress::Progress> progress =
      std::move(progress::Progress::open().value());
  std::vector<std::unique_ptr<rpc::Rpc>> rpcs;
  PlayedNode played[3];
  IdleHost host;
  Residents residents;
  std::unique_ptr<Migrator> migrator;
  memory::RankSlot* slot = nullptr;
};

TEST_F(Orders, TheRankIsAskedWhenItsDestinationIsPrepared) {
  run([&] {
    order_to_node_1();
    let_node_1_answer();
    EXPECT_EQ(request(), 1);
    EXPECT_EQ(played[1].dropped, 0);
  });
}

TEST_F(Orders, ALaterOneToGoAtOnceHolds) {
  run([&] {
    order_to_node_1();
    ASSERT_TRUE(migrator->ask(0, 2));
    EXPECT_EQ(request(), 2);
    let_node_1_answer();
    EXPECT_EQ(request(), 2) << "the earlier order is void";
    EXPECT_EQ(played[1].dropped, 1) << "what was prepared for it is not kept";
  });
}

TEST_F(Orders, ALaterOneToGoThereAtOnceFindsItPrepared) {
  run([&] {
    order_to_node_1();
    ASSERT_TRUE(migrator->ask(0, 1));
    EXPECT_EQ(request(), 1);
    let_node_1_answer();
    EXPECT_EQ(request(), 1);
    EXPECT_EQ(played[1].dropped, 0);
  });
}

}  // namespace
}  // namespace sterna::migration
