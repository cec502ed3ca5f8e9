// A recording of one driver of one node: every packet that it sent and that came, and every loss,
// in the order of the node, with times. Written by decorator `record`, read by driver `replay`.
//
// A file is a header, then events; one that ends within an event (its node was killed) ends before
// it. The last event of a node that was not is `ended`. Little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "net/driver.h"

namespace sterna::net::record {

inline constexpr std::uint64_t kMagic = 0x3130434552'5453;  // "STREC01"
inline constexpr std::uint32_t kNodesMax = 4096;
inline constexpr std::uint32_t kPacketBytesMax = 16 << 20;

struct Header {
  std::uint32_t node = 0;
  std::uint32_t node_count = 0;
  std::uint32_t packet_bytes_max = 0;
  bool is_ordered = true;
  bool is_reliable = true;
};

enum class EventKind : std::uint8_t { sent, came, lost, ended };
inline constexpr auto kEventKindLast = EventKind::ended;

struct Event {
  EventKind kind = EventKind::sent;
  std::uint32_t peer = 0;   // Of `ended`: the node itself.
  std::uint64_t at_ns = 0;  // Of the machine's clock.
  Packet packet{};          // Of `lost`: the reason. Points into what was read.
};

void append(std::vector<std::byte>& to, const Header& header);
void append(std::vector<std::byte>& to, const Event& event);

struct Recording {
  Header header;
  std::vector<Event> events;
};

/// Fails with malformed. The bytes may come from anywhere; events point into them.
[[nodiscard]] Result<Recording> read_recording(std::span<const std::byte> bytes);

}  // namespace sterna::net::record
