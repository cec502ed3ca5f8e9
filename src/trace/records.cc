// The records of a node inside of a whole file, beside its tracks: Perfetto skips their fields.
#include <algorithm>
#include <ostream>

#include "trace/perfetto.h"
#include "trace/proto.h"

namespace sterna::trace {

void write_records(std::span<const std::byte> node_file, std::ostream& to) {
  const auto put = [&](std::uint32_t field, std::span<const std::byte> bytes) {
    ProtoWriter content;
    content.bytes(field, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    ProtoWriter outer;
    outer.message(kTracePacketField, content);
    to.write(outer.text().data(), static_cast<std::streamsize>(outer.text().size()));
  };
  put(kRawHeaderField, node_file.first(std::min(node_file.size(), sizeof(FileHeader))));
  for (std::size_t at = kFileHeaderBytes; at < node_file.size(); at += kChunkBytes) {
    std::span<const std::byte> chunk =
        node_file.subspan(at, std::min(kChunkBytes, node_file.size() - at));
    while (!chunk.empty() && chunk.back() == std::byte{}) {
      chunk = chunk.first(chunk.size() - 1);  // Room that was not used.
    }
    // Up to the end of the last record: its kind, never 0, is its last byte.
    if (chunk.size() > sizeof(ChunkHeader)) {
      put(kRawChunkField, chunk);
    }
  }
}

}  // namespace sterna::trace
