// What a node keeps of the messages between it and one other node, which are in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/annotate.h"
#include "base/spin_lock.h"

namespace sterna::net {

/// One that is sent: `has_words`: its head goes in the header of its one frame.
struct NodeMessage {
  std::uint32_t to_node;
  std::uint32_t handler;
  std::span<const std::byte> head;
  std::span<const std::byte> body;
  bool has_words;
};

struct NodeLink {
  SpinLock lock;
  std::uint32_t send_sequence STERNA_GUARDED_BY(lock) = 0;
  // The rest: the poller only.
  std::uint32_t receive_sequence = 0;
  std::map<std::uint32_t, std::vector<std::byte>> early;  // By sequence number: few.
  std::vector<std::byte> assembly;
  /// Nothing has come but whole messages in their turn.
  [[nodiscard]] bool has_all() const noexcept { return early.empty() && assembly.empty(); }
};

}  // namespace sterna::net
