// Decoding of frames.
#include "net/packets/packet.h"

#include <cstring>

#include "base/wire.h"
#include "net/message.h"

namespace sterna::net {
namespace {

constexpr bool is_between_nodes(FrameKind kind) noexcept {
  return kind >= FrameKind::node;
}

bool is_in_range(const FrameHeader& header, const FrameLimits& limits) noexcept {
  const auto kind = static_cast<std::uint8_t>(header.kind);
  if (kind == 0 || kind > kFrameKindLast || header.priority > kPriorityMax ||
      header.hops > kHopsMax) {
    return false;
  }
  const bool is_node_frame = is_between_nodes(header.kind);
  const bool is_source_node = is_node_frame || header.kind == FrameKind::rank_note;
  return header.source < (is_source_node ? limits.node_count : limits.rank_count) &&
         header.destination < (is_node_frame ? limits.node_count : limits.rank_count);
}

/// What one kind asks for beyond the ranges that all have in common.
bool is_consistent(const FrameHeader& header, const FrameLimits& limits) noexcept {
  const std::uint64_t end = header.total_bytes + header.payload_bytes;
  switch (header.kind) {
    case FrameKind::eager:
      return header.tag >= 0 && header.payload_bytes <= header.total_bytes &&
             (header.payload_bytes != 0 || header.total_bytes == 0);
    case FrameKind::rendezvous: {
      const int one_of =
          header.flags & (kFrameReadable | kFrameWithdrawn | kFrameHeaded | kFrameSought);
      const bool has_word = (one_of & (kFrameReadable | kFrameHeaded)) != 0;
      const bool is_held = (header.flags & kFrameHeld) != 0;
      return header.tag >= 0 && (one_of & (one_of - 1)) == 0 && !(is_held && has_word) &&
             (is_held || one_of != kFrameSought) &&
             header.payload_bytes == (has_word ? sizeof(std::uint64_t) : 0);
    }
    case FrameKind::seek:
      return header.tag >= kAnyTag && header.total_bytes <= ~std::uint32_t{0} &&
             header.payload_bytes == 0;
    case FrameKind::nothing:
      return header.cookie <= 1 && header.payload_bytes == 0;
    case FrameKind::head:
    case FrameKind::eager_more:
      return header.payload_bytes != 0;
    case FrameKind::data:
    case FrameKind::bulk:
      return end >= header.total_bytes;
    case FrameKind::node:
      if ((header.flags & kFrameHasWords) != 0) {
        return are_words_right(header);
      }
      return header.payload_bytes <= header.total_bytes &&
             (header.payload_bytes != 0 || header.total_bytes == 0);
    case FrameKind::moved:
      return header.cookie < limits.rank_count && header.context < limits.node_count &&
             header.payload_bytes == 0;
    case FrameKind::clear:
    case FrameKind::rank_note:
      return true;
    case FrameKind::sample:
      return header.tag > 0 && header.tag <= kSamplePacketsMax && header.payload_bytes != 0;
    case FrameKind::sample_answer:
      return header.payload_bytes == sizeof(SampleAnswer) && header.context <= kSampleLate;
    case FrameKind::sample_result:
      return header.payload_bytes == sizeof(WayCosts) && header.cookie < limits.node_count;
    case FrameKind::claim:
    case FrameKind::finish:
    case FrameKind::matched:
    case FrameKind::credit:
    case FrameKind::bulk_finish:
      return header.payload_bytes == 0;
  }
  return false;
}

}  // namespace

DecodeState decode_frame(std::span<const std::byte>& rest, const FrameLimits& limits,
                         Frame& frame) noexcept {
  if (rest.empty()) {
    return DecodeState::end;
  }
  if (rest.size() < kHeaderBytes) {
    return DecodeState::malformed;
  }
  std::memcpy(&frame.header, rest.data(), kHeaderBytes);
  if (frame.header.payload_bytes > rest.size() - kHeaderBytes ||
      !is_in_range(frame.header, limits) || !is_consistent(frame.header, limits)) {
    return DecodeState::malformed;
  }
  frame.payload = rest.subspan(kHeaderBytes, frame.header.payload_bytes);
  rest = rest.subspan(kHeaderBytes + frame.header.payload_bytes);
  return DecodeState::frame;
}

bool decode_head(std::span<const std::byte> head, std::size_t packet_bytes,
                 const FrameLimits& limits, FrameHeader& header) noexcept {
  if (head.size() < kHeaderBytes) {
    return false;
  }
  std::memcpy(&header, head.data(), kHeaderBytes);
  return header.payload_bytes == packet_bytes - kHeaderBytes && is_in_range(header, limits) &&
         is_consistent(header, limits);
}

bool decode_costs(std::span<const std::byte> payload, WayCosts& costs) noexcept {
  if (payload.size() != sizeof costs) {
    return false;
  }
  std::memcpy(&costs, payload.data(), sizeof costs);
  return are_plausible(costs);
}

bool decode_clear(std::span<const std::byte> payload, const FrameLimits& limits,
                  ClearPayload& clear, RemoteExtents& extents) noexcept {
  wire::Reader reader{payload};
  clear.receive_id = reader.u64();
  clear.bytes_max = reader.u64();
  clear.begin = reader.u64();
  clear.node = reader.u32();
  clear.extent_count = reader.u32();
  if (!reader.ok() || clear.node >= limits.node_count || clear.extent_count > kClearExtentsMax ||
      clear.begin > clear.bytes_max) {
    return false;
  }
  std::uint64_t bytes = 0;
  extents.count = clear.extent_count;
  for (std::uint32_t i = 0; i < clear.extent_count; ++i) {
    extents.pieces[i] = {reader.u64(), reader.u64()};
    if (extents.pieces[i].bytes > clear.bytes_max - bytes) {
      return false;
    }
    bytes += extents.pieces[i].bytes;
  }
  return reader.finished() && (clear.extent_count == 0 || bytes == clear.bytes_max);
}

}  // namespace sterna::net
