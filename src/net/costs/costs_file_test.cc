// The file of measured costs: kept, read by later jobs, and not believed where it is not sound.
#include "net/costs/costs_file.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

constexpr std::string_view kMachine = "boot 2 build";
constexpr std::uint64_t kNow = 1'000'000;

CostsEntry entry(std::string driver, std::string host, std::uint32_t latency_ns,
                 std::uint64_t at_s = kNow) {
  return {.driver = std::move(driver),
          .host = std::move(host),
          .packet_bytes_max = 1000,
          .at_s = at_s,
          .costs = {.latency_ns = latency_ns, .packet_ns = 2, .packet_ps_per_byte = 3}};
}

class CostsFile : public testing::Test {
 protected:
  CostsFile() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~CostsFile() override { EXPECT_EQ(std::system(("rm -r " + folder_).c_str()), 0); }
  std::string folder_ = "/tmp/sterna-costs-test-XXXXXX";
  std::string path_ = folder_ + "-none";

  void SetUp() override { path_ = folder_ + "/cache/sterna/costs"; }
  void write(std::string_view text) { std::ofstream{path_, std::ios::binary} << text; }
  std::vector<CostsEntry> read(std::string_view machine = kMachine, std::uint64_t now_s = kNow) {
    auto read = read_costs(path_, machine, now_s);
    return read ? read.value() : std::vector<CostsEntry>{};
  }
};

TEST_F(CostsFile, KeepsWhatJobsAddAndTheNewestOfAWay) {
  ASSERT_TRUE(add_costs(path_, kMachine, std::vector{entry("shm", "", 1)}, kNow).has_value());
  ASSERT_TRUE(add_costs(path_, kMachine, std::vector{entry("tcp", "far", 5)}, kNow).has_value());
  ASSERT_TRUE(add_costs(path_, kMachine, std::vector{entry("shm", "", 7)}, kNow).has_value());
  const std::vector<CostsEntry> all = read();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].costs, entry("shm", "", 7).costs);
  EXPECT_EQ(all[1].host, "far");
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(CostsFile, OfAnotherBootMachineOrBuildIsNotBelieved) {
  ASSERT_TRUE(add_costs(path_, kMachine, std::vector{entry("shm", "", 1)}, kNow).has_value());
  EXPECT_TRUE(read("reboot 2 build").empty());
  EXPECT_TRUE(read("boot 4 build").empty());
  EXPECT_TRUE(read("boot 2 other").empty());
  EXPECT_EQ(read().size(), 1U);
  // Whoever adds to it makes it his.
  ASSERT_TRUE(add_costs(path_, "reboot", std::vector{entry("tcp", "", 1)}, kNow).has_value());
  EXPECT_TRUE(read().empty());
  EXPECT_EQ(read("reboot").size(), 1U);
}

TEST_F(CostsFile, WaysThatAreOldOrOfTheFutureAreLeftOut) {
  const std::vector all{entry("a", "", 1, kNow - kCostsFreshSeconds),
                        entry("b", "", 1, kNow - kCostsFreshSeconds + 1),
                        entry("c", "", 1, kNow + 1)};
  ASSERT_TRUE(add_costs(path_, kMachine, all, kNow).has_value());
  const std::vector<CostsEntry> fresh = read();
  ASSERT_EQ(fresh.size(), 1U);
  EXPECT_EQ(fresh[0].driver, "b");
}

TEST_F(CostsFile, GarbageIsAsIfThereWereNone) {
  const std::string sound = encode_costs_file(std::vector{entry("shm", "", 1)}, kMachine);
  ASSERT_TRUE(add_costs(path_, kMachine, {}, kNow).has_value());
  write(sound);
  ASSERT_EQ(read().size(), 1U);
  for (std::size_t bytes = 0; bytes < sound.size(); ++bytes) {  // Torn at any place.
    write(std::string_view{sound}.substr(0, bytes));
    EXPECT_TRUE(read().empty()) << bytes;
  }
  write(sound + sound);
  EXPECT_TRUE(read().empty());
  write(std::string(kCostsFileBytesMax + 10, 'x'));
  EXPECT_TRUE(read().empty());
  write("sterna-costs 2\nmachine boot 2 build\nway shm - 1 1 0 0 0 0 0 0\nend 1\n");
  EXPECT_TRUE(read().empty()) << "figures that cannot be meant";
  write("sterna-costs 2\nmachine boot 2 build\nway shm - 1 1 -1 2 3 4 5 6\nend 1\n");
  EXPECT_TRUE(read().empty());
}

TEST_F(CostsFile, NamesThatTheFormatCannotHoldAreNotWritten) {
  const std::string text = encode_costs_file(
      std::vector{entry("tcp", "two words", 1), entry("tcp", "a\nb", 1), entry("", "c", 1),
                  entry("tcp", "-", 1), entry("tcp", "good", 1)},
      kMachine);
  auto read = decode_costs_file(text, kMachine, kNow);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read.value().size(), 1U);
  EXPECT_EQ(read.value()[0].host, "good");
}

TEST_F(CostsFile, ALinkIsNotFollowed) {
  ASSERT_TRUE(add_costs(path_, kMachine, std::vector{entry("shm", "", 1)}, kNow).has_value());
  ASSERT_EQ(::symlink(path_.c_str(), (path_ + "-link").c_str()), 0);
  EXPECT_FALSE(read_costs(path_ + "-link", kMachine, kNow).has_value());
}

TEST_F(CostsFile, WhatOneJobMeasuresTheNextBeginsWithAndDoesNotMeasure) {
  const SimOptions options{.node_count = 2,
                           .delay_ns_min = 3000,
                           .delay_ns_max = 3000,
                           .packet_ns = 200,
                           .ps_per_byte = 50,
                           .packet_bytes_max = 4096};
  const auto exchange = [](SimCluster& cluster) {
    char byte = 'x';
    SendRequest send;
    for (const auto& node : cluster.nodes) {
      node->sample_costs();
    }
    cluster.nodes[0]->send(*cluster.endpoints[0], send, {1, 1, 2}, Buffer::of(&byte, 1));
    for (int i = 0; i < 2000; ++i) {
      cluster.settle();
    }
  };
  WayCosts measured;
  {
    SimCluster first{options, 2};
    exchange(first);
    EXPECT_TRUE(first.nodes[1]->sampled_costs(kNow).empty()) << "one node of a host keeps them";
    const std::vector<CostsEntry> costs = first.nodes[0]->sampled_costs(kNow);
    ASSERT_EQ(costs.size(), 1U);
    EXPECT_EQ(costs[0].driver, "sim");
    EXPECT_EQ(costs[0].host, "");
    EXPECT_GT(first.network->packet_count(), 10U);
    measured = costs[0].costs;
    ASSERT_TRUE(add_costs(path_, kMachine, costs, kNow).has_value());
  }
  {
    SimCluster later{options, 2};
    for (const auto& node : later.nodes) {
      node->know_costs(read(), kNow + kCostsRestSeconds);
    }
    exchange(later);
    EXPECT_GT(later.network->packet_count(), 10U) << "measured again";
    EXPECT_EQ(later.nodes[0]->sampled_costs(kNow).size(), 1U);
  }
  SimCluster second{options, 2};
  for (const auto& node : second.nodes) {
    node->know_costs(read(), kNow + kCostsRestSeconds - 1);
    EXPECT_EQ(node->cost(1 - node->job().node_index).figures()[0].figure.origin,
              CostOrigin::cached);
  }
  EXPECT_EQ(second.nodes[0]->cost(1).figures()[0].figure.value, measured.latency_ns);
  exchange(second);
  EXPECT_EQ(second.network->packet_count(), 1U) << "the message alone";
  EXPECT_TRUE(second.nodes[0]->sampled_costs(kNow).empty());
}

}  // namespace
}  // namespace sterna::net
