// Addresses for stacks from node 0, between the nodes of a simulated network on one kernel thread:
// what is needed inside a poll must be there, or come later; who waited there would wait forever.
#include "runtime/leases.h"

#include <set>

#include <gtest/gtest.h>

#include "net/simulation/sim_cluster.h"
#include "threads/team.h"

namespace sterna::runtime {
namespace {

#ifdef STERNA_SANITIZED
constexpr std::uint32_t kServiceClass = 5;  // The stacks of instrumented code are larger.
#else
constexpr std::uint32_t kServiceClass = 2;
#endif
constexpr std::size_t kServiceSlotBytes = memory::stack_slot_bytes(kServiceClass);
// So many nodes that a range has one slot of the class of service threads, or two of the next.
constexpr std::uint32_t kNodes = memory::kClassAreaBytes / 4 / kServiceSlotBytes;

class Ahead : public testing::Test {
 protected:
  Ahead() {
    for (std::uint32_t node = 0; node < 2; ++node) {
      leases.push_back(std::make_unique<Leases>(node, kNodes));
      auto opened = memory::IsoSpace::open({.node_index = node,
                                            .node_count = kNodes,
                                            .rank_count = 64,
                                            .leases = leases.back().get()});
      check(opened.has_value(), "a space opens");
      spaces.push_back(std::move(opened.value()));
      auto team = threads::Team::open({.main_is_worker = true, .iso_space = spaces.back().get()});
      check(team.has_value(), "a team opens");
      teams.push_back(std::move(team.value()));
      rpcs.push_back(std::make_unique<rpc::Rpc>(
          rpc::RpcOptions{.transport = cluster.nodes[node].get(), .team = teams.back().get()}));
      leases.back()->connect(*rpcs.back(), *spaces.back());
      rpcs.back()->add_service("take", rpc::RunIn::poll, take, this);
      rpcs.back()->add_service("work", rpc::RunIn::thread, work, this);
    }
  }

  // Inside the poll of node 1.
  static Result<rpc::Bytes> take(void* self, const rpc::Request&) {
    auto& test = *static_cast<Ahead*>(self);
    Result<memory::StackSlot> slot =
        test.spaces[1]->acquire_stack(kServiceSlotBytes / 4 * 3, false);
    if (!slot) {
      ++test.put_off;
      EXPECT_EQ(slot.error().code, Errc::timed_out);
      return slot.error();
    }
    EXPECT_TRUE(test.bases.insert(slot.value().base).second);
    return rpc::Bytes{};
  }
  static Result<rpc::Bytes> work(void* self, const rpc::Request&) {
    auto& test = *static_cast<Ahead*>(self);
    if (++test.worked == test.work_count) {
      test.teams[1]->stop();
    }
    return rpc::Bytes{};
  }

  int put_off = 0;
  int worked = 0;
  int work_count = 0;
  std::set<std::uintptr_t> bases;
  net::SimCluster cluster{{.node_count = 2, .delay_ns_max = 3000}, 2};
  std::vector<std::unique_ptr<Leases>> leases;
  std::vector<std::unique_ptr<memory::IsoSpace>> spaces;
  std::vector<std::unique_ptr<threads::Team>> teams;
  std::vector<std::unique_ptr<rpc::Rpc>> rpcs;
};

TEST_F(Ahead, APollThatNeedsAStackNowAndThenFindsOne) {
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(rpcs[0]->post(1, "take", {}));
    cluster.settle();
  }
  EXPECT_EQ(put_off, 0);
  EXPECT_EQ(bases.size(), 8U);
}

TEST_F(Ahead, APollThatNeedsMoreThanThereIsDoesNotWait) {
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(rpcs[0]->post(1, "take", {}));
  }
  cluster.settle();
  EXPECT_GT(put_off, 0);
  EXPECT_EQ(bases.size() + put_off, 8U);
  put_off = 0;
  ASSERT_TRUE(rpcs[0]->post(1, "take", {}));
  cluster.settle();
  EXPECT_EQ(put_off, 0);
}

TEST_F(Ahead, WhenAllAreTakenWhoNeedsOneIsToldInsteadOfAskingForEver) {
  spaces[1]->add_range(kServiceClass, 8 * kNodes);  // The answer of a node 0 that has none left.
  for (int i = 0; i < 3; ++i) {
    if (auto slot = spaces[1]->acquire_stack(kServiceSlotBytes / 4 * 3, false); !slot) {
      EXPECT_EQ(slot.error().code, Errc::out_of_memory);
      return;
    }
  }
  ADD_FAILURE() << "a range has more than three slots";
}

TEST_F(Ahead, RequestsWithoutAStackAreServedWhenTheAddressesHaveCome) {
  work_count = 12;
  std::vector<std::unique_ptr<rpc::PendingCall>> calls;
  for (int i = 0; i < work_count; ++i) {
    calls.push_back(std::make_unique<rpc::PendingCall>());
    rpcs[0]->start(1, "work", {}, *calls.back());
  }
  cluster.settle();
  teams[1]->run();
  cluster.settle();
  EXPECT_EQ(worked, work_count);
  for (const auto& call : calls) {
    ASSERT_TRUE(call->done.done());
    EXPECT_TRUE(call->reply.has_value());
  }
}

TEST_F(Ahead, RequestsWithoutAStackEndWithAnErrorWhenNodeZeroIsLost) {
  work_count = 1;
  for (int i = 0; i < 3; ++i) {
    rpc::PendingCall itself;
    rpcs[1]->start(1, "work", {}, itself);
    for (int round = 0; round < 3; ++round) {
      cluster.nodes[1]->poll();  // Node 0 never answers.
    }
    if (i == 0) {
      EXPECT_FALSE(itself.done.done());  // It has the first stack, and runs later.
      teams[1]->run();
      EXPECT_EQ(worked, 1);
    }
    leases[1]->lose_peer(0);
    rpcs[1]->lose_peer(0);
    for (int round = 0; round < 3; ++round) {
      cluster.nodes[1]->poll();
    }
    EXPECT_TRUE(itself.done.done());
  }
}

}  // namespace
}  // namespace sterna::runtime
