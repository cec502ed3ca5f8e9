// Messages between nodes, in order, and notes to the node of a rank.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "net/buffer.h"
#include "net/core.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

// Parts that came before their turn, of one node: drivers without order make them, and threads that
// lose their processor between number and packet.
constexpr std::uint32_t kEarlyPartsMax = 1 << 16;
constexpr std::size_t kFollowedBytesMax = 4096;  // Copied, to go with the next frame.

/// The head of a short message as the handler gets it; at the sender, of up to kWordsBytes bytes.
/// Word by word: a copy of what was just written in parts would wait for them.
class HeadWords {
 public:
  explicit HeadWords(std::span<const std::byte> head) noexcept : bytes_{head.size()} {
    if (bytes_ == kWordsBytes) [[likely]] {
      std::memcpy(&words_[0], head.data(), 8);
      std::memcpy(&words_[1], head.data() + 8, 8);
    } else if (bytes_ == 8) {
      std::memcpy(&words_[0], head.data(), 8);
    } else {
      copy_bytes(reinterpret_cast<std::byte*>(words_), head.data(), bytes_);
    }
  }
  explicit HeadWords(const FrameHeader& header) noexcept : bytes_{header.credit} {
    words_[0] = header.total_bytes;
    words_[1] = header.context | std::uint64_t{static_cast<std::uint32_t>(header.tag)} << 32;
  }
  void store(FrameHeader& header) const noexcept {
    header.flags = kFrameHasWords;
    header.credit = static_cast<std::uint32_t>(bytes_);
    header.total_bytes = words_[0];
    header.context = static_cast<std::uint32_t>(words_[1]);
    header.tag = static_cast<std::int32_t>(words_[1] >> 32);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span{words_}).first(bytes_);
  }

 private:
  std::uint64_t words_[2] = {};
  std::size_t bytes_;
};
static_assert(sizeof(std::uint64_t[2]) == kWordsBytes);

struct NodeTarget {
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t handler;
};

/// The header of a frame of a message of `bytes` bytes, but for its number and its payload's
/// length.
[[gnu::always_inline]] inline void describe(FrameHeader& header, const NodeTarget& target,
                                            std::span<const std::byte> head, std::size_t bytes,
                                            bool has_words) noexcept {
  header.kind = FrameKind::node;
  header.source = target.from;
  header.destination = target.to;
  header.cookie = target.handler;
  if (has_words) [[likely]] {
    HeadWords{head}.store(header);
  } else {
    header.total_bytes = bytes;
  }
}

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
      try_node_short(to_node, handler, head, body, has_words)) [[likely]] {
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
  // One that is announced has its own ways not to wait (transfer/head.cc).
  const Gate& gate = gates_[to_node];
  const bool is_followed = followed_by != 0 && frame_count == 1 && gate.is_open() &&
                           followed_by <= gate.eager_bytes() && total_bytes <= kFollowedBytesMax;
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

/// One frame, made where the driver sends it from, if the way is free (see short.cc). False:
/// nothing happened.
bool TransportCore::try_node_short(std::uint32_t to_node, std::uint32_t handler,
                                   std::span<const std::byte> head, std::span<const std::byte> body,
                                   bool has_words) noexcept {
  Gate& gate = gates_[to_node];
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
    NodeLink& link = links_[to_node];
    // Before anything is written: to take it waits for what was, in lines that are the peer's.
    const SpinGuard guard{link.lock};
    const std::size_t of_head = has_words ? 0 : head.size();
    const std::size_t bytes = of_head + body.size();
    std::byte* place = channel->try_place(static_cast<std::uint32_t>(kHeaderBytes + bytes));
    if (place == nullptr) {
      return false;
    }
    // The receiver looks at the line of the header all the time, and each look takes it away: so
    // that is written last.
    std::byte* const payload = place + kHeaderBytes;
    if (!has_words) [[unlikely]] {
      copy_bytes(payload, head.data(), of_head);
    }
    copy_bytes(payload + of_head, body.data(), body.size());
    // Field by field where it is sent from, as in send_placed().
    auto& sent = *::new (place) FrameHeader;
    describe(sent, {node_, to_node, handler}, head, bytes, has_words);
    sent.payload_bytes = static_cast<std::uint32_t>(bytes);
    sent.sequence = link.send_sequence;
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
      ranks_.learn(static_cast<std::uint32_t>(header.cookie), header.context, header.sequence);
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

/// A packet that is a whole message between nodes, in its turn, as nearly all are. False: it is
/// something else, and nothing has happened.
bool TransportCore::accept_whole(std::uint32_t from_node, Packet packet) noexcept {
  FrameHeader header;
  std::memcpy(&header, packet.data(), kHeaderBytes);
  const std::span<const std::byte> payload = packet.subspan(kHeaderBytes);
  const bool has_words = header.flags == kFrameHasWords && are_words_right(header);
  if ((!has_words && (header.flags != 0 || header.total_bytes != payload.size())) ||
      header.payload_bytes != payload.size() || from_node >= limits_.node_count ||
      header.source != from_node || header.hops != 0 || header.destination != node_ ||
      header.priority != 0 || header.cookie >= kHandlerCount) {
    return false;
  }
  NodeLink& link = links_[from_node];
  const CoreHandler& handler = handlers_[header.cookie];
  if (header.sequence != link.receive_sequence || handler.node == nullptr || !link.early.empty() ||
      !link.assembly.empty()) {
    return false;
  }
  ++link.receive_sequence;
  if (!has_words) {
    handler.node(handler.node_context, from_node, {}, payload);
    return true;
  }
  const HeadWords head{header};
  handler.node(handler.node_context, from_node, head.bytes(), payload);
  return true;
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
