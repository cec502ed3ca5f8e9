// How launcher and agent write and read their messages.
#include "launch/agent_protocol.h"

#include <cstring>

#include "base/wire.h"

namespace sterna::launch {
namespace {

constexpr std::size_t kRelayHeadBytes = 5;

Error malformed(std::string_view what) {
  return {Errc::malformed,
          "the message '" + std::string{what} + "' between launcher and agent breaks its format"};
}

void write_words(wire::Writer& writer, const std::vector<std::string>& words) {
  writer.u32(static_cast<std::uint32_t>(words.size()));
  for (const std::string& word : words) {
    writer.text(word);
  }
}

std::vector<std::string> read_words(wire::Reader& reader) {
  std::vector<std::string> words;
  const std::uint32_t count = reader.count(4);
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    words.emplace_back(reader.text(runtime::kFrameBodyBytesMax));
  }
  return words;
}

}  // namespace

Frame encode_relay(RelayKind kind, std::uint32_t node, std::span<const std::byte> bytes) {
  Frame frame;
  wire::Writer writer{frame, runtime::kFrameHeaderBytes + runtime::kFrameBodyBytesMax};
  writer.u32(static_cast<std::uint32_t>(kRelayHeadBytes + bytes.size()));
  writer.u16(static_cast<std::uint16_t>(FrameKind::relay));
  writer.u16(0);
  writer.u8(static_cast<std::uint8_t>(kind));
  writer.u32(node);
  writer.raw(bytes);
  check(writer.ok(), "a message to an agent stays within its bound");
  return frame;
}

Frame encode_relay(RelayKind kind, std::uint32_t node, std::string_view text) {
  return encode_relay(kind, node, std::as_bytes(std::span{text}));
}

Result<Relay> decode_relay(std::span<const std::byte> body) {
  wire::Reader reader{body};
  const std::uint8_t kind = reader.u8();
  Relay relay;
  relay.node = reader.u32();
  if (!reader.ok() || kind < static_cast<std::uint8_t>(RelayKind::order) ||
      kind > static_cast<std::uint8_t>(RelayKind::taken) || relay.node >= runtime::kNodeCountMax) {
    return malformed("relay");
  }
  relay.kind = static_cast<RelayKind>(kind);
  relay.bytes = body.subspan(kRelayHeadBytes);
  return relay;
}

std::vector<std::byte> encode_order(const CrewOrder& order) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, runtime::kFrameBodyBytesMax - kRelayHeadBytes};
  writer.u32(runtime::kControlVersion);
  writer.text(order.host);
  writer.u64(order.segment_bytes);
  writer.u32(static_cast<std::uint32_t>(order.processes.size()));
  for (const ProcessOrder& process : order.processes) {
    writer.u32(process.node);
    writer.text(process.directory);
    writer.boolean(process.takes_input);
    write_words(writer, process.arguments);
    write_words(writer, process.environment);
  }
  check(writer.ok(), "the order for one host fits in a message");
  return bytes;
}

Result<CrewOrder> decode_order(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  if (const std::uint32_t version = reader.u32(); version != runtime::kControlVersion) {
    return Error{Errc::refused, "this agent is of another version of Sterna than the launcher"};
  }
  CrewOrder order;
  order.host = reader.text(runtime::kFrameBodyBytesMax);
  order.segment_bytes = reader.u64();
  const std::uint32_t count = reader.count(17);
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    ProcessOrder& process = order.processes.emplace_back();
    process.node = reader.u32();
    process.directory = reader.text(runtime::kFrameBodyBytesMax);
    process.takes_input = reader.boolean();
    process.arguments = read_words(reader);
    process.environment = read_words(reader);
    if (process.arguments.empty() || process.node >= runtime::kNodeCountMax) {
      reader.refuse();
    }
  }
  if (!reader.finished()) {
    return malformed("order");
  }
  return order;
}

std::vector<std::byte> encode_end(const ProcessEnd& end) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 64};
  writer.i32(end.exit_code);
  writer.i32(end.signal);
  writer.u64(end.cpu_ns);
  return bytes;
}

Result<ProcessEnd> decode_end(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  ProcessEnd end;
  end.exit_code = reader.i32();
  end.signal = reader.i32();
  end.cpu_ns = reader.u64();
  if (!reader.finished()) {
    return malformed("ended");
  }
  return end;
}

std::vector<std::byte> encode_taken(std::uint64_t input_bytes) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, sizeof input_bytes};
  writer.u64(input_bytes);
  return bytes;
}

Result<std::uint64_t> decode_taken(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  const std::uint64_t input_bytes = reader.u64();
  if (!reader.finished()) {
    return malformed("taken");
  }
  return input_bytes;
}

}  // namespace sterna::launch
