// A node is recorded with its peers, then runs again without them.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "net/drivers/builtin.h"
#include "net/drivers/record/recording.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

using record::Event;
using record::EventKind;

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

  void be_patient(const char* time) {
    ASSERT_TRUE(
        settings.set("replay_patience", time, SettingSource::command_line, "test").has_value());
  }

  static Packet as_packet(std::string_view text) { return std::as_bytes(std::span{text}); }

  /// A recording of node 1, with the only peer 0, that its end is not in.
  void write(const std::vector<Event>& events) {
    std::vector<std::byte> bytes;
    append(bytes, record::Header{.node = 1, .node_count = 2, .packet_bytes_max = 4096});
    for (const Event& event : events) {
      append(bytes, event);
    }
    std::ofstream file{folder + "/r.1", std::ios::binary};
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
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
  const std::uint64_t until_end_ns = 200'000'000;
  {
    TestNode a{choice_of("tcp"), job, 0};
    TestNode b{choice_of("record(tcp,file=" + folder + "/r)"), job, 1};
    ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "question"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
    ASSERT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "answer"));
    // As it lies on the disk when the node is killed now.
    std::filesystem::copy_file(folder + "/r.1", folder + "/cut.1");
    std::this_thread::sleep_for(std::chrono::nanoseconds{until_end_ns});
  }
  std::filesystem::rename(folder + "/r.1", folder + "/whole.1");
  const std::uint64_t patience_ns = 300'000'000;
  be_patient("300ms");
  for (const bool is_whole : {false, true}) {
    std::filesystem::copy_file(folder + (is_whole ? "/whole.1" : "/cut.1"), folder + "/r.1",
                               std::filesystem::copy_options::overwrite_existing);
    TestNode alone{choice_of("replay"), job, 1, {.settings = &settings}};
    Channel& back = alone.to(0, {});
    ASSERT_TRUE(poll_until({&alone}, [&] { return alone.sink.packets.size() == 1; }));
    EXPECT_EQ(send_text(back, "answer"), SendState::accepted);
    const std::uint64_t begin = now_ns();
    EXPECT_TRUE(poll_until({&alone}, [&] { return !alone.sink.losses.empty(); }));
    // A node that ended in good order may take as long as it had, and more.
    EXPECT_GE(now_ns() - begin, patience_ns + (is_whole ? 4 * until_end_ns : 0));
    ASSERT_EQ(alone.sink.losses.size(), 1U);
    EXPECT_EQ(send_text(back, "more"), SendState::closed);
  }
}

TEST_F(Record, ANodeThatDoesNotGoOnAsRecordedLosesItsPeers) {
  write({{.kind = EventKind::came, .packet = as_packet("question")},
         {.kind = EventKind::sent, .packet = as_packet("answer")},
         {.kind = EventKind::came, .packet = as_packet("never")}});
  be_patient("50ms");
  TestNode alone{choice_of("replay"), job, 1, {.settings = &settings}};
  Channel& back = alone.to(0, {});
  EXPECT_TRUE(poll_until({&alone}, [&] { return !alone.sink.losses.empty(); }));
  ASSERT_EQ(alone.sink.losses.size(), 1U);
  EXPECT_EQ(alone.sink.losses[0].second,
            "node 1 does not send the 6 B to node 0 that the recording has next");
  EXPECT_EQ(send_text(back, "answer"), SendState::closed);
  for (int i = 0; i < 100; ++i) {
    alone.poll();
  }
  EXPECT_EQ(alone.sink.packets.size(), 1U);
  // With patience 0 it waits.
  be_patient("0");
  TestNode patient{choice_of("replay"), job, 1, {.settings = &settings}};
  patient.to(0, {});
  const std::uint64_t until = now_ns() + 200'000'000;
  while (now_ns() < until) {
    patient.poll();
  }
  EXPECT_TRUE(patient.sink.losses.empty());
}

TEST_F(Record, WhoWaitsForTheNodeItselfSleepsUntilThatSends) {
  write({{.kind = EventKind::came, .packet = as_packet("question")},
         {.kind = EventKind::sent, .packet = as_packet("answer")},
         {.kind = EventKind::came, .packet = as_packet("thanks")}});
  TestNode alone{choice_of("replay"), job, 1, {.settings = &settings}};
  Channel& back = alone.to(0, {});
  EXPECT_FALSE(alone.driver->prepare_sleep());
  alone.poll();
  ASSERT_EQ(alone.sink.packets.size(), 1U);
  ASSERT_TRUE(alone.driver->prepare_sleep());
  EXPECT_FALSE(is_readable(alone.driver->fd(), 0));
  // It looks whether that goes on.
  const std::uint64_t deadline_ns = alone.driver->next_deadline_ns();
  EXPECT_LE(deadline_ns, now_ns() + 1'000'000'000);
  EXPECT_EQ(send_text(back, "answer"), SendState::accepted);
  EXPECT_TRUE(is_readable(alone.driver->fd(), 0));
  alone.driver->end_sleep();
  EXPECT_FALSE(is_readable(alone.driver->fd(), 0));
  EXPECT_FALSE(alone.driver->prepare_sleep());
  alone.poll();
  EXPECT_EQ(alone.sink.packets.size(), 2U);
}

TEST_F(Record, AWayThatWasLostAndRevivedIsSoAgain) {
  write({{.kind = EventKind::lost, .packet = as_packet("cut")},
         {.kind = EventKind::sent, .packet = as_packet("again")},
         {.kind = EventKind::came, .packet = as_packet("back")}});
  TestNode alone{choice_of("replay"), job, 1, {.settings = &settings}};
  Channel& back = alone.to(0, {});
  alone.poll();
  EXPECT_EQ(alone.sink.losses.size(), 1U);
  EXPECT_EQ(send_text(back, "again"), SendState::closed);
  EXPECT_TRUE(alone.sink.packets.empty());
  ASSERT_TRUE(alone.driver->revive(0).has_value());
  EXPECT_EQ(send_text(back, "again"), SendState::accepted);
  alone.poll();
  EXPECT_EQ(alone.sink.packets.size(), 1U);
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
