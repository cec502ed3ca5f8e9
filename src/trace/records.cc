// The records of a node inside of a whole file, beside its tracks: Perfetto skips their fields.
#include <algorithm>
#include <ostream>

#include "trace/perfetto.h"
#include "trace/proto.h"
#include "trace/reader.h"

namespace sterna::trace {

namespace {

void put(std::uint32_t field, std::span<const std::byte> bytes, std::ostream& to) {
  ProtoWriter content;
  content.bytes(field, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  ProtoWriter outer;
  outer.message(kTracePacketField, content);
  to.write(outer.text().data(), static_cast<std::streamsize>(outer.text().size()));
}

void write_node(std::span<const std::byte> node_file, std::ostream& to) {
  put(kRawHeaderField, node_file.first(std::min(node_file.size(), sizeof(FileHeader))), to);
  for (std::size_t at = kFileHeaderBytes; at < node_file.size(); at += kChunkBytes) {
    std::span<const std::byte> chunk =
        node_file.subspan(at, std::min(kChunkBytes, node_file.size() - at));
    while (!chunk.empty() && chunk.back() == std::byte{}) {
      chunk = chunk.first(chunk.size() - 1);  // Room that was not used.
    }
    // Up to the end of the last record: its kind, never 0, is its last byte.
    if (chunk.size() > sizeof(ChunkHeader)) {
      put(kRawChunkField, chunk, to);
    }
  }
}

/// The records lie beside tracks already: those of this one trace, which are made anew.
void write_whole(std::span<const std::byte> file, std::ostream& to) {
  ProtoReader packets{file};
  for (ProtoField packet; packets.next(packet);) {
    ProtoReader fields{packet.bytes};
    for (ProtoField field; fields.next(field);) {
      if (field.type == ProtoType::bytes &&
          (field.number == kRawHeaderField || field.number == kRawChunkField)) {
        put(field.number, field.bytes, to);
      }
    }
  }
}

}  // namespace

void write_records(std::span<const std::byte> file, std::ostream& to) {
  is_node_file(file) ? write_node(file, to) : write_whole(file, to);
}

}  // namespace sterna::trace
