// The stream of a connection in any portions: packets come out as they went in, whatever padding
// stands before them; and what padding is for.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/drivers/tcp/frames.h"

namespace sterna::net::tcp {
namespace {

constexpr std::size_t kPacketBytesMax = 40'000;

struct Stream {
  void add(std::size_t padding_bytes, std::string packet) {
    const FrameStart start{static_cast<std::uint32_t>(packet.size()), padding_bytes};
    bytes.append(reinterpret_cast<const char*>(start.bytes().data()), start.bytes().size());
    bytes += packet;
    packets.push_back(std::move(packet));
  }
  std::string bytes;
  std::vector<std::string> packets;
};

/// Every amount of padding that we send, before packets short and long.
Stream make_stream() {
  Stream stream;
  for (std::size_t padding = kLengthBytes; padding <= kStartBytesMax - kLengthBytes; ++padding) {
    stream.add(0, std::string(1 + padding % 5, 's'));
    stream.add(padding, std::string(padding * 100, static_cast<char>('a' + padding % 26)));
    stream.add(padding, std::string(9000 + padding, static_cast<char>('A' + padding % 26)));
  }
  return stream;
}

/// Takes what is there, a long packet to `place` once it has one.
void take_packets(FrameReader& reader, std::string& place, std::vector<std::string>& taken) {
  for (;;) {
    Packet packet;
    const FrameReader::Next next = reader.next(packet);
    if (next == FrameReader::Next::packet) {
      taken.emplace_back(reinterpret_cast<const char*>(packet.data()), packet.size());
    } else if (next == FrameReader::Next::placed) {
      taken.push_back(std::string{reinterpret_cast<const char*>(reader.head().data()),
                                  reader.head().size()} +
                      place);
      reader.end_placed();
    } else {
      ASSERT_EQ(next, FrameReader::Next::more);
      return;
    }
  }
}

/// As the driver receives; `portion`: of one call of the system.
std::vector<std::string> read_all(const std::string& bytes, bool places, auto&& portion) {
  FrameReader reader;
  EXPECT_TRUE(reader.init(kPacketBytesMax));
  std::string place;
  std::vector<std::string> taken;
  auto left = std::as_bytes(std::span{bytes});
  while (!left.empty()) {
    std::size_t most = portion();
    const auto fill = [&](std::span<std::byte> room) {
      const std::size_t count = std::min({room.size(), left.size(), most});
      std::copy_n(left.begin(), count, room.begin());
      left = left.subspan(count);
      most -= count;
      return count;
    };
    if (places && reader.may_have_place()) {
      place.resize(reader.packet_bytes() - kPacketHeadBytes);
      reader.begin_placed(std::as_writable_bytes(std::span{place}));
    }
    if (reader.has_place()) {
      const std::size_t count = fill(reader.missing(std::as_writable_bytes(std::span{place})));
      reader.filled_placed(count + fill(reader.room_behind()));
    } else {
      reader.filled(fill(reader.room()));
    }
    take_packets(reader, place, taken);
  }
  EXPECT_TRUE(reader.holds_no_packet());
  return taken;
}

TEST(Frames, PaddingIsPassedOverInAnyPortions) {
  const Stream stream = make_stream();
  Random random{7};
  for (const bool places : {false, true}) {
    EXPECT_EQ(read_all(stream.bytes, places, [] { return std::size_t{1}; }), stream.packets);
    for (const std::size_t most : {20U, 70U, 500U, 50'000U}) {
      EXPECT_EQ(
          read_all(stream.bytes, places, [&] { return std::size_t{1} + random.below(most); }),
          stream.packets);
    }
  }
}

TEST(Frames, PaddingThatHasNotComeWholeIsNoPacket) {
  FrameReader reader;
  ASSERT_TRUE(reader.init(kPacketBytesMax));
  const FrameStart start{100, 60};
  const std::span<const std::byte> bytes = start.bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    reader.room()[0] = bytes[i];
    reader.filled(1);
    Packet packet;
    EXPECT_EQ(reader.next(packet), FrameReader::Next::more);
    EXPECT_FALSE(reader.may_have_place());
    EXPECT_TRUE(reader.holds_no_packet());
  }
}

/// How many bytes it would receive into its empty memory after these packets, each with a place if
/// it is long.
std::size_t first_bytes_after(std::initializer_list<std::size_t> packets) {
  FrameReader reader;
  EXPECT_TRUE(reader.init(kPacketBytesMax));
  std::string place;
  std::vector<std::string> taken;
  for (const std::size_t bytes : packets) {
    Stream stream;
    stream.add(0, std::string(bytes, 'x'));
    auto left = std::as_bytes(std::span{stream.bytes});
    while (!left.empty()) {
      if (reader.may_have_place()) {
        place.resize(reader.packet_bytes() - kPacketHeadBytes);
        reader.begin_placed(std::as_writable_bytes(std::span{place}));
      }
      const std::span<std::byte> room =
          reader.has_place() ? reader.missing(std::as_writable_bytes(std::span{place}))
                             : reader.room();
      const std::size_t count = std::min(room.size(), left.size());
      std::copy_n(left.begin(), count, room.begin());
      left = left.subspan(count);
      reader.has_place() ? reader.filled_placed(count) : reader.filled(count);
      take_packets(reader, place, taken);
    }
  }
  EXPECT_EQ(taken.size(), packets.size());
  return reader.room().size();
}

TEST(Frames, FewBytesAreReceivedBeforeAPacketThatMayHaveItsPlace) {
  const std::size_t is_long = 30'000;
  EXPECT_EQ(first_bytes_after({}), kFirstBytes);
  EXPECT_EQ(first_bytes_after({100, 100}), kFirstBytes);
  EXPECT_EQ(first_bytes_after({is_long}), kLeadBytes);
  EXPECT_EQ(first_bytes_after({is_long, 100}), kLeadBytes) << "the next one's announcement";
  EXPECT_EQ(first_bytes_after({is_long, 100, 100}), kLeadBytes) << "each alone";
  EXPECT_EQ(first_bytes_after({is_long, 1000}), kFirstBytes);
  EXPECT_EQ(first_bytes_after({is_long, 1000, is_long}), kLeadBytes);
}

/// As the kernel's memory does: padding_before().
TEST(Frames, MemoryToReceiveIntoBeginsOnAPage) {
  FrameReader reader;
  for (const std::size_t packet_bytes_max : {100U, 70'000U}) {
    ASSERT_TRUE(reader.init(packet_bytes_max));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reader.room().data()) % 4096, 0U);
  }
}

TEST(Frames, OnlyWhatWouldLieBadlyIsPaddedAndThenLiesWell) {
  for (const std::size_t before : {4U, 52U, 112U, 5000U}) {
    for (std::uintptr_t address = 0x7000'0000; address < 0x7000'1000; ++address) {
      const std::size_t padding =
          padding_before(before, reinterpret_cast<const std::byte*>(address));
      const auto distance = [&](std::size_t moved) { return (before + moved - address) % 4096; };
      const bool was_bad =
          distance(0) != 0 && (distance(0) < 64 || distance(0) > 4096 - 64);
      ASSERT_EQ(padding != 0, was_bad);
      if (padding != 0) {
        ASSERT_GE(padding, kLengthBytes);
        ASSERT_LE(padding + kLengthBytes, kStartBytesMax);
        ASSERT_GE(distance(padding), 64U);
        ASSERT_LE(distance(padding), 4096U - 64);
      }
    }
  }
}

}  // namespace
}  // namespace sterna::net::tcp
