// Bytes of announced messages that a driver receives straight into the memory of their receive:
// PacketSink::place. It asks each time before it writes, so nothing has to be taken back from it.
//
// Between place() and the end of the poll that asked, the place stays: a cleared receive ends by
// the last of its bytes or by the loss of its node, and both are the poller's doing. (Where the
// answer `clear` could not be sent its receive ends on the thread of its caller; but then no peer
// has heard of it.) Its rank is pinned meanwhile.
#include "net/buffer.h"
#include "net/core.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// The receive that waits for these data; null: none, or they lie outside of its message.
RecvRequest* find_data_receive(const Endpoint& at, const FrameHeader& header) noexcept {
  auto* const request = static_cast<RecvRequest*>(
      find_pending(at, header.cookie, PendingEntry::Kind::receive, header.source));
  const bool is_within = request != nullptr && request->state == RecvRequest::State::receiving &&
                         header.payload_bytes <= request->envelope.bytes &&
                         header.total_bytes <= request->envelope.bytes - header.payload_bytes;
  return is_within ? request : nullptr;
}

/// The same for the head of a message, whose turn it is.
RecvRequest* find_head_receive(const Endpoint& at, const FrameHeader& header) noexcept {
  const Peer* const peer = find_peer(at, header.source);
  if (peer == nullptr || turn_of(*peer, header.sequence) != Turn::now) {
    return nullptr;
  }
  RecvRequest* const request = find_head_receive(at, *peer);
  return request != nullptr && header.payload_bytes <= request->envelope.bytes ? request : nullptr;
}

}  // namespace

std::span<std::byte> Rail::place(std::uint32_t from_node, Packet head,
                                 std::uint32_t packet_bytes) noexcept {
  return core_.place(from_node, head, packet_bytes);
}

void Rail::on_placed(std::uint32_t from_node, Packet head, std::uint32_t packet_bytes) noexcept {
  core_.on_placed(from_node, head, packet_bytes);
}

std::span<std::byte> TransportCore::place(std::uint32_t from_node, Packet head,
                                          std::uint32_t packet_bytes) noexcept {
  FrameHeader header;
  // What comes by a link begins with the header of the link, and is taken only once it is whole.
  const bool is_plain = from_node < limits_.node_count &&
                        (bond_ == nullptr || !bond_->has(from_node)) &&
                        !gates_[from_node].is_lost();
  if (!is_plain || !decode_head(head, packet_bytes, limits_, header) ||
      (header.kind != FrameKind::data && header.kind != FrameKind::head)) {
    return {};
  }
  const bool is_head = header.kind == FrameKind::head;
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  RecvRequest* const request = entry.state != RankState::here ? nullptr
                               : is_head ? find_head_receive(*entry.endpoint, header)
                                         : find_data_receive(*entry.endpoint, header);
  if (request == nullptr) {
    return {};
  }
  std::span<std::byte> found;
  for_each_part(request->data, is_head ? 0 : header.total_bytes, header.payload_bytes,
                [&](std::byte* address, std::uint64_t bytes) {
                  found = {address, bytes};
                  return false;
                });
  return found.size() == header.payload_bytes ? found : std::span<std::byte>{};
}

void TransportCore::on_placed(std::uint32_t from_node, Packet head,
                              std::uint32_t packet_bytes) noexcept {
  FrameHeader header;
  if (!decode_head(head, packet_bytes, limits_, header)) {
    return;
  }
  if (header.kind == FrameKind::head) {
    deliver(from_node, {header, {}});  // Others of its pair may wait for their turn behind it.
    return;
  }
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  RecvRequest* const request =
      entry.state == RankState::here ? find_data_receive(*entry.endpoint, header) : nullptr;
  if (request != nullptr) {
    take_data(entry, *entry.endpoint, *request, header.payload_bytes);
  }
}

}  // namespace sterna::net
