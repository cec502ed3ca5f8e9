// Messages with a layout, over shared memory: sent in packets, read and written by the other side,
// into layouts and out of them.
#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "net/transfer/absence.h"
#include "net/transfer/invitation_pair.h"

namespace sterna::net {
namespace {

constexpr std::int32_t kStripedTag = 9;
constexpr std::byte kUntouched{0xee};

/// Every third byte of its memory.
class Striped final : public Layout {
 public:
  explicit Striped(std::size_t bytes) : memory(3 * bytes, kUntouched) {}

  void copy_out(std::uint64_t offset, std::byte* to, std::uint64_t bytes) const noexcept override {
    for (std::uint64_t i = 0; i < bytes; ++i) {
      to[i] = memory[3 * (offset + i) + 1];
    }
    ++times;
  }
  void copy_in(std::uint64_t offset, const std::byte* from,
               std::uint64_t bytes) const noexcept override {
    for (std::uint64_t i = 0; i < bytes; ++i) {
      memory[3 * (offset + i) + 1] = from[i];
    }
    ++times;
  }
  void fill() {
    for (std::size_t i = 0; 3 * i < memory.size(); ++i) {
      memory[3 * i + 1] = at(i);
    }
  }
  static std::byte at(std::size_t i) { return static_cast<std::byte>(i * 7 + i / 255); }
  /// The first `bytes` are there, and nothing else was touched.
  [[nodiscard]] bool has(std::size_t bytes) const {
    bool is_right = true;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const bool is_place = i % 3 == 1 && i / 3 < bytes;
      is_right = is_right && memory[i] == (is_place ? at(i / 3) : kUntouched);
    }
    return is_right;
  }

  mutable std::vector<std::byte> memory;
  mutable int times = 0;
};

std::vector<std::byte> filled(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = Striped::at(i);
  }
  return data;
}

class LaidOut : public testing::TestWithParam<std::size_t> {
 protected:
  LaidOut() { pair.meet(); }

  void send(const Buffer& data) {
    pair.nodes[0]->send(*pair.endpoints[0], sends, {1, Pair::kContext, kStripedTag}, data);
  }
  void receive(const Buffer& data) {
    pair.nodes[1]->receive(*pair.endpoints[1], receives,
                           Pattern{0, Pair::kContext, kStripedTag}, data);
  }
  void end() {
    ASSERT_TRUE(pair.poll_until([&] { return sends.done.done() && receives.done.done(); }));
    EXPECT_EQ(sends.fault, Fault::none);
  }

  const std::size_t bytes = GetParam();
  Pair pair;
  SendRequest sends;
  RecvRequest receives;
  RecvRequest second;
};

TEST_P(LaidOut, ArePackedAndUnpackedOnTheWay) {
  for (const bool is_late : {false, true}) {
    Striped from{bytes};
    Striped into{bytes};
    from.fill();
    sends.is_awaited = true;
    if (is_late) {
      send(Buffer::of(from, bytes));
      pair.poll(1);
    }
    receive(Buffer::of(into, bytes));
    if (!is_late) {
      send(Buffer::of(from, bytes));
    }
    end();
    EXPECT_TRUE(into.has(bytes));
    EXPECT_EQ(receives.envelope.bytes, bytes);
    EXPECT_GE(from.times, static_cast<int>(bytes >> 16)) << "in parts";
  }
}

TEST_P(LaidOut, ComeOutOfOneRangeAndGoIntoOne) {
  Striped from{bytes};
  Striped into{bytes};
  const std::vector<std::byte> plain = filled(bytes);
  std::vector<std::byte> got(bytes);
  from.fill();
  sends.is_awaited = true;
  receive(Buffer::of(into, bytes));
  send(Buffer::of(plain.data(), bytes));
  end();
  EXPECT_TRUE(into.has(bytes));
  receive(Buffer::of(got.data(), bytes));
  send(Buffer::of(from, bytes));
  end();
  EXPECT_EQ(got, plain);
}

// Its sender computes, by what it says.
class ReadLaidOut : public LaidOut {};
TEST_P(ReadLaidOut, AreUnpackedInPartsWhereTheirSenderDoesNotWait) {
  if (!pair.nodes[0]->cost(1).is_direct()) {
    GTEST_SKIP() << "this system does not let a process read another one's memory";
  }
  Striped into{bytes};
  const std::vector<std::byte> plain = filled(bytes);
  receive(Buffer::of(into, bytes));
  send(Buffer::of(plain.data(), bytes));
  pair.nodes[0]->absence().was_away(1'000'000, 2'000'000);
  end();
  EXPECT_TRUE(into.has(bytes));
  EXPECT_EQ(pair.nodes[1]->statistics().bytes_direct, bytes);
}

TEST_P(LaidOut, ThatAreTooLongAreCut) {
  Striped from{bytes};
  Striped into{bytes / 2};
  from.fill();
  sends.is_awaited = true;
  receive(Buffer::of(into, bytes / 2));
  send(Buffer::of(from, bytes));
  end();
  EXPECT_EQ(receives.fault, Fault::truncated);
  EXPECT_TRUE(into.has(bytes / 2));
}

TEST_P(LaidOut, OfTheOwnNodeAreCopied) {
  Striped from{bytes};
  Striped into{bytes};
  from.fill();
  receive(Buffer::of(into, bytes));
  pair.nodes[1]->receive(*pair.endpoints[1], second, Pattern{1, Pair::kContext, kStripedTag},
                         Buffer::of(into, bytes));
  pair.nodes[1]->send(*pair.endpoints[1], sends, {1, Pair::kContext, kStripedTag},
                      Buffer::of(from, bytes));
  ASSERT_TRUE(pair.poll_until([&] { return sends.done.done() && second.done.done(); }));
  EXPECT_TRUE(into.has(bytes));
  EXPECT_TRUE(pair.nodes[1]->cancel_receive(*pair.endpoints[1], receives));
}

// To pack is no part of what packets take, nor is to unpack.
TEST_P(LaidOut, TeachNothing) {
  const auto corrections = [&] {
    std::uint32_t count = 0;
    for (std::uint32_t node = 0; node < 2; ++node) {
      for (const CostModel::Row& row : pair.nodes[node]->cost(1 - node).figures()) {
        count += row.figure.corrections;
      }
    }
    return count;
  };
  const std::uint32_t before = corrections();
  for (int i = 0; i < 10; ++i) {
    Striped from{bytes};
    Striped into{bytes};
    sends.is_awaited = true;
    receive(Buffer::of(into, bytes));
    send(Buffer::of(from, bytes));
    end();
  }
  EXPECT_EQ(corrections(), before);
}

INSTANTIATE_TEST_SUITE_P(OfManyBytes, ReadLaidOut, testing::Values(100'000, 1'000'003));
INSTANTIATE_TEST_SUITE_P(OfBytes, LaidOut, testing::Values(10, 20'000, 100'000, 1'000'003));

using LaidOutInvitation = InvitationPair;

TEST_F(LaidOutInvitation, IsWrittenInPartsWhileNobodyLooks) {
  Striped from{kBytes};
  from.fill();
  post(receive, got);
  pair.nodes[0]->send(*pair.endpoints[0], send, {1, Pair::kContext, kTag},
                      Buffer::of(from, kBytes));
  poll_sender();
  EXPECT_TRUE(send.done.done());
  EXPECT_EQ(invited(), 1U);
  ASSERT_TRUE(pair.poll_until([&] { return receive.done.done(); }));
  EXPECT_EQ(got, filled(kBytes));
}

}  // namespace
}  // namespace sterna::net
