// A node is recorded with its peers, then runs again without them.
#include <cstdlib>
#include <filesystem>

#include "net/drivers/builtin.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

class Record : public testing::Test {
 protected:
  Record() {
    char name[] = "/tmp/sterna-record-XXXXXX";
    check(::mkdtemp(name) != nullptr, "the test has a folder");
    folder = name;
    check(
        settings.set("replay_file", folder + "/r", SettingSource::command_line, "test").has_value(),
        "the settings of the test are valid");
  }
  ~Record() override { std::filesystem::remove_all(folder); }

  /// Node 1 answers the n-th packet with n answers, then its peer is gone.
  static void serve(TestNode& node, Channel& back, std::initializer_list<TestNode*> nodes) {
    std::size_t answered = 0;
    ASSERT_TRUE(poll_until(nodes, [&] {
      while (answered < node.sink.packets.size()) {
        for (std::size_t i = 0; i <= answered; ++i) {
          EXPECT_TRUE(send_patiently(nodes, back, "answer " + std::to_string(i)));
        }
        ++answered;
      }
      return answered == 10;
    }));
  }

  std::string folder;
  Settings settings{kReplayDriver.tunables};
  TestJob job{2};
};

TEST_F(Record, ANodeRunsAgainWithoutItsPeers) {
  std::vector<std::pair<std::uint32_t, std::string>> came;
  {
    TestNode a{choice_of("tcp"), job, 0};
    TestNode b{choice_of("record(tcp,file=" + folder + "/r)"), job, 1};
    Channel& back = b.to(a, 0);
    for (std::size_t i = 0; i < 10; ++i) {
      // One after the other: the answers to one come before the next is sent.
      ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "question " + std::string(i * 100, 'x')));
      ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == i + 1; }));
      for (std::size_t k = 0; k <= i; ++k) {
        ASSERT_TRUE(send_patiently({&a, &b}, back, "answer " + std::to_string(k)));
      }
    }
    came = b.sink.packets;
  }
  for (int run = 0; run < 2; ++run) {
    TestNode alone{choice_of("replay"), job, 1, {.settings = &settings}};
    Channel& back = alone.to(0, {});
    serve(alone, back, {&alone});
    EXPECT_EQ(alone.sink.packets, came);
    EXPECT_NE(alone.driver->figures().find(" 0 packets were sent that differ"), std::string::npos)
        << alone.driver->figures();
  }
  // Who answers otherwise is seen; who does not answer hears no more.
  TestNode other{choice_of("replay"), job, 1, {.settings = &settings}};
  for (int i = 0; i < 100; ++i) {
    other.poll();
  }
  EXPECT_EQ(other.sink.packets.size(), 1U);
  EXPECT_EQ(send_text(other.to(0, {}), "nonsense"), SendState::accepted);
  other.poll();
  EXPECT_EQ(other.sink.packets.size(), 2U);
  EXPECT_NE(other.driver->figures().find(" 1 packets were sent that differ"), std::string::npos);
}

TEST_F(Record, WhereItEndsBeforeItsNodeDidThePeersAreLost) {
  {
    TestNode a{choice_of("tcp"), job, 0};
    TestNode b{choice_of("record(tcp,file=" + folder + "/r)"), job, 1};
    ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "question"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
    ASSERT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "answer"));
    // As it lies on the disk when the node is killed now.
    std::filesystem::copy_file(folder + "/r.1", folder + "/cut.1");
  }
  std::filesystem::rename(folder + "/r.1", folder + "/whole.1");
  const std::uint64_t patience_ns = 300'000'000;
  ASSERT_TRUE(
      settings.set("replay_patience", "300ms", SettingSource::command_line, "test").has_value());
  for (const bool is_whole : {false, true}) {
    std::filesystem::copy_file(folder + (is_whole ? "/whole.1" : "/cut.1"), folder + "/r.1",
                               std::filesystem::copy_options::overwrite_existing);
    TestNode alone{choice_of("replay"), job, 1, {.settings = &settings}};
    Channel& back = alone.to(0, {});
    ASSERT_TRUE(poll_until({&alone}, [&] { return alone.sink.packets.size() == 1; }));
    EXPECT_EQ(send_text(back, "answer"), SendState::accepted);
    const std::uint64_t begin = now_ns();
    const std::uint64_t until = begin + (is_whole ? 3 * patience_ns : kPatienceNs);
    while (alone.sink.losses.empty() && now_ns() < until) {
      alone.poll();
    }
    EXPECT_EQ(alone.sink.losses.size(), is_whole ? 0U : 1U);
    EXPECT_TRUE(is_whole || now_ns() - begin >= patience_ns);
    EXPECT_EQ(send_text(back, "more"), is_whole ? SendState::accepted : SendState::closed);
  }
}

TEST_F(Record, WhatIsNoRecordingOfThisNodeIsRefused) {
  const DriverChoice replay = choice_of("replay");
  auto missing = open_driver(replay, {.bootstrap = &job.node(1), .settings = &settings});
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().text.find("/r.1"), std::string::npos) << missing.error().text;
  { const TestNode b{choice_of("record(tcp,file=" + folder + "/r)"), job, 1}; }
  std::filesystem::rename(folder + "/r.1", folder + "/r.0");
  auto other = open_driver(replay, {.bootstrap = &job.node(0), .settings = &settings});
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().text.find("node 1 of 2"), std::string::npos) << other.error().text;
  const DriverChoice nowhere = choice_of("record(tcp,file=/nosuch/folder/r)");
  auto failed = open_driver(nowhere, {.bootstrap = &job.node(0)});
  ASSERT_FALSE(failed.has_value());
  EXPECT_NE(failed.error().text.find("record_file"), std::string::npos) << failed.error().text;
  // A folder can be opened, and not be read.
  std::filesystem::remove(folder + "/r.0");
  std::filesystem::create_directory(folder + "/r.0");
  auto unread = open_driver(replay, {.bootstrap = &job.node(0), .settings = &settings});
  ASSERT_FALSE(unread.has_value());
  EXPECT_NE(unread.error().text.find("cannot be read"), std::string::npos) << unread.error().text;
}

TEST_F(Record, ADiskThatIsFullIsSaid) {
  std::filesystem::create_symlink("/dev/full", folder + "/r.0");
  TestNode a{choice_of("record(tcp,file=" + folder + "/r)"), job, 0};
  TestNode b{choice_of("tcp"), job, 1};
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "few bytes"));
  EXPECT_NE(a.driver->figures().find("disk was full"), std::string::npos) << a.driver->figures();
}

}  // namespace
}  // namespace sterna::net
