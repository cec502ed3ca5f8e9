// The destination's half of a move against a source that is played here, step by step, on one
// worker: the order of its threads is the order in which they yield.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "migration/migrator.h"
#include "migration/steps.h"
#include "net/simulation/sim_cluster.h"
#include "threads/team_fixture.h"

namespace sterna::migration {
namespace {

constexpr std::uint64_t kFingerprint = 7;
constexpr std::size_t kRankMiB = 48;

/// Whoever looks finds it a millisecond later: what goes on for a time goes on for one step.
class SteppingClock final : public Clock {
 public:
  std::uint64_t now_ns() noexcept override { return now_ += 1'000'000; }

 private:
  std::uint64_t now_ = 0;
};

class CountingHost final : public RankHost {
 public:
  int prepared = 0;

 private:
  std::string describe_blockers(memory::RankSlot&) noexcept override { return {}; }
  void for_each_image_extent(memory::RankSlot&,
                             FunctionRef<void(std::span<std::byte>)>) noexcept override {}
  Result<> prepare(std::uint32_t) noexcept override {
    ++prepared;
    return Done{};
  }
  void arrive(memory::RankSlot&) noexcept override {}
  void handing_over(std::uint32_t, std::uint32_t, std::uint64_t) noexcept override {}
  void flushed(std::uint32_t) noexcept override {}
  void stayed(std::uint32_t, std::uint32_t, const std::string&) noexcept override {}
};

/// Node 0 has rank 0 and is played by the test; node 1 has a Migrator.
class Arrivals : public testing::Test {
 protected:
  Arrivals() {
    memory::IsoSpace& space = team.space();
    memory::RankSlot* const slot = space.map_rank(0).value();
    constexpr std::size_t kBytes = kRankMiB << 20;
    auto* const bytes = static_cast<std::byte*>(slot->user_heap->allocate(kBytes));
    std::fill(bytes, bytes + kBytes, std::byte{1});
    offer.shape = memory::shape_of(*slot);
    offer.fingerprint = kFingerprint;
    memory = FileDescriptor{::dup(space.rank_memory_fd(0))};
    space.unmap_rank(0);
    struct ::stat status {};
    check(::fstat(memory.get(), &status) == 0, "the memory has a file");
    offer.source_pid = static_cast<std::uint32_t>(::getpid());
    offer.memory_fd = memory.get();
    offer.memory_inode = status.st_ino;
    offer.memory_device = status.st_dev;
    for (const auto& node : cluster.nodes) {
      rpcs.push_back(
          std::make_unique<rpc::Rpc>(rpc::RpcOptions{.transport = node.get(), .team = &*team}));
    }
    migrator = std::make_unique<Migrator>(MigratorOptions{.space = &space,
                                                          .team = &*team,
                                                          .transport = cluster.nodes[1].get(),
                                                          .rpc = rpcs[1].get(),
                                                          .host = &host,
                                                          .residents = &residents,
                                                          .fingerprint = kFingerprint,
                                                          .fault_step = {}});
  }

  /// All of these inside team.run().
  void begin(std::string_view service, rpc::PendingCall& call) {
    rpcs[0]->start(1, service, encode(offer), call);
    cluster.settle();
  }
  void post_cancel() {
    ASSERT_TRUE(rpcs[0]->post(1, kCancelService, encode_cancel(0, offer.number)).has_value());
    cluster.settle();
  }
  void post_drop() {
    ASSERT_TRUE(rpcs[0]->post(1, kDropService, encode_rank(0)).has_value());
    cluster.settle();
  }
  /// How often the others had their turn before the answer came.
  int await(rpc::PendingCall& call) {
    int turns = 0;
    for (; !call.done.done(); ++turns) {
      threads::yield();
      cluster.settle();
    }
    return turns;
  }
  void await_nothing_mapped() {
    while (team.space().has_rank(0)) {
      threads::yield();
    }
    threads::yield();  // Who has unmapped it forgets it.
  }

  SteppingClock clock;
  threads::TestTeam team{1, {.clock = &clock}};
  net::SimCluster cluster{{.node_count = 2}, 1};
  std::vector<std::unique_ptr<rpc::Rpc>> rpcs;
  CountingHost host;
  Residents residents;
  std::unique_ptr<Migrator> migrator;
  FileDescriptor memory;
  Offer offer;
};

TEST_F(Arrivals, AnOfferThatIsTakenBackIsUnmappedInSteps) {
  team.run([&] {
    rpc::PendingCall call;
    offer.number = 1;
    begin(kOfferService, call);
    (void)await(call);
    ASSERT_TRUE(call.reply.has_value()) << call.reply.error().text;
    EXPECT_TRUE(team.space().has_rank(0));
    post_cancel();
    int turns = 0;
    for (; team.space().has_rank(0); ++turns) {
      threads::yield();
    }
    EXPECT_GE(turns, static_cast<int>(kRankMiB)) << "the others have their turns meanwhile";
    threads::yield();
  });
}

TEST_F(Arrivals, WhatWasAskedTooLongAgoIsNotBegun) {
  team.run([&] {
    for (const std::string_view service : {kPrepareService, kGiftService}) {
      offer.expires_ns = clock.now_ns();
      rpc::PendingCall call;
      begin(service, call);
      (void)await(call);
      ASSERT_FALSE(call.reply.has_value());
      EXPECT_EQ(call.reply.error().code, Errc::refused) << call.reply.error().text;
      EXPECT_EQ(host.prepared, 0) << "nothing was mapped";
      EXPECT_FALSE(team.space().has_rank(0));
    }
  });
}

// Its source has taken it back; since then it came, and ended here.
TEST_F(Arrivals, ALateGiftOfARankThatHasEndedHereIsRefused) {
  net::Transport& node = *cluster.nodes[1];
  ASSERT_TRUE(cluster.nodes[0]->begin_leave(0).has_value());
  node.expect(0);
  cluster.nodes[0]->commit_leave(0, 1);
  node.install(0, cluster.endpoints[0]);
  node.remove(0);
  team.run([&] {
    offer.expires_ns = kNever;
    offer.given = 1;  // Not what the word says.
    rpc::PendingCall call;
    begin(kGiftService, call);
    (void)await(call);
    ASSERT_FALSE(call.reply.has_value());
    EXPECT_EQ(call.reply.error().code, Errc::refused) << call.reply.error().text;
    await_nothing_mapped();
  });
}

TEST_F(Arrivals, ARankThatComesBackDoesNotWaitForTheSteps) {
  team.run([&] {
    for (const std::string_view way : {kOfferService, kPrepareService}) {
      rpc::PendingCall call;
      offer.number += 1;
      offer.expires_ns = kNever;
      begin(way, call);
      (void)await(call);
      ASSERT_TRUE(call.reply.has_value()) << call.reply.error().text;
      way == kOfferService ? post_cancel() : post_drop();
      threads::yield();  // The first step.
      offer.number += 1;
      begin(kOfferService, call);
      EXPECT_LT(await(call), static_cast<int>(kRankMiB) / 2);
      ASSERT_TRUE(call.reply.has_value()) << call.reply.error().text;
      post_cancel();
      await_nothing_mapped();
    }
  });
}

}  // namespace
}  // namespace sterna::migration
