// How the messages of the control channel are written and read: start, exchange, single numbers.
// Those about ranks are in control_ranks.cc.
#include "runtime/control_protocol.h"

#include <algorithm>

#include "runtime/control_frame.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kHostNameBytesMax = 1024;

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
