// How the messages of the control channel are written and read.
#include "runtime/control_protocol.h"

#include <algorithm>
#include <cstring>

#include "base/wire.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kHostNameBytesMax = 1024;
constexpr std::size_t kThreadNameBytesMax = 64;
constexpr std::size_t kSentenceBytesMax = 256;

/// A frame under construction: the header is completed at the end.
class FrameWriter {
 public:
  explicit FrameWriter(FrameKind kind) : writer_{frame_, kFrameHeaderBytes + kFrameBodyBytesMax} {
    writer_.u32(0);
    writer_.u16(static_cast<std::uint16_t>(kind));
    writer_.u16(0);
  }
  wire::Writer* operator->() { return &writer_; }
  Frame finish() {
    check(writer_.ok(), "a control frame stays within its bound");
    const auto bytes = static_cast<std::uint32_t>(frame_.size() - kFrameHeaderBytes);
    std::memcpy(frame_.data(), &bytes, sizeof bytes);
    return std::move(frame_);
  }

 private:
  Frame frame_;
  wire::Writer writer_;
};

Error malformed(std::string_view what) {
  return {Errc::malformed, "control channel: the message '" + std::string{what} +
                               "' breaks its format; are launcher and library of one version?"};
}

/// The result, if the body was read well and to its end.
template <typename T>
Result<T> finish(const wire::Reader& reader, T value, std::string_view what) {
  if (!reader.finished()) {
    return malformed(what);
  }
  return value;
}

void write_map(FrameWriter& frame, const net::JobMap& map) {
  frame->u32(map.node_index);
  frame->u32(map.node_count);
  frame->u32(map.rank_count);
  frame->u64(map.job_id);
  frame->raw(map.secret);
  for (const std::uint32_t node : map.node_of_rank) {
    frame->u32(node);
  }
  for (const std::string& host : map.host_of_node) {
    frame->text(host);
  }
}

void read_map(wire::Reader& reader, net::JobMap& map) {
  map.node_index = reader.u32();
  map.node_count = reader.u32();
  map.rank_count = reader.u32();
  map.job_id = reader.u64();
  const std::span<const std::byte> secret = reader.raw(map.secret.size());
  std::copy(secret.begin(), secret.end(), map.secret.begin());
  if (map.node_count == 0 || map.node_count > kNodeCountMax || map.rank_count == 0 ||
      map.rank_count > kRankCountMax || map.node_index >= map.node_count ||
      std::size_t{map.rank_count} * 4 > reader.bytes_left()) {
    reader.refuse();
    return;
  }
  for (std::uint32_t rank = 0; rank < map.rank_count; ++rank) {
    map.node_of_rank.push_back(reader.u32());
    if (map.node_of_rank.back() >= map.node_count) {
      reader.refuse();
    }
  }
  for (std::uint32_t node = 0; node < map.node_count && reader.ok(); ++node) {
    map.host_of_node.emplace_back(reader.text(kHostNameBytesMax));
  }
}

void read_rank_status(wire::Reader& reader, RankStatus& status) {
  status.rank = reader.u32();
  status.state = reader.text(kSentenceBytesMax);
  status.cpu_ns = reader.u64();
  status.load = reader.f64();
  status.messages = reader.u64();
  status.moves = reader.u32();
  status.refusal = reader.text(kSentenceBytesMax);
}

std::string_view shortened(std::string_view text, std::size_t bytes_max) {
  return text.substr(0, bytes_max);
}

}  // namespace

Result<FrameHeader> decode_header(std::span<const std::byte> bytes) noexcept {
  wire::Reader reader{bytes};
  FrameHeader header;
  header.body_bytes = reader.u32();
  const std::uint16_t kind = reader.u16();
  const std::uint16_t zero = reader.u16();
  if (!reader.ok() || zero != 0 || kind < static_cast<std::uint16_t>(FrameKind::hello) ||
      kind > static_cast<std::uint16_t>(FrameKind::relay) ||
      header.body_bytes > kFrameBodyBytesMax) {
    return malformed("header");
  }
  header.kind = static_cast<FrameKind>(kind);
  return header;
}

Frame encode(const Hello& hello) {
  FrameWriter frame{FrameKind::hello};
  frame->u32(hello.version);
  frame->u32(hello.pid);
  return frame.finish();
}

Result<Hello> decode_hello(std::span<const std::byte> body) {
  wire::Reader reader{body};
  Hello hello;
  hello.version = reader.u32();
  hello.pid = reader.u32();
  return finish(reader, hello, "hello");
}

Frame encode(const net::HostShare& host) {
  check(host.nodes.size() == host.bell_fds.size(), "each node of a host has a bell");
  FrameWriter frame{FrameKind::host};
  frame->i32(host.segment_fd);
  frame->u64(host.segment_bytes);
  frame->u32(static_cast<std::uint32_t>(host.nodes.size()));
  for (std::size_t i = 0; i < host.nodes.size(); ++i) {
    frame->u32(host.nodes[i]);
    frame->i32(host.bell_fds[i]);
  }
  return frame.finish();
}

Result<net::HostShare> decode_host(std::span<const std::byte> body) {
  wire::Reader reader{body};
  net::HostShare host;
  host.segment_fd = reader.i32();
  host.segment_bytes = reader.u64();
  const std::uint32_t count = reader.count(8);
  for (std::uint32_t i = 0; i < count; ++i) {
    host.nodes.push_back(reader.u32());
    host.bell_fds.push_back(reader.i32());
    if (host.nodes.back() >= kNodeCountMax) {
      reader.refuse();
    }
  }
  return finish(reader, std::move(host), "host");
}

Frame encode(const Job& job) {
  FrameWriter frame{FrameKind::job};
  frame->u8(static_cast<std::uint8_t>(job.mode));
  write_map(frame, job.map);
  frame->text(job.program);
  frame->u32(static_cast<std::uint32_t>(job.arguments.size()));
  for (const std::string& argument : job.arguments) {
    frame->text(argument);
  }
  frame->u32(static_cast<std::uint32_t>(job.settings.size()));
  for (const auto& [name, value] : job.settings) {
    frame->text(name);
    frame->text(value);
  }
  return frame.finish();
}

Result<Job> decode_job(std::span<const std::byte> body) {
  wire::Reader reader{body};
  Job job;
  const std::uint8_t mode = reader.u8();
  if (mode > static_cast<std::uint8_t>(JobMode::node)) {
    reader.refuse();
  }
  job.mode = static_cast<JobMode>(mode);
  read_map(reader, job.map);
  job.program = reader.text(kFrameBodyBytesMax);
  const std::uint32_t argument_count = reader.count(4);
  for (std::uint32_t i = 0; i < argument_count; ++i) {
    job.arguments.emplace_back(reader.text(kFrameBodyBytesMax));
  }
  const std::uint32_t setting_count = reader.count(8);
  for (std::uint32_t i = 0; i < setting_count; ++i) {
    std::string name{reader.text(kFrameBodyBytesMax)};
    job.settings.emplace_back(std::move(name), reader.text(kFrameBodyBytesMax));
  }
  return finish(reader, std::move(job), "job");
}

Frame encode(const RankEnd& end) {
  FrameWriter frame{FrameKind::ended};
  frame->u32(end.rank);
  frame->i32(end.exit_code);
  return frame.finish();
}

Result<RankEnd> decode_ended(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankEnd end;
  end.rank = reader.u32();
  end.exit_code = reader.i32();
  return finish(reader, end, "ended");
}

Frame encode(const RankAbort& abort) {
  FrameWriter frame{FrameKind::abort};
  frame->u32(abort.rank);
  frame->i32(abort.code);
  frame->text(shortened(abort.text, kControlTextBytesMax));
  return frame.finish();
}

Result<RankAbort> decode_abort(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankAbort abort;
  abort.rank = reader.u32();
  abort.code = reader.i32();
  abort.text = reader.text(kControlTextBytesMax);
  return finish(reader, std::move(abort), "abort");
}

std::size_t encode_crash(const RankCrash& crash,
                         std::span<std::byte, kCrashFrameBytesMax> memory) noexcept {
  wire::Writer writer{memory};
  writer.u32(0);
  writer.u16(static_cast<std::uint16_t>(FrameKind::crash));
  writer.u16(0);
  writer.u32(crash.rank);
  writer.i32(crash.signal);
  writer.u64(crash.address);
  writer.u64(crash.instruction);
  writer.text(shortened(crash.thread, kThreadNameBytesMax));
  writer.text(shortened(crash.text, kSentenceBytesMax));
  check(writer.ok(), "a crash report stays within its bound");
  const auto body_bytes = static_cast<std::uint32_t>(writer.bytes() - kFrameHeaderBytes);
  std::memcpy(memory.data(), &body_bytes, sizeof body_bytes);
  return writer.bytes();
}

Result<RankCrash> decode_crash(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankCrash crash;
  crash.rank = reader.u32();
  crash.signal = reader.i32();
  crash.address = reader.u64();
  crash.instruction = reader.u64();
  crash.thread = reader.text(kThreadNameBytesMax);
  crash.text = reader.text(kSentenceBytesMax);
  return finish(reader, crash, "crash");
}

Frame encode(const RankOutput& output) {
  check(output.bytes.size() <= kOutputBytesMax, "an output message stays within its bound");
  FrameWriter frame{FrameKind::output};
  frame->u32(output.rank);
  frame->u8(static_cast<std::uint8_t>(output.stream));
  frame->blob(output.bytes);
  return frame.finish();
}

Result<RankOutput> decode_output(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankOutput output;
  output.rank = reader.u32();
  const std::uint8_t stream = reader.u8();
  if (stream != 1 && stream != 2) {
    reader.refuse();
  }
  output.stream = static_cast<OutputStream>(stream);
  output.bytes = reader.blob(kOutputBytesMax);
  return finish(reader, output, "output");
}

Frame encode(const NodeStatus& status) {
  FrameWriter frame{FrameKind::status};
  frame->u32(status.node);
  frame->u32(status.workers);
  frame->boolean(status.is_final);
  frame->u64(status.cpu_ns);
  frame->u64(status.arrived);
  frame->u64(status.left);
  frame->u32(static_cast<std::uint32_t>(status.ranks.size()));
  for (const RankStatus& rank : status.ranks) {
    frame->u32(rank.rank);
    frame->text(shortened(rank.state, kSentenceBytesMax));
    frame->u64(rank.cpu_ns);
    frame->f64(rank.load);
    frame->u64(rank.messages);
    frame->u32(rank.moves);
    frame->text(shortened(rank.refusal, kSentenceBytesMax));
  }
  frame->u32(static_cast<std::uint32_t>(status.refusals.size()));
  for (const auto& [reason, count] : status.refusals) {
    frame->text(shortened(reason, kSentenceBytesMax));
    frame->u64(count);
  }
  return frame.finish();
}

Result<NodeStatus> decode_status(std::span<const std::byte> body) {
  wire::Reader reader{body};
  NodeStatus status;
  status.node = reader.u32();
  status.workers = reader.u32();
  status.is_final = reader.boolean();
  status.cpu_ns = reader.u64();
  status.arrived = reader.u64();
  status.left = reader.u64();
  const std::uint32_t rank_count = reader.count(40);
  for (std::uint32_t i = 0; i < rank_count && reader.ok(); ++i) {
    read_rank_status(reader, status.ranks.emplace_back());
  }
  const std::uint32_t refusal_count = reader.count(12);
  for (std::uint32_t i = 0; i < refusal_count && reader.ok(); ++i) {
    std::string reason{reader.text(kSentenceBytesMax)};
    status.refusals.emplace_back(std::move(reason), reader.u64());
  }
  return finish(reader, std::move(status), "status");
}

Frame encode(const MoveOrder& order) {
  FrameWriter frame{FrameKind::move};
  frame->u32(order.rank);
  frame->u32(order.node);
  return frame.finish();
}

Result<MoveOrder> decode_move(std::span<const std::byte> body) {
  wire::Reader reader{body};
  MoveOrder order;
  order.rank = reader.u32();
  order.node = reader.u32();
  return finish(reader, order, "move");
}

Frame encode(const RankMove& move) {
  FrameWriter frame{FrameKind::moved};
  frame->u32(move.rank);
  frame->u32(move.node);
  frame->u64(move.move);
  return frame.finish();
}

Result<RankMove> decode_moved(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankMove move;
  move.rank = reader.u32();
  move.node = reader.u32();
  move.move = reader.u64();
  return finish(reader, move, "moved");
}

Frame encode_exchange(std::span<const std::byte> blob) {
  check(blob.size() <= kExchangeBlobBytesMax, "a blob to exchange stays within its bound");
  FrameWriter frame{FrameKind::exchange};
  frame->raw(blob);
  return frame.finish();
}

Frame encode_blobs(std::span<const std::vector<std::byte>> blobs) {
  FrameWriter frame{FrameKind::blobs};
  frame->u32(static_cast<std::uint32_t>(blobs.size()));
  for (const std::vector<std::byte>& blob : blobs) {
    frame->blob(blob);
  }
  return frame.finish();
}

Result<std::vector<std::vector<std::byte>>> decode_blobs(std::span<const std::byte> body) {
  wire::Reader reader{body};
  std::vector<std::vector<std::byte>> blobs;
  const std::uint32_t count = reader.count(4);
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    const std::span<const std::byte> blob = reader.blob(kExchangeBlobBytesMax);
    blobs.emplace_back(blob.begin(), blob.end());
  }
  return finish(reader, std::move(blobs), "blobs");
}

Frame encode_index(FrameKind kind, std::uint32_t index) {
  FrameWriter frame{kind};
  frame->u32(index);
  return frame.finish();
}

Frame encode_empty(FrameKind kind) {
  return FrameWriter{kind}.finish();
}

Result<std::uint32_t> decode_index(std::span<const std::byte> body) {
  wire::Reader reader{body};
  const std::uint32_t index = reader.u32();
  return finish(reader, index, "index");
}

}  // namespace sterna::runtime
