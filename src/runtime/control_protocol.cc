// How the messages of the control channel are written and read: start, exchange, single numbers.
// Those about ranks are in control_ranks.cc.
#include "runtime/control_protocol.h"

#include <algorithm>

#include "runtime/control_frame.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kHostNameBytesMax = 1024;
constexpr std::size_t kTextBytesMin = 4;

constexpr auto kHello = [](auto& field, auto& hello) {
  field.number(hello.version);
  field.number(hello.pid);
};

// Two tables without counts of their own: the numbers of ranks and nodes stand before them.
constexpr auto kMap = [](auto& field, auto& map) {
  field.number(map.node_index);
  field.number(map.node_count);
  field.number(map.rank_count);
  field.number(map.job_id);
  for (auto& byte : map.secret) {
    field.byte(byte);
  }
  field.refuse_unless(map.node_count != 0 && map.node_count <= kNodeCountMax &&
                      map.rank_count != 0 && map.rank_count <= kRankCountMax &&
                      map.node_index < map.node_count);
  field.table(map.node_of_rank, map.rank_count, sizeof(std::uint32_t), [&](auto& each, auto& node) {
    each.number(node);
    each.refuse_unless(node < map.node_count);
  });
  field.table(map.host_of_node, map.node_count, kTextBytesMin,
              [](auto& each, auto& host) { each.text(host, kHostNameBytesMax); });
};

constexpr auto kJob = [](auto& field, auto& job) {
  field.choice(job.mode, JobMode::process, JobMode::node);
  kMap(field, job.map);
  field.text(job.program, kFrameBodyBytesMax);
  field.list(job.arguments, kTextBytesMin,
             [](auto& each, auto& argument) { each.text(argument, kFrameBodyBytesMax); });
  field.list(job.settings, 2 * kTextBytesMin, [](auto& each, auto& setting) {
    each.text(setting.first, kFrameBodyBytesMax);
    each.text(setting.second, kFrameBodyBytesMax);
  });
};

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
  return write_frame(FrameKind::hello, hello, kHello);
}
Result<Hello> decode_hello(std::span<const std::byte> body) {
  return read_body<Hello>(body, "hello", kHello);
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
  return write_frame(FrameKind::job, job, kJob);
}
Result<Job> decode_job(std::span<const std::byte> body) {
  return read_body<Job>(body, "job", kJob);
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
