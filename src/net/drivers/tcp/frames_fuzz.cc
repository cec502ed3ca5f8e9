// Any stream in any portions: the frame reader stays in its bounds and loses no byte.
#include <algorithm>

#include "net/drivers/tcp/frames.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sterna::net::tcp::FrameReader;
  if (size < 1) {
    return 0;
  }
  const std::size_t portion = data[0] + 1U;
  auto bytes = std::as_bytes(std::span{data + 1, size - 1});
  FrameReader reader;
  sterna::check(reader.init(300), "there is memory");
  std::size_t handed = 0;
  const std::size_t given = bytes.size();
  while (!bytes.empty()) {
    const auto room = reader.room();
    sterna::check(!room.empty(), "a reader that wants more has room");
    const std::size_t count = std::min({portion, bytes.size(), room.size()});
    std::copy_n(bytes.begin(), count, room.begin());
    reader.filled(count);
    bytes = bytes.subspan(count);
    sterna::net::Packet packet;
    for (;;) {
      const auto next = reader.next(packet);
      if (next == FrameReader::Next::more) {
        break;
      }
      if (next != FrameReader::Next::packet) {
        return 0;
      }
      handed += packet.size() + 4;
      sterna::check(packet.size() <= 300 && handed <= given, "a packet lies in the stream");
    }
  }
  return 0;
}
