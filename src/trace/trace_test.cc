// Records into a file, reads it, and compares; then traces made by hand: clocks of two hosts, what
// a killed process leaves, states of threads.
#include "base/trace.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/made_trace.h"
#include "trace/reader.h"
#include "trace/summary.h"

namespace sterna::trace {
namespace {

class TraceFile : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/sterna-trace-test-" + std::to_string(::getpid());
  }
  void TearDown() override {
    stop();
    std::filesystem::remove(path_);
  }
  Timeline read() {
    Reader reader;
    Result<std::vector<char>> bytes = load_file(path_);
    EXPECT_TRUE(bytes.has_value());
    EXPECT_TRUE(reader.add(std::as_bytes(std::span{bytes.value()}), path_).has_value());
    Result<Timeline> timeline = reader.finish();
    EXPECT_TRUE(timeline.has_value());
    return std::move(timeline.value());
  }
  std::string path_;
};

TEST_F(TraceFile, HoldsWhatWasRecordedInOrder) {
  ASSERT_FALSE(is_on());
  ASSERT_TRUE(start({.path = path_, .bytes_max = 8 << 20}).has_value());
  const std::uint64_t rank = key_of(KeyClass::rank, 3);
  name(key_of(KeyClass::function, 7), "MPI_A_function_with_a_long_name");
  record(Kind::calls, 1, rank, key_of(KeyClass::function, 7));
  record(Kind::returns, 2, rank, key_of(KeyClass::function, 7), 9);
  stop();
  record(Kind::ended, 0, rank);  // Late ones may still be in the file, or not.
  const Timeline timeline = read();
  ASSERT_GE(timeline.events.size(), 2u);
  EXPECT_EQ(timeline.events[0].kind, Kind::calls);
  EXPECT_EQ(timeline.events[0].worker, 1);
  EXPECT_EQ(timeline.events[1].extra, 9u);
  EXPECT_EQ(timeline.name_of(0, timeline.events[1].value), "MPI_A_function_with_a_long_name");
  EXPECT_EQ(timeline.name_of(0, rank), "rank 3");
  EXPECT_EQ(timeline.nodes.at(0).pid, static_cast<std::uint32_t>(::getpid()));
}

TEST_F(TraceFile, LosesNothingOfManyKernelThreads) {
  constexpr std::uint64_t kEach = 40'000;  // Several chunks each.
  ASSERT_TRUE(start({.path = path_, .bytes_max = 64 << 20}).has_value());
  {
    std::vector<std::jthread> writers;
    for (std::uint16_t writer = 0; writer < 5; ++writer) {
      writers.emplace_back([writer] {
        for (std::uint64_t i = 0; i < kEach; ++i) {
          record(Kind::wakes, writer, key_of(KeyClass::thread, writer), i);
        }
      });
    }
  }
  stop();
  const Timeline timeline = read();
  std::vector<std::uint64_t> next(5);
  std::vector<std::uint64_t> count(5);
  for (const Event& event : timeline.events) {
    ++count.at(event.worker);
    EXPECT_GE(event.value, next[event.worker]);
    next[event.worker] = event.value;
  }
  EXPECT_EQ(count, (std::vector<std::uint64_t>(5, kEach)));
  EXPECT_EQ(timeline.nodes[0].broken_records, 0u);
}

TEST_F(TraceFile, StopsAtItsLimitAndSaysSo) {
  ASSERT_TRUE(start({.path = path_, .bytes_max = 2 * kChunkBytes}).has_value());
  for (int i = 0; i < 100'000; ++i) {
    record(Kind::polled, 0, kNobody, 1);
  }
  EXPECT_FALSE(is_on());
  const Timeline timeline = read();
  EXPECT_TRUE(timeline.nodes[0].is_cut_short);
  EXPECT_EQ(timeline.events.size(), 2 * (kChunkBytes - sizeof(ChunkHeader)) / sizeof(Record));
}

TEST_F(TraceFile, IsReadWhileItIsWrittenAndAfterAKill) {
  ASSERT_TRUE(start({.path = path_, .bytes_max = 64 << 20}).has_value());
  record(Kind::born, 0, key_of(KeyClass::thread, 1));
  EXPECT_EQ(read().events.size(), 1u);  // Nothing was flushed or closed.
}

TEST_F(TraceFile, HoldsNothingOfAForkedChild) {
  ASSERT_TRUE(start({.path = path_, .bytes_max = 8 << 20}).has_value());
  record(Kind::born, 0, key_of(KeyClass::thread, 1));
  const pid_t child = ::fork();
  if (child == 0) {
    // Also what looked at is_on() before, or does not.
    detail::write(Kind::born, 0, key_of(KeyClass::thread, 2), 0, 0);
    name(key_of(KeyClass::thread, 2), "child");
    stop();
    ::_exit(is_on() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  record(Kind::born, 0, key_of(KeyClass::thread, 3));
  stop();
  const Timeline timeline = read();
  ASSERT_EQ(timeline.events.size(), 2u);
  EXPECT_EQ(timeline.events[1].subject, key_of(KeyClass::thread, 3));
}

TEST(TraceStart, FailsWithTheNameOfTheFile) {
  Result<> started = start({.path = "/nowhere/at/all", .bytes_max = 1 << 20});
  ASSERT_FALSE(started.has_value());
  EXPECT_NE(started.error().text.find("/nowhere/at/all"), std::string::npos);
  EXPECT_FALSE(is_on());
}

TEST(Clocks, OfTwoHostsAreAlignedByMessagesBothWays) {
  // The second clock is 5,000,000 ahead; messages take 300 there and 500 back at best.
  Made a{0, "host-a", 1'000'000};
  Made b{1, "host-b", 6'000'000};
  b.header().wired_up_ns += 70'000;  // It heard of the wire-up late.
  for (std::uint64_t i = 0; i < 4; ++i) {
    a.add(10'000 * i, Kind::sends, message_subject(0, 1), message_value(8, 1));
    b.add(10'000 * i + 300 + 100 * i, Kind::receives, message_subject(0, 1), message_value(8, 1));
    b.add(10'000 * i + 5'000, Kind::sends, message_subject(1, 0), message_value(8, 1));
    a.add(10'000 * i + 5'500 + 70 * i, Kind::receives, message_subject(1, 0), message_value(8, 1));
  }
  const Timeline timeline = read({a, b});
  EXPECT_TRUE(timeline.nodes[1].is_offset_from_messages);
  EXPECT_NEAR(static_cast<double>(timeline.nodes[1].clock_offset_ns), -5'000'000, 101);
  for (const MessagePair& pair : pair_messages(timeline.events)) {
    EXPECT_GT(timeline.events[pair.received].ns, timeline.events[pair.sent].ns);
  }
  EXPECT_EQ(pair_messages(timeline.events).size(), 8u);
}

TEST(Clocks, OfTwoHostsWithoutMessagesAreAlignedByTheWireUp) {
  Made a{0, "host-a", 1'000'000};
  Made b{1, "host-b", 6'000'000};
  a.header().wired_up_ns += 10'000;
  b.header().wired_up_ns += 12'000;
  a.add(20'000, Kind::ended, kRank0);
  b.add(22'000, Kind::ended, key_of(KeyClass::rank, 1));
  const Timeline timeline = read({a, b});
  EXPECT_FALSE(timeline.nodes[1].is_offset_from_messages);
  EXPECT_EQ(timeline.nodes[1].clock_offset_ns, -5'002'000);
  EXPECT_EQ(timeline.duration_ns(), 0u);
}

TEST(Reading, SkipsWhatAKilledProcessLeftHalfWritten) {
  Made node{0, "host", 5'000};
  node.add(10, Kind::born, kRank0);
  node.add(20, Kind::none, kRank0);              // Begun.
  node.add(30, static_cast<Kind>(200), kRank0);  // Nonsense.
  node.add(40, Kind::ended, kRank0);
  const Timeline timeline = read({node});
  EXPECT_EQ(timeline.events.size(), 2u);
  EXPECT_EQ(timeline.nodes[0].broken_records, 2u);
}

TEST(Reading, RefusesWhatIsNoTrace) {
  const auto refuses = [](const std::vector<std::byte>& bytes) {
    Reader reader;
    return !reader.add(bytes, "x").has_value();
  };
  EXPECT_TRUE(refuses({}));
  EXPECT_TRUE(refuses(std::vector<std::byte>(5000)));
  Made node{0, "host", 0};
  node.header().version = 2;
  EXPECT_TRUE(refuses(node.bytes()));
  Made wide{0, "host", 0};
  wide.header().node_count = kNodeCountMax + 1;
  EXPECT_TRUE(refuses(wide.bytes()));
  Made fast{0, "host", 0};
  fast.header().ns_per_tick = 1e300;
  EXPECT_TRUE(refuses(fast.bytes()));
  Reader twice;
  EXPECT_TRUE(twice.add(Made{0, "host", 0}.bytes(), "x").has_value());
  EXPECT_FALSE(twice.add(Made{0, "host", 0}.bytes(), "x").has_value());
}

TEST(Summary, SaysWhereTheTimeWent) {
  const Summary summary = summarise(read({states_of_node_0(), states_of_node_1()}));
  ASSERT_EQ(summary.threads.size(), 1u);
  const ThreadTimes& rank = summary.threads[0];
  EXPECT_EQ(rank.running_ns, 140u);
  EXPECT_EQ(rank.waiting_ns, 50u);
  EXPECT_EQ(rank.ready_ns, 25u);
  EXPECT_EQ(rank.moving_ns, 40u);
  EXPECT_EQ(rank.turns, 3u);
  EXPECT_EQ(rank.moves, 1u);
  ASSERT_EQ(summary.moves.size(), 1u);
  EXPECT_EQ(summary.moves[0].duration_ns, 40u);
  EXPECT_EQ(summary.moves[0].to, 1u);
  ASSERT_EQ(summary.calls.size(), 1u);
  EXPECT_EQ(summary.calls[0].total_ns, 30u);
  ASSERT_EQ(summary.workers.size(), 2u);
  EXPECT_EQ(summary.workers[0].running_ns, 130u);
  EXPECT_EQ(summary.workers[0].asleep_ns, 30u);
}

}  // namespace
}  // namespace sterna::trace
