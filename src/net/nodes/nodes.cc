// Messages between nodes, in order, and notes to the node of a rank.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "net/buffer.h"
#include "net/core.h"
#include "net/nodes/node_frame.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

// Parts that came before their turn, of one node: drivers without order make them, and threads that
// lose their processor between number and packet.
constexpr std::uint32_t kEarlyPartsMax = 1 << 16;
constexpr std::size_t kFollowedBytesMax = 4096;  // Copied, to go with the next frame.

}  // namespace

void TransportCore::wake() noexcept {
  if (progress::Progress* progress = progress_.load(std::memory_order_acquire);
      progress != nullptr) {
    progress->wake_for_source();
  }
}

Result<> TransportCore::node_message(std::uint32_t to_node, std::uint32_t handler,
                                     std::span<const std::byte> head,
                                     std::span<const std::byte> body,
                                     std::uint64_t followed_by) noexcept {
  check(to_node < limits_.node_count && handler < kHandlerCount,
        "a message to a node names a node of the job and a handler");
  const std::size_t total_bytes = head.size() + body.size();
  check(total_bytes <= kNodeMessageBytesMax, "a message to a node is not longer than the bound");
  const bool is_here = to_node == node_;
  const bool has_words =
      !head.empty() && head.size() <= kWordsBytes && body.size() <= frame_payload_max_ && !is_here;
  // What is left for the payload, from there on.
  std::size_t offset = has_words ? head.size() : 0;
  if (!is_here && total_bytes - offset <= frame_payload_max_ &&
      try_node_short({to_node, handler, head, body, has_words})) [[likely]] {
    return Done{};
  }
  FrameHeader header;
  describe(header, {node_, to_node, handler}, head, total_bytes, has_words);
  if (is_here) {
    header.payload_bytes = static_cast<std::uint32_t>(total_bytes);
    const Piece pieces[3] = {std::as_bytes(std::span{&header, 1}), head, body};
    own_messages_.push(*pool_.copy(pieces));
    wake();
    return Done{};
  }
  const std::uint32_t frame_count =
      total_bytes == offset
          ? 1
          : static_cast<std::uint32_t>((total_bytes - offset + frame_payload_max_ - 1) /
                                       frame_payload_max_);
  {
    NodeLink& link = links_[to_node];
    const SpinGuard guard{link.lock};
    header.sequence = link.send_sequence;
    link.send_sequence += frame_count;
  }
  const bool is_followed = followed_by != 0 && frame_count == 1 && gates_[to_node].is_open() &&
                           total_bytes <= kFollowedBytesMax;
  for (std::uint32_t i = 0; i < frame_count; ++i) {
    const std::size_t bytes = std::min<std::size_t>(frame_payload_max_, total_bytes - offset);
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    // What is in this frame of the head, and of the body behind it.
    const std::size_t in_head = std::min(head.size() - std::min(head.size(), offset), bytes);
    const std::size_t body_from = offset + in_head - head.size();
    const Extent extents[2] = {
        {const_cast<std::byte*>(in_head == 0 ? nullptr : head.data() + offset), in_head},
        {const_cast<std::byte*>(bytes == in_head ? nullptr : body.data() + body_from),
         bytes - in_head}};
    if (!send_to_node(to_node, header, {nullptr, bytes, extents, 2},
                      is_followed ? Sender::follows : Sender::waits)) {
      return Error{Errc::closed, fmt::format("node {} is gone", to_node)};
    }
    offset += bytes;
    ++header.sequence;
  }
  return Done{};
}

std::uint32_t TransportCore::deliver_own() noexcept {
  std::uint32_t count = 0;
  while (count < options_.poll_packets_max) {
    HeldPacket* packet = own_messages_.pop();
    if (packet == nullptr) {
      break;
    }
    FrameHeader header;
    std::memcpy(&header, packet->data(), kHeaderBytes);
    const CoreHandler& handler = handlers_[header.cookie];
    check(handler.node != nullptr, "a message to this node names a handler that is registered");
    handler.node(handler.node_context, node_, {}, packet->packet().subspan(kHeaderBytes));
    pool_.release(packet);
    ++count;
  }
  return count;
}

void TransportCore::accept_node_frame(std::uint32_t from_node, const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  if (header.source != from_node || header.destination != node_) {
    refuse(header, "it is not from the node that sent it, or not for this one");
    return;
  }
  switch (header.kind) {
    case FrameKind::moved:
      learn(static_cast<std::uint32_t>(header.cookie), header.context, header.sequence);
      return;
    case FrameKind::bulk:
    case FrameKind::bulk_finish:
      accept_bulk(from_node, frame);
      return;
    case FrameKind::sample:
    case FrameKind::sample_answer:
    case FrameKind::sample_result:
      sampler_.accept(from_node, frame);
      return;
    default:
      break;
  }
  NodeLink& link = links_[from_node];
  const auto ahead = static_cast<std::int32_t>(header.sequence - link.receive_sequence);
  if (ahead != 0) {
    if (ahead < 0) {
      refuse(header, "it came twice");
      return;
    }
    if (link.early.size() >= kEarlyPartsMax) {
      lose_node(from_node, "one part of a message does not come, and too many after it have");
      return;
    }
    const auto* bytes = reinterpret_cast<const std::byte*>(&header);
    std::vector<std::byte>& kept = link.early[header.sequence];
    kept.assign(bytes, bytes + kHeaderBytes);
    kept.insert(kept.end(), frame.payload.begin(), frame.payload.end());
    return;
  }
  accept_node_part(from_node, link, frame);
  for (auto next = link.early.find(link.receive_sequence); next != link.early.end();
       next = link.early.find(link.receive_sequence)) {
    const std::vector<std::byte> kept = std::move(next->second);
    link.early.erase(next);
    Frame early;
    std::memcpy(&early.header, kept.data(), kHeaderBytes);
    early.payload = std::span{kept}.subspan(kHeaderBytes);
    accept_node_part(from_node, link, early);
  }
}

void TransportCore::accept_node_part(std::uint32_t from_node, NodeLink& link,
                                     const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  ++link.receive_sequence;
  const bool is_known = header.cookie < kHandlerCount && handlers_[header.cookie].node != nullptr;
  if ((header.flags & kFrameHasWords) != 0 && is_known && link.assembly.empty()) {
    const CoreHandler& handler = handlers_[header.cookie];
    const HeadWords head{header};
    handler.node(handler.node_context, from_node, head.bytes(), frame.payload);
    return;
  }
  if (!is_known || (header.flags & kFrameHasWords) != 0 ||
      header.total_bytes > kNodeMessageBytesMax ||
      header.payload_bytes >
          header.total_bytes - std::min<std::uint64_t>(link.assembly.size(), header.total_bytes)) {
    refuse(header, "its handler or its length is not one of a message between nodes");
    link.assembly.clear();
    return;
  }
  const CoreHandler& handler = handlers_[header.cookie];
  if (link.assembly.empty() && header.payload_bytes == header.total_bytes) {
    handler.node(handler.node_context, from_node, {}, frame.payload);
    return;
  }
  link.assembly.insert(link.assembly.end(), frame.payload.begin(), frame.payload.end());
  if (link.assembly.size() == header.total_bytes) {
    // Moved out: the handler may take its time, and memory of a large message is given back.
    const std::vector<std::byte> message = std::move(link.assembly);
    link.assembly = {};
    handler.node(handler.node_context, from_node, {}, message);
  }
}

void TransportCore::rank_message(std::uint32_t to_rank, std::uint32_t handler,
                                 std::span<const std::byte> bytes) noexcept {
  check(to_rank < limits_.rank_count && handler < kHandlerCount,
        "a note names a rank of the job and a handler");
  check(bytes.size() <= kRankNoteBytesMax, "a note to a rank fits one packet");
  FrameHeader header;
  header.kind = FrameKind::rank_note;
  header.source = node_;
  header.destination = to_rank;
  header.cookie = handler;
  header.payload_bytes = static_cast<std::uint32_t>(bytes.size());
  (void)transmit(header, Buffer::of(bytes.data(), bytes.size()));
}

/// The rank is pinned until the handler has returned.
void TransportCore::call_note(const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  if (header.cookie < kHandlerCount && handlers_[header.cookie].rank != nullptr) {
    const CoreHandler& handler = handlers_[header.cookie];
    handler.rank(handler.rank_context, header.destination, header.source, frame.payload);
  } else {
    refuse(header, "no handler of notes has its number");
  }
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  --entry.pins;
}

}  // namespace sterna::net
