// Messages between nodes that are one packet each: made where the driver sends them from, taken
// from where they have come.
#include <algorithm>
#include <cstring>

#include "net/buffer.h"
#include "net/core.h"
#include "net/nodes/node_frame.h"

namespace sterna::net {

/// One frame, made where the driver sends it from, if the way is free (see short.cc). False:
/// nothing happened. Flat: what it calls is short.
[[gnu::flatten]] bool TransportCore::try_node_short(const NodeMessage& message) noexcept {
  Gate& gate = gates_[message.to_node];
  if (!gate.is_open()) {
    return false;
  }
  Channel* channel = nullptr;
  bool must_ring = false;
  {
    const Gate::Turn turn{gate, kAnyRoute};
    channel = turn.idle_channel();
    if (channel == nullptr) {
      return false;
    }
    NodeLink& link = links_[message.to_node];
    // Before anything is written: to take it waits for what was, in lines that are the peer's.
    const SpinGuard guard{link.lock};
    const std::size_t of_head = message.has_words ? 0 : message.head.size();
    const auto bytes = static_cast<std::uint32_t>(of_head + message.body.size());
    std::byte* const place = channel->try_place(static_cast<std::uint32_t>(kHeaderBytes) + bytes);
    if (place == nullptr) {
      return false;
    }
    // The receiver looks at the line of the header all the time, and each look takes it away: so
    // that is written last.
    std::byte* const payload = place + kHeaderBytes;
    copy_bytes(payload + of_head, message.body.data(), message.body.size());
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (message.has_words) [[likely]] {
      WordsFrame{node_, message.to_node, link.send_sequence}.write(
          place, message.handler, HeadWords{message.head}, bytes);
    } else {
      copy_bytes(payload, message.head.data(), of_head);
      // Field by field where it is sent from, as in send_placed().
      auto& sent = *::new (place) FrameHeader;
      describe(sent, {node_, message.to_node, message.handler}, message.head, bytes, false);
      sent.payload_bytes = bytes;
      sent.sequence = link.send_sequence;
    }
    if (channel->send_placed(must_ring) != SendState::accepted) {
      return false;
    }
    ++link.send_sequence;
  }
  if (must_ring) [[unlikely]] {
    channel->ring();
  }
  return true;
}

/// A packet that is a whole message between nodes, in its turn, as nearly all are. False: it is
/// something else, and nothing has happened.
bool TransportCore::accept_whole(std::uint32_t from_node, Packet packet) noexcept {
  if (from_node >= limits_.node_count) {
    return false;
  }
  NodeLink& link = links_[from_node];
  const WordsFrame next{from_node, node_, link.receive_sequence};
  if (!next.begins(packet)) {
    return accept_wordless(link, from_node, packet);
  }
  const HeadWords head = HeadWords::of(packet);
  const std::uint64_t handler_id = WordsFrame::handler_of(packet);
  if (!next.is_next(packet) || !head.has_right_size() || handler_id >= kHandlerCount ||
      !link.has_all()) {
    return false;
  }
  const CoreHandler& handler = handlers_[handler_id];
  if (handler.node == nullptr) {
    return false;
  }
  ++link.receive_sequence;
  handler.node(handler.node_context, from_node, head.bytes(), packet.subspan(kHeaderBytes));
  return true;
}

/// One without words.
bool TransportCore::accept_wordless(NodeLink& link, std::uint32_t from_node,
                                    Packet packet) noexcept {
  FrameHeader header;
  std::memcpy(&header, packet.data(), kHeaderBytes);
  const std::span<const std::byte> payload = packet.subspan(kHeaderBytes);
  if (header.flags != 0 || header.total_bytes != payload.size() ||
      header.payload_bytes != payload.size() || header.source != from_node || header.hops != 0 ||
      header.destination != node_ || header.priority != 0 || header.cookie >= kHandlerCount) {
    return false;
  }
  const CoreHandler& handler = handlers_[header.cookie];
  if (header.sequence != link.receive_sequence || handler.node == nullptr || !link.has_all()) {
    return false;
  }
  ++link.receive_sequence;
  handler.node(handler.node_context, from_node, {}, payload);
  return true;
}

bool TransportCore::may_await_node(std::uint32_t node) noexcept {
  return !is_serial_ && looked_at_ != nullptr && gates_[node].driver() == looked_at_ &&
         is_nothing_left() && count_look();
}

bool TransportCore::try_await_node(const AwaitedWord& awaited, std::uint64_t& bytes) noexcept {
  NodeLink& link = links_[awaited.node];
  const WordsFrame next{awaited.node, node_, link.receive_sequence};
  Driver::Sight seen;
  if (!link.has_all() || !sight_beside(seen) || !next.begins(seen.packet) ||
      !next.is_next(seen.packet) || !WordsFrame::is_word(seen.packet, awaited.word) ||
      WordsFrame::handler_of(seen.packet) != awaited.handler || seen.from_node != awaited.node) {
    return false;
  }
  ++link.receive_sequence;
  bytes = seen.packet.size() - kHeaderBytes;
  copy_bytes(awaited.into.data(), seen.packet.data() + kHeaderBytes,
             std::min<std::size_t>(bytes, awaited.into.size()));
  looked_at_->pass_sight();
  return true;
}

}  // namespace sterna::net
