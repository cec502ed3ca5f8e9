// Balance points: actors of three nodes in one process, on one worker; the ranks are threads that
// call the actor of the node on which they are taken to be.
#include "balance/actor.h"

#include <vector>

#include <gtest/gtest.h>

#include "balance/report.h"
#include "balance/services.h"
#include "memory/rank_slot.h"
#include "net/simulation/sim_cluster.h"
#include "progress/progress.h"
#include "threads/team_fixture.h"

namespace sterna::balance {
namespace {

constexpr std::uint32_t kNodes = 3;
constexpr std::uint64_t kLongNs = 3600'000'000'000;  // No decision but at points.

class Points : public testing::Test {
 protected:
  /// Of one call of a rank.
  struct Call {
    Actor& actor;
    memory::RankSlot& slot;
    bool has_returned = false;
    threads::Thread* thread = nullptr;

    void operator()() {
      actor.point(slot);
      has_returned = true;
    }
  };

  Points() {
    for (const auto& node : cluster.nodes) {
      rpcs.push_back(std::make_unique<rpc::Rpc>(rpc::RpcOptions{
          .transport = node.get(), .progress = progress.get(), .team = &*team}));
      actors.push_back(
          std::make_unique<Actor>(ActorOptions{.policy = choose_policy("refine").value(),
                                               .interval_ns = kLongNs,
                                               .transport = node.get(),
                                               .progress = progress.get(),
                                               .rpc = rpcs.back().get(),
                                               .team = &*team,
                                               .residents = &residents}));
    }
    for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
      slots[rank].rank = rank;
    }
  }

  /// All below inside this.
  template <typename Function>
  void run(Function&& function) {
    team.run([&] {
      check(actors[0]->start().has_value(), "the decider starts");
      function();
      actors[0]->stop();
      settle();
    });
  }
  void settle() {
    for (int turn = 0; turn < 100; ++turn) {
      threads::yield();
      cluster.settle();
    }
  }
  void call(Call& point) {
    point.thread = team.go(point);
    settle();
  }
  void post_release(std::uint32_t node, std::uint64_t number) {
    ASSERT_TRUE(rpcs[0]->post(node, kReleaseService, encode_release(number)).has_value());
    settle();
  }
  void lose(std::uint32_t node) {
    for (std::uint32_t other = 0; other < kNodes; ++other) {
      if (other != node) {
        rpcs[other]->lose_peer(node);
        cluster.nodes[other]->lose_peer(node, "killed");
      }
    }
    settle();
  }
  static void expect_over(std::initializer_list<Call*> calls) {
    for (Call* const call : calls) {
      EXPECT_TRUE(call->has_returned) << "rank " << call->slot.rank;
      if (call->has_returned) {
        threads::join(*call->thread);
      }
    }
  }

  threads::TestTeam team{1};
  net::SimCluster cluster{{.node_count = kNodes}, kNodes};
  std::unique_ptr<progress::Progress> progress =
      std::move(progress::Progress::open().value());
  std::vector<std::unique_ptr<rpc::Rpc>> rpcs;
  migration::Residents residents;
  std::vector<std::unique_ptr<Actor>> actors;
  memory::RankSlot slots[kNodes];  // Only their numbers count.
};

TEST_F(Points, NobodyLeavesOneBeforeAllHaveCalledIt) {
  run([&] {
    for (int point = 0; point < 3; ++point) {
      Call first{*actors[0], slots[0]};
      Call second{*actors[1], slots[1]};
      Call third{*actors[2], slots[2]};
      call(first);
      call(second);
      EXPECT_FALSE(first.has_returned || second.has_returned);
      call(third);
      expect_over({&first, &second, &third});
    }
  });
}

// It was let go at the one node, has moved, and is at the next point when that node hears, late, of
// the end of the one before.
TEST_F(Points, TheReleaseOfThePointBeforeLetsNobodyGo) {
  run([&] {
    Call first{*actors[0], slots[0]};
    Call second{*actors[1], slots[1]};
    Call third{*actors[1], slots[2]};
    call(first);
    call(second);
    call(third);
    expect_over({&first, &second, &third});

    Call early{*actors[2], slots[1]};
    call(early);
    post_release(2, 0);  // Nobody had come to the first point there.
    EXPECT_FALSE(early.has_returned) << "the others have not called this point";
    Call late{*actors[0], slots[0]};
    Call last{*actors[1], slots[2]};
    call(late);
    EXPECT_FALSE(early.has_returned || late.has_returned);
    call(last);
    expect_over({&early, &late, &last});
  });
}

TEST_F(Points, NobodyWaitsForARankThatHasEnded) {
  run([&] {
    Call first{*actors[0], slots[0]};
    Call second{*actors[1], slots[1]};
    call(first);
    actors[2]->rank_ended(2);
    settle();
    EXPECT_FALSE(first.has_returned);
    call(second);
    expect_over({&first, &second});
  });
}

TEST_F(Points, NobodyWaitsForRanksOfALostNode) {
  run([&] {
    Call first{*actors[0], slots[0]};
    Call second{*actors[1], slots[1]};
    call(first);
    call(second);
    EXPECT_FALSE(first.has_returned || second.has_returned);
    lose(2);
    expect_over({&first, &second});

    Call again{*actors[0], slots[0]};
    Call too{*actors[1], slots[1]};
    call(again);
    EXPECT_FALSE(again.has_returned);
    call(too);
    expect_over({&again, &too});
  });
}

TEST_F(Points, WithoutTheNodeThatDecidesTheyAreOver) {
  run([&] {
    Call first{*actors[1], slots[1]};
    call(first);
    EXPECT_FALSE(first.has_returned);
    lose(0);
    Call second{*actors[1], slots[1]};
    call(second);
    expect_over({&first, &second});
  });
}

}  // namespace
}  // namespace sterna::balance
