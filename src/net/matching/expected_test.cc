// That ExpectedPlain says of any packet what its fields say.
#include "net/matching/expected.h"

#include <array>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "memory/heap.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kWindow = 1 << 16;
constexpr std::size_t kRoom = 100;

class Expected : public testing::Test {
 protected:
  Expected() : at{create_endpoint(*memory::Heap::process(), 1)}, peer{add_peer(*at, 7)} {
    peer->receive_sequence = 41;
  }
  ~Expected() override { destroy_endpoint(at); }

  /// A message that a receive of this pattern takes as it is.
  static FrameHeader plain(const Pattern& pattern, std::uint32_t bytes) {
    FrameHeader header;
    header.kind = FrameKind::eager;
    header.flags = kFrameHasCredit;
    header.source = 7;
    header.destination = 1;
    header.sequence = 41;
    header.credit = 99;
    header.context = pattern.context;
    header.tag = pattern.tag == kAnyTag ? 12 : pattern.tag;
    header.payload_bytes = bytes;
    header.total_bytes = bytes;
    return header;
  }
  /// Field by field.
  [[nodiscard]] bool should_be(const FrameHeader& header, std::size_t bytes,
                               const Pattern& pattern) const {
    return header.kind == FrameKind::eager && header.flags == kFrameHasCredit && header.hops == 0 &&
           header.priority <= kPriorityMax && header.source == 7 && header.destination == 1 &&
           header.sequence == peer->receive_sequence && header.context == pattern.context &&
           header.tag >= 0 && (pattern.tag == kAnyTag || pattern.tag == header.tag) &&
           header.payload_bytes == bytes && header.total_bytes == bytes && bytes <= kRoom &&
           peer->eager_received + credit_of(bytes) - peer->consumed <= kWindow &&
           peer->consumed + credit_of(bytes) - peer->consumed_told < kWindow / 2;
  }
  [[nodiscard]] bool is_it(const FrameHeader& header, std::size_t bytes, const Pattern& pattern,
                           ExpectedPlain::Seen& seen) const {
    std::array<std::byte, kHeaderBytes + 2 * kRoom> packet{};
    std::memcpy(packet.data(), &header, sizeof header);
    const ExpectedPlain expected{*at, pattern, kWindow};
    return expected.is_it({packet.data(), kHeaderBytes + bytes}, kRoom, seen);
  }

  Endpoint* const at;
  Peer* const peer;
};

TEST_F(Expected, SaysOfAnyHeaderWhatItsFieldsSay) {
  std::mt19937_64 random{20261124};
  std::uint32_t yes = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Pattern pattern{7, 3, i % 2 == 0 ? 5 : kAnyTag};
    const auto bytes = static_cast<std::uint32_t>(random() % (kRoom + 2));
    FrameHeader header = plain(pattern, bytes);
    header.priority = static_cast<std::uint8_t>(random() % 9);
    if (random() % 4 != 0) {  // One bit of one byte.
      auto* const raw = reinterpret_cast<unsigned char*>(&header);
      raw[random() % kHeaderBytes] ^= static_cast<unsigned char>(1U << (random() % 8));
    }
    peer->consumed = static_cast<std::uint32_t>(random());
    peer->eager_received = peer->consumed + static_cast<std::uint32_t>(random() % (kWindow + 2));
    peer->consumed_told = peer->consumed - static_cast<std::uint32_t>(random() % kWindow);
    ExpectedPlain::Seen seen{};
    const bool is_yes = is_it(header, bytes, pattern, seen);
    ASSERT_EQ(is_yes, should_be(header, bytes, pattern)) << i;
    if (is_yes) {
      ++yes;
      ASSERT_EQ(seen.bytes, bytes);
      ASSERT_EQ(seen.credit, header.credit);
      ASSERT_EQ(seen.tag, header.tag);
    }
  }
  EXPECT_GT(yes, 100U);
}

TEST_F(Expected, IsNothingWithoutASourceOrItsPeer) {
  ExpectedPlain::Seen seen{};
  const Pattern pattern{7, 3, 5};
  const FrameHeader header = plain(pattern, 8);
  EXPECT_TRUE(is_it(header, 8, pattern, seen));
  EXPECT_FALSE(is_it(header, 8, {kAnySource, 3, 5}, seen));
  EXPECT_FALSE(is_it(header, 8, {6, 3, 5}, seen));
  EarlyFrame* const early = reinterpret_cast<EarlyFrame*>(peer);  // Not looked into.
  peer->early = early;
  EXPECT_FALSE(is_it(header, 8, pattern, seen));
  peer->early = nullptr;
}

TEST_F(Expected, OfAPacketWithoutAHeaderNothingIsRead) {
  const std::array<std::byte, kHeaderBytes - 1> packet{};
  ExpectedPlain::Seen seen{};
  EXPECT_FALSE((ExpectedPlain{*at, {7, 3, 5}, kWindow}.is_it(packet, kRoom, seen)));
}

}  // namespace
}  // namespace sterna::net
