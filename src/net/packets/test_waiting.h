// For the tests of strategies: frames that wait, and the packets that are formed of them.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/packets/forming.h"
#include "net/packets/packet.h"

namespace sterna::net {

using Tags = std::vector<std::int32_t>;

/// Frames that wait, in a list as a gate has it.
class Waiting {
 public:
  ~Waiting() {
    while (frames.first != nullptr) {
      HeldPacket* const packet = frames.first;
      frames.first = packet->next;
      pool.release(packet);
    }
  }
  /// Of `bytes` bytes with its header, from rank `source` to rank 0.
  void add(std::uint32_t bytes, std::uint32_t source = 1, FrameKind kind = FrameKind::eager,
           std::uint8_t priority = 0) {
    FrameHeader header;
    header.kind = kind;
    header.source = source;
    header.priority = priority;
    header.payload_bytes = bytes - static_cast<std::uint32_t>(kHeaderBytes);
    header.total_bytes = header.payload_bytes;
    header.tag = count_++;
    header.context = 7;
    const std::vector<std::byte> payload(header.payload_bytes);
    const Piece pieces[2] = {std::as_bytes(std::span{&header, 1}), payload};
    HeldPacket* const packet = pool.copy(pieces);
    (frames.last != nullptr ? frames.last->next : frames.first) = packet;
    frames.last = packet;
  }
  /// The tags of the next packet, which goes.
  std::vector<std::int32_t> form(const Strategy& strategy, const PacketLimits& limits) {
    Formed formed;
    form_packet(frames, strategy, limits, passed_over, formed);
    broken_rule = formed.broken_rule != nullptr ? formed.broken_rule : "";
    take_out(frames, formed);
    passed_over = formed.passed_over;
    std::vector<std::int32_t> tags;
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < formed.count; ++i) {
      FrameHeader header;
      std::memcpy(&header, formed.packets[i]->data(), kHeaderBytes);
      tags.push_back(header.tag);
      bytes += formed.packets[i]->bytes;
      pool.release(formed.packets[i]);
    }
    EXPECT_LE(bytes, limits.packet_bytes_max);
    return tags;
  }

  PacketPool pool;
  WaitingFrames frames;
  std::uint32_t passed_over = 0;
  std::string broken_rule;

 private:
  std::int32_t count_ = 0;
};

}  // namespace sterna::net
