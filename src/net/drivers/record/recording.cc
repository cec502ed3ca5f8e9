// Writes and reads recordings.
#include "net/drivers/record/recording.h"

#include "base/wire.h"

namespace sterna::net::record {

void append(std::vector<std::byte>& to, const Header& header) {
  wire::Writer writer{to, to.size() + 64};
  writer.u64(kMagic);
  writer.u32(header.node);
  writer.u32(header.node_count);
  writer.u32(header.packet_bytes_max);
  writer.boolean(header.is_ordered);
  writer.boolean(header.is_reliable);
  check(writer.ok(), "the header of a recording fits");
}

void append(std::vector<std::byte>& to, const Event& event) {
  wire::Writer writer{to, to.size() + event.packet.size() + 64};
  writer.u8(static_cast<std::uint8_t>(event.kind));
  writer.u32(event.peer);
  writer.u64(event.at_ns);
  writer.blob(event.packet);
  check(writer.ok(), "an event of a recording fits");
}

Result<Recording> read_recording(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  Recording recording;
  Header& header = recording.header;
  const bool is_ours = reader.u64() == kMagic;
  header.node = reader.u32();
  header.node_count = reader.u32();
  header.packet_bytes_max = reader.u32();
  header.is_ordered = reader.boolean();
  header.is_reliable = reader.boolean();
  if (!reader.ok() || !is_ours || header.node_count > kNodesMax ||
      header.node >= header.node_count || header.packet_bytes_max < kPacketBytesMin ||
      header.packet_bytes_max > kPacketBytesMax) {
    return Error{Errc::malformed, "it is no recording of a network driver of this version"};
  }
  while (!reader.finished()) {
    Event event;
    const std::uint8_t kind = reader.u8();
    event.peer = reader.u32();
    event.at_ns = reader.u64();
    event.packet = reader.blob(header.packet_bytes_max);
    if (!reader.ok()) {
      break;  // It ends within an event.
    }
    event.kind = static_cast<EventKind>(kind);
    const bool is_packet = event.kind == EventKind::sent || event.kind == EventKind::came;
    const bool is_own = event.kind == EventKind::ended;
    if (kind > static_cast<std::uint8_t>(kEventKindLast) || event.peer >= header.node_count ||
        (event.peer == header.node) != is_own || (is_packet && event.packet.empty())) {
      return Error{Errc::malformed, "an event of the recording makes no sense"};
    }
    recording.events.push_back(event);
  }
  return recording;
}

}  // namespace sterna::net::record
