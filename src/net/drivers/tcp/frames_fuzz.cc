// Any stream in any portions, with places for some packets: the frame reader stays in its bounds
// and loses no byte.
#include <algorithm>
#include <vector>

#include "net/drivers/tcp/frames.h"

namespace {

using sterna::check;
using sterna::net::tcp::FrameReader;

constexpr std::size_t kPacketBytesMax = 20'000;

/// Fills the reader with up to `portion` bytes of the stream, as a driver does: to the place of a
/// packet, if it has one, to nowhere, if it has one no more.
void feed(FrameReader& reader, std::vector<std::byte>& place, std::span<const std::byte>& bytes,
          std::size_t portion, unsigned choice) {
  const auto take = [&](std::span<std::byte> room) {
    const std::size_t count = std::min({portion, bytes.size(), room.size()});
    std::copy_n(bytes.begin(), count, room.begin());
    bytes = bytes.subspan(count);
    portion -= count;
    return count;
  };
  if (reader.may_have_place() && choice % 2 == 0) {
    place.resize(reader.packet_bytes() - sterna::net::kPacketHeadBytes);
    reader.begin_placed(place);
  }
  if (!reader.has_place()) {
    const auto room = reader.room();
    check(!room.empty(), "a reader that wants more has room");
    reader.filled(take(room));
  } else if (choice % 3 == 0) {
    reader.passed_between(take(reader.room_between()));
  } else {
    const std::size_t count = take(reader.missing(place));
    reader.filled_placed(count + take(reader.room_behind()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t portion = data[0] * 16U + 1U;
  unsigned choice = data[1];
  auto bytes = std::as_bytes(std::span{data + 2, size - 2});
  FrameReader reader;
  check(reader.init(kPacketBytesMax), "there is memory");
  std::vector<std::byte> place;
  std::size_t handed = 0;
  const std::size_t given = bytes.size();
  while (!bytes.empty()) {
    choice = choice * 5 + 1;
    feed(reader, place, bytes, portion, choice >> 3);
    for (;;) {
      sterna::net::Packet packet;
      const auto next = reader.next(packet);
      if (next == FrameReader::Next::more) {
        break;
      }
      if (next == FrameReader::Next::placed) {
        handed += reader.packet_bytes() + 4;
        reader.end_placed();
      } else if (next == FrameReader::Next::packet) {
        handed += packet.size() + 4;
        check(packet.size() <= kPacketBytesMax, "a packet is bounded");
      } else {
        return 0;
      }
      check(handed <= given, "a packet lies in the stream");
    }
  }
  return 0;
}
