// Bytes of announced messages that a driver receives straight into the memory of their receive:
// PacketSink::place. It asks each time before it writes, so nothing has to be taken back from it.
//
// Between place() and the end of the poll that asked, the place stays: a cleared receive ends by
// the last of its bytes or by the loss of its node, and both are the poller's doing. (Where the
// answer `clear` could not be sent its receive ends on the thread of its caller; but then no peer
// has heard of it.) Its rank is pinned meanwhile. A part of an eager message pins its rank when its
// place is asked for, until that part has come or its sender is lost.
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

/// The place of the next part of an eager message, if it is its turn: in its receive, or, if none
/// has been posted, where it waits. From the first time until that part has come the rank stays:
/// the driver may have received some of it.
std::span<std::byte> place_more(RankEntry& entry, const FrameHeader& header) noexcept
    STERNA_REQUIRES(entry.lock) {
  Peer* const peer = entry.state == RankState::here ? find_peer(*entry.endpoint, header.source)
                                                    : nullptr;
  const std::uint64_t bytes = header.payload_bytes;
  if (peer == nullptr || turn_of(*peer, header.sequence) != Turn::now ||
      bytes > peer->partial_left) {
    return {};
  }
  std::span<std::byte> found;
  if (Message* const message = peer->partial_message; message != nullptr) {
    found = {message->payload + message->arrived_bytes, bytes};
  } else if (RecvRequest* const request = peer->partial_receive;
             request != nullptr && request->received_bytes + bytes <= request->envelope.bytes) {
    for_each_part(request->data, request->received_bytes, bytes,
                  [&](std::byte* address, std::uint64_t part) {
                    found = {address, part};
                    return false;
                  });
  }
  if (found.size() != bytes) {
    return {};
  }
  entry.pins += peer->is_partial_placed ? 0 : 1;
  peer->is_partial_placed = true;
  return found;
}

}  // namespace

std::span<std::byte> Rail::place(std::uint32_t from_node, Packet head,
                                 std::uint32_t packet_bytes) noexcept {
  return core_.place(from_node, head, packet_bytes);
}

void Rail::on_placed(std::uint32_t from_node, Packet head, std::uint32_t packet_bytes) noexcept {
  core_.on_placed(from_node, head, packet_bytes);
}

/// The receive that takes these bytes, and their place; null: there is none, or they lie in
/// several.
RecvRequest* TransportCore::find_placeable(RankEntry& entry, const FrameHeader& header,
                                           std::span<std::byte>& place) noexcept {
  const bool is_head = header.kind == FrameKind::head;
  RecvRequest* const request = entry.state != RankState::here ? nullptr
                               : is_head ? find_head_receive(*entry.endpoint, header)
                                         : find_data_receive(*entry.endpoint, header);
  if (request == nullptr) {
    return nullptr;
  }
  for_each_part(request->data, is_head ? 0 : header.total_bytes, header.payload_bytes,
                [&](std::byte* address, std::uint64_t bytes) {
                  place = {address, bytes};
                  return false;
                });
  return place.size() == header.payload_bytes ? request : nullptr;
}

std::span<std::byte> TransportCore::place(std::uint32_t from_node, Packet head,
                                          std::uint32_t packet_bytes) noexcept {
  FrameHeader header;
  // What comes by a link begins with the header of the link, and is taken only once it is whole.
  const bool is_plain = from_node < limits_.node_count &&
                        (bond_ == nullptr || !bond_->has(from_node)) &&
                        !gates_[from_node].is_lost();
  if (!is_plain || !decode_head(head, packet_bytes, limits_, header) ||
      (header.kind != FrameKind::data && header.kind != FrameKind::head &&
       header.kind != FrameKind::eager_more)) {
    return {};
  }
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  if (header.kind == FrameKind::eager_more) {
    return place_more(entry, header);
  }
  std::span<std::byte> found;
  return find_placeable(entry, header, found) != nullptr ? found : std::span<std::byte>{};
}

void TransportCore::on_placed(std::uint32_t from_node, Packet head,
                              std::uint32_t packet_bytes) noexcept {
  FrameHeader header;
  if (!decode_head(head, packet_bytes, limits_, header)) {
    return;
  }
  if (header.kind != FrameKind::data) {
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

// A place that is held is a part of its receive: neither that nor its rank goes before the driver
// has let go of it, whoever is lost meanwhile and whatever else comes for the receive.

std::span<std::byte> Rail::hold_place(std::uint32_t from_node, Packet head,
                                      std::uint32_t packet_bytes) noexcept {
  return core_.hold_place({index_, from_node}, head, packet_bytes);
}

void Rail::on_lent_end(std::uint32_t from_node, Packet head, std::uint32_t packet_bytes,
                       bool is_whole) noexcept {
  core_.end_held(from_node, head, packet_bytes, is_whole);
}

std::span<std::byte> TransportCore::hold_place(LentParts::Way by, Packet head,
                                               std::uint32_t packet_bytes) noexcept {
  FrameHeader header;
  if (by.node >= limits_.node_count || gates_[by.node].is_lost() ||
      !decode_head(head, packet_bytes, limits_, header) || header.kind != FrameKind::data) {
    return {};
  }
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  std::span<std::byte> found;
  RecvRequest* const request = find_placeable(entry, header, found);
  constexpr std::uint16_t kHeldMax = 1024;  // A peer has far fewer under way.
  if (request == nullptr || request->is_to_end || request->held_parts == kHeldMax) {
    return {};
  }
  // By a link it may also come in frames: see there.
  if (bond_ != nullptr && bond_->has(by.node) &&
      !bond_->lent_parts().hold({header.destination, request->id}, by, header.total_bytes,
                                header.payload_bytes)) {
    return {};
  }
  ++request->held_parts;
  return found;
}

void TransportCore::end_held(std::uint32_t from_node, Packet head, std::uint32_t packet_bytes,
                             bool is_whole) noexcept {
  FrameHeader header;
  check(decode_head(head, packet_bytes, limits_, header), "the head of a held place stays");
  RankEntry& entry = ranks_[header.destination];
  const threads::OwnedGuard guard{entry.lock};
  check(entry.state == RankState::here, "a rank with a held place stays");
  RecvRequest* const request = find_data_receive(*entry.endpoint, header);
  check(request != nullptr && request->held_parts != 0, "a receive with a held place stays");
  --request->held_parts;
  const std::uint64_t came = is_whole ? header.payload_bytes : 0;
  request->received_bytes +=
      bond_ != nullptr && bond_->has(from_node)
          ? bond_->lent_parts().end({header.destination, request->id}, header.total_bytes,
                                    header.payload_bytes, is_whole)
          : came;
  if (request->is_to_end || request->received_bytes >= request->envelope.bytes) {
    finish_receive(entry, *entry.endpoint, *request, Fault::none);
  }
}

}  // namespace sterna::net
