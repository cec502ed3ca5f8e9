// What `sterna doctor` makes of facts, and that it can read those of this machine.
#include "launch/doctor.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sterna::launch {
namespace {

MachineFacts good() {
  MachineFacts facts;
  facts.shm_bytes_total = std::uint64_t{8} << 30;
  facts.shm_bytes_free = std::uint64_t{4} << 30;
  facts.huge_pages = "madvise";
  facts.ptrace_scope = 0;
  facts.sibling_read_error = 0;
  facts.online = 8;
  facts.allowed = 8;
  facts.map_count_max = 65'530;
  facts.overcommit = 0;
  return facts;
}

/// The verdict about something; good if nothing is said.
Verdict about(const MachineFacts& facts, const std::string& what, std::string* text = nullptr) {
  for (const Finding& one : judge(facts, "sterna 1")) {
    if (one.about == what) {
      if (text != nullptr) {
        *text = one.text;
      }
      return one.verdict;
    }
  }
  return Verdict::good;
}

class Quotas : public testing::Test {
 protected:
  Quotas() : root_{testing::TempDir() + "/sterna-quotas-" + std::to_string(::getpid())} {}
  ~Quotas() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
    std::ofstream{root_ + path} << text << "\n";
  }
  std::optional<double> smallest(const std::string& groups) {
    return smallest_quota(root_, groups);
  }
  const std::string root_;
};

TEST_F(Quotas, TheLeastOnTheWayToTheRootCounts) {
  EXPECT_FALSE(smallest("0::/job/step\n"));
  EXPECT_FALSE(smallest(""));
  EXPECT_FALSE(smallest("no groups\n"));
  write("/job/step/cpu.max", "max 100000");
  EXPECT_FALSE(smallest("0::/job/step\n"));
  write("/job/cpu.max", "150000 100000");
  EXPECT_EQ(smallest("0::/job/step\n"), 1.5);
  write("/job/step/cpu.max", "400000 100000");
  EXPECT_EQ(smallest("0::/job/step\n"), 1.5);
  write("/job/step/cpu.max", "50000 100000");
  EXPECT_EQ(smallest("0::/job/step\n"), 0.5);
  EXPECT_FALSE(smallest("0::/other\n"));
  write("/cpu.max", "25000 100000");
  EXPECT_EQ(smallest("0::/other\n"), 0.25);
}

TEST_F(Quotas, TheFirstVersionHasFilesOfItsOwn) {
  write("/cpu,cpuacct/a/cpu.cfs_quota_us", "300000");
  write("/cpu,cpuacct/a/cpu.cfs_period_us", "100000");
  write("/cpu,cpuacct/cpu.cfs_quota_us", "-1");
  write("/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(smallest("5:cpuset:/a\n4:cpu,cpuacct:/a/b\n0::/\n"), 3.0);
  EXPECT_FALSE(smallest("5:cpuset:/a\n"));
}

TEST(Doctor, AGoodMachineIsGood) {
  for (const Finding& one : judge(good(), "sterna 1")) {
    EXPECT_EQ(one.verdict, Verdict::good) << one.about << ": " << one.text;
  }
}

TEST(Doctor, TellsWhatIsWrongAndWhatToDo) {
  MachineFacts facts = good();
  std::string text;
  facts.shm_bytes_free = 100;
  EXPECT_EQ(about(facts, "shared memory", &text), Verdict::bad);
  EXPECT_NE(text.find("remount"), std::string::npos);
  facts.shm_bytes_free.reset();
  EXPECT_EQ(about(facts, "shared memory"), Verdict::bad);
  facts.huge_pages = "never";
  EXPECT_EQ(about(facts, "huge pages"), Verdict::notable);
  facts.sibling_read_error = EPERM;
  EXPECT_EQ(about(facts, "direct copies", &text), Verdict::notable);
  EXPECT_NE(text.find("SYS_PTRACE"), std::string::npos);
  facts.ptrace_scope = 1;
  EXPECT_EQ(about(facts, "direct copies", &text), Verdict::notable);
  EXPECT_NE(text.find("ptrace_scope=0"), std::string::npos);
  facts.sibling_read_error.reset();
  EXPECT_EQ(about(facts, "processes", &text), Verdict::bad);
  EXPECT_NE(text.find("ulimit -u"), std::string::npos);
  facts.allowed = 2;
  facts.quota = 1.5;
  EXPECT_EQ(about(facts, "processors", &text), Verdict::good);
  EXPECT_NE(text.find("2 of 8"), std::string::npos);
  EXPECT_EQ(about(facts, "processor time", &text), Verdict::notable);
  facts.quota = 2;
  EXPECT_EQ(about(facts, "processor time"), Verdict::good);
  facts.address_limit = std::uint64_t{1} << 30;
  EXPECT_EQ(about(facts, "addresses"), Verdict::bad);
  facts.file_limit = 100;
  EXPECT_EQ(about(facts, "files"), Verdict::notable);
  facts.overcommit = 2;
  EXPECT_EQ(about(facts, "overcommit"), Verdict::notable);
}

TEST(Doctor, HostsAnswerWithThisVersion) {
  MachineFacts facts = good();
  facts.hosts = {
      {"a", "", "sterna 1"}, {"b", "", "sterna 0"}, {"c", "no route", ""}, {"d", "", ""}};
  EXPECT_EQ(about(facts, "host a"), Verdict::good);
  EXPECT_EQ(about(facts, "host b"), Verdict::bad);
  EXPECT_EQ(about(facts, "host c"), Verdict::bad);
  EXPECT_EQ(about(facts, "host d"), Verdict::bad);
}

TEST(Doctor, SaysHowToAskForANetworkThatOnlyLibfabricKnows) {
  MachineFacts facts = good();
  facts.interfaces = {"eth0", "lo"};
  facts.boards = {"tcp:eth0", "tcp:lo", "shm:shm", "sockets:eth0"};
  std::string text;
  about(facts, "networks", &text);
  EXPECT_EQ(text, "") << "what tcp and shm do as well is not worth a word";
  facts.boards = {"verbs:mlx5_0", "verbs:mlx5_1", "tcp:eth0", "efa:rdmap0s6-rdm"};
  for (const char* drivers : {"", "shm,tcp", "delay(tcp)"}) {
    facts.drivers = drivers;
    EXPECT_EQ(about(facts, "networks", &text), Verdict::notable) << drivers;
    for (const char* part : {"verbs:mlx5_0, verbs:mlx5_1, efa:rdmap0s6-rdm,",
                             "--drivers shm,fabric@verbs:mlx5_0", "STERNA_DRIVERS="}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_EQ(text.find("eth0"), std::string::npos) << text;
  }
  for (const char* drivers : {"fabric", "shm,count(fabric@verbs:mlx5_0)"}) {
    facts.drivers = drivers;
    EXPECT_EQ(about(facts, "networks", &text), Verdict::good) << drivers;
    EXPECT_NE(text.find(drivers), std::string::npos) << text;
  }
}

TEST(Doctor, ReadsThisMachine) {
  const MachineFacts facts = examine({"nowhere"}, "false");
  EXPECT_GE(facts.online, facts.allowed);
  EXPECT_GE(facts.allowed, 1U);
  ASSERT_EQ(facts.hosts.size(), 1U);
  EXPECT_FALSE(facts.hosts[0].error.empty());
  for (const std::string& board : facts.boards) {  // None where there is no libfabric.
    EXPECT_NE(board.find(':'), std::string::npos) << board;
  }
  EXPECT_NE(std::ranges::find(facts.interfaces, "lo"), facts.interfaces.end());
}

}  // namespace
}  // namespace sterna::launch
