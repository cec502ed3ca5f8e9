// The way that is not chosen is measured, too: the choice follows what the two cost, to and fro,
// and what trials lose is bounded. With a machine that changes.
#include "net/costs/trials.h"

#include <string>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr std::uint64_t kMega = 1 << 20;

/// What a byte takes, in picoseconds.
struct Machine {
  std::uint64_t packets;
  std::uint64_t direct;
};
constexpr Machine kNear{30, 70};
constexpr Machine kFar{170, 60};

/// Announced messages of one size, one behind the other, each measured by the way that it took.
class Stream {
 public:
  explicit Stream(std::uint64_t bytes) : bytes_{bytes} {}

  void run(const Machine& machine, std::uint64_t bytes) {
    for (std::uint64_t sent = 0; sent < bytes; sent += bytes_) {
      send(machine);
    }
  }
  void send(const Machine& machine) {
    const bool is_trial = is_next();
    const bool is_direct = (bytes_ >= model_.direct_from_bytes()) != is_trial;
    const std::uint64_t packets_ns = bytes_ * machine.packets / 1000;
    const std::uint64_t direct_ns = 1000 + bytes_ * machine.direct / 1000;
    if (is_direct) {
      model_.measured_direct(bytes_, direct_ns);
    } else {
      send_packets(machine.packets);
    }
    took_ns += is_direct ? direct_ns : packets_ns;
    best_ns += std::min(packets_ns, direct_ns);
    trials += is_trial ? 1 : 0;
  }
  [[nodiscard]] bool is_direct() const { return bytes_ >= model_.direct_from_bytes(); }
  [[nodiscard]] std::string explain() const { return trials_.explain(model_, bytes_); }

  bool can_measure_packets = true;
  bool is_whole = false;
  std::uint64_t took_ns = 0;
  std::uint64_t best_ns = 0;  // By the faster way alone.
  std::uint64_t trials = 0;

 private:
  static constexpr std::uint64_t kPacketBytes = 22 << 10;

  /// As Gate::tries_other_way().
  bool is_next() {
    if (until_ > bytes_) {
      until_ -= bytes_;
      return false;
    }
    const bool is_trial = trials_.is_next(model_, bytes_);
    until_ = trials_.until();
    return is_trial;
  }
  /// One of eight is measured, or the whole.
  void send_packets(std::uint64_t ps_per_byte) {
    for (std::uint64_t sent = 0; sent < bytes_; sent += kPacketBytes) {
      if (!is_whole && ++packets_ % 8 == 0 && trials_.is_warm(8 * kPacketBytes) &&
          can_measure_packets) {
        model_.measured_packets(kPacketBytes, kPacketBytes * ps_per_byte / 1000);
      }
    }
    if (is_whole && trials_.is_warm(bytes_) && can_measure_packets) {
      model_.measured_packets(bytes_, bytes_ * ps_per_byte / 1000);
    }
  }

  const std::uint64_t bytes_;
  std::uint64_t packets_ = 0;
  std::uint64_t until_ = Trials::kBytes;
  // The profile of shared memory.
  CostModel model_{{.latency_ns = 120,
                    .bandwidth_mb_per_s = 30'303,
                    .packet_ns = 45,
                    .cpu_ps_per_byte = 10,
                    .direct_latency_ns = 1000,
                    .direct_mb_per_s = 12'500},
                   true,
                   {}};
  Trials trials_;
};

class TrialsOfSize : public testing::TestWithParam<std::uint64_t> {};

TEST_P(TrialsOfSize, TheChoiceFollowsTheMachineThereAndBack) {
  Stream stream{GetParam()};
  for (int turn = 0; turn < 4; ++turn) {
    stream.run(kNear, 16'384 * kMega);
    EXPECT_FALSE(stream.is_direct()) << "near, turn " << turn << stream.explain();
    stream.run(kFar, 16'384 * kMega);
    EXPECT_TRUE(stream.is_direct()) << "far, turn " << turn << stream.explain();
  }
}

TEST_P(TrialsOfSize, LoseAHundredthOfTheTimeAtMost) {
  for (const Machine& machine : {kNear, kFar, Machine{60, 60}, Machine{2000, 60}}) {
    Stream stream{GetParam()};
    stream.run(machine, 1024 * kMega);  // It has seen both ways, and chosen.
    stream.took_ns = stream.best_ns = stream.trials = 0;
    stream.run(machine, 32'768 * kMega);
    const double lost = static_cast<double>(stream.took_ns) / static_cast<double>(stream.best_ns);
    // One trial more than there are intervals.
    EXPECT_LE(lost, 1.02) << machine.packets << stream.explain();
    EXPECT_TRUE(stream.trials != 0 || machine.packets == 2000) << machine.packets;
    EXPECT_LE(stream.trials, 32'768 * kMega / GetParam() / Trials::kEvery + 1) << machine.packets;
  }
}

TEST_P(TrialsOfSize, OfMessagesMeasuredAsAWholeTeachAsWell) {
  Stream stream{GetParam()};
  stream.is_whole = true;
  stream.run(kFar, 1024 * kMega);
  ASSERT_TRUE(stream.is_direct());
  stream.run(kNear, 16'384 * kMega);
  EXPECT_FALSE(stream.is_direct()) << stream.explain();
}

TEST_P(TrialsOfSize, EndSoonWhereTheyFindWhatWasKnown) {
  Stream stream{GetParam()};
  stream.is_whole = true;
  stream.run(kFar, 1024 * kMega);
  ASSERT_TRUE(stream.is_direct());
  const std::uint64_t before = stream.trials;
  while (stream.trials == before) {
    stream.send(kFar);
  }
  std::uint64_t bytes = 0;
  for (std::uint64_t last = before; stream.trials != last; bytes += GetParam()) {
    last = stream.trials;
    stream.send(kFar);
  }
  EXPECT_LE(bytes, 8 * std::max(GetParam(), kMega));
}

// What an earlier job has left may be of another place.
TEST_P(TrialsOfSize, BeginAfterSomeMegabytes) {
  Stream stream{GetParam()};
  stream.run(kNear, Trials::kEvery * Trials::kBytes / Trials::kFirstTimes - GetParam());
  EXPECT_EQ(stream.trials, 0U);
  stream.run(kNear, 3 * GetParam());
  EXPECT_GT(stream.trials, 0U);
}

TEST_P(TrialsOfSize, ThatTeachNothingComeLessAndLessOften) {
  Stream stream{GetParam()};
  stream.run(kFar, 256 * kMega);
  ASSERT_TRUE(stream.is_direct());
  stream.can_measure_packets = false;
  stream.trials = 0;
  stream.run(kFar, 32'768 * kMega);
  EXPECT_GT(stream.trials, 0U);
  EXPECT_LE(stream.trials * GetParam(), 512 * kMega) << stream.explain();
}

INSTANTIATE_TEST_SUITE_P(OfBytes, TrialsOfSize, testing::Values(48 << 10, 256 << 10, 4 * kMega));

TEST(Trials, AreExplained) {
  Stream stream{kMega};
  stream.run(kNear, 512 * kMega);
  EXPECT_NE(stream.explain().find("the other way would take 2."), std::string::npos)
      << stream.explain();
  EXPECT_NE(stream.explain().find("is tried each"), std::string::npos) << stream.explain();
}

}  // namespace
}  // namespace sterna::net
