// Messages that their sender has kept, and that it sends since there is room again: held.h.
#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/held.h"
#include "net/packets/eager_cut.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// How the first message that is kept for a peer goes.
enum class Release : std::uint8_t { waits, eager, announced };

Release release_of(const Peer& peer, const SendRequest& request, std::uint64_t eager_bytes,
                   std::uint32_t window) noexcept {
  const std::uint64_t bytes = request.data.bytes;
  const auto has_room = [&](std::uint32_t credit) {
    return outstanding_bytes(peer) + std::uint64_t{credit} <= window;
  };
  if (bytes <= eager_bytes && request.data.extent_count <= kEagerExtentsMax) {
    if (has_room(credit_of(bytes))) {
      return Release::eager;
    }
    if (credit_of(bytes) <= window / 2) {
      return Release::waits;  // Room will come, as much as that.
    }
  }
  return has_room(credit_of(0)) ? Release::announced : Release::waits;
}

}  // namespace

/// Of the peer that is told something next: the first message that is kept for it is on its way,
/// and kept no longer. False: it has said nothing of room, or has none for it. Not to ranks here,
/// whose window is another one.
bool TransportCore::release_next(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  FrameHeader header;
  Buffer data;
  SendRequest* sent = nullptr;  // By what goes now.
  std::uint32_t frame_bytes = 0;
  std::uint32_t frame_count = 1;
  bool begins_short = false;
  bool is_direct = false;
  std::uint64_t address = 0;
  Endpoint* from = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    Peer* const peer = entry.state == RankState::here ? entry.endpoint->to_tell_first : nullptr;
    if (peer == nullptr || !peer->hold->has_grant || peer->hold->first == nullptr) [[likely]] {
      return false;
    }
    from = entry.endpoint;
    const std::uint32_t route = ranks_[peer->rank].route.load(std::memory_order_relaxed);
    if (route == RankEntry::kNoRoute || route == node_) {
      return false;
    }
    Gate& gate = gates_[route];
    is_direct = gate.is_direct();
    SendRequest& request = *peer->hold->first->request;
    const Release how =
        release_of(*peer, request, gate.eager_bytes(), options_.eager_window_bytes);
    if (how == Release::waits) {
      return false;
    }
    const bool is_synchronous = request.mode == SendMode::synchronous;
    data = request.data;
    header.kind = how == Release::eager ? FrameKind::eager : FrameKind::rendezvous;
    header.source = rank;
    header.destination = peer->rank;
    header.context = request.target.context;
    header.tag = request.target.tag;
    header.priority = request.target.priority;
    header.total_bytes = data.bytes;
    header.cookie = request.id;
    header.sequence = peer->send_sequence;
    let_go(*from, request);
    if (how == Release::eager) {
      begins_short = is_direct && !gate.has_several_rails() && !is_synchronous;
      frame_bytes = gate.frame_bytes(data.bytes, frame_payload_max_);
      const EagerCut cut{data.bytes, frame_bytes, begins_short};
      frame_count = cut.frame_count();
      header.flags |= is_synchronous ? kFrameSynchronous : 0;
      if (!is_synchronous) {
        header.cookie = cut.begins_short() ? frame_count : kNoId;
        remove_pending(*from, request.id);
        request.id = kNoId;
        sent = &request;
      }
    } else if (from->is_fixed && data.extents == nullptr && is_direct &&
               data.bytes >= gate.direct_from_bytes()) {
      address = reinterpret_cast<std::uintptr_t>(data.address);
      header.flags |= kFrameReadable;
    }
    peer->eager_sent += credit_of(how == Release::eager ? data.bytes : 0);
    peer->send_sequence += frame_count;
    tell_credit(*peer, header);
    ++entry.pins;  // Its bytes stay here until they have gone.
  }
  const bool is_eager = header.kind == FrameKind::eager;
  const std::uint64_t id = header.cookie;
  const Buffer payload = is_eager       ? data
                         : address != 0 ? Buffer::of(&address, sizeof address)
                                        : Buffer{};
  const EagerCut cut{data.bytes, is_eager ? frame_bytes : frame_payload_max_, begins_short};
  bool is_sent = true;
  for (std::uint64_t offset = 0; frame_count-- != 0 && is_sent; offset += header.payload_bytes) {
    header.payload_bytes =
        is_eager ? cut.bytes_at(offset) : static_cast<std::uint32_t>(payload.bytes);
    // At the latest the answer that there is no room for more goes with it.
    is_sent = transmit(header, payload, offset, Sender::follows);
    header.kind = FrameKind::eager_more;
    ++header.sequence;
  }
  if (sent != nullptr) {
    end_send(rank, *sent, is_sent ? Fault::none : Fault::peer_lost);
    return true;
  }
  {
    const threads::OwnedGuard guard{entry.lock};
    --entry.pins;
  }
  if (!is_sent) {
    end_pending_send(*from, id, header.destination, Fault::peer_lost);
  } else if (!is_eager && is_direct && rank == invitations_.rank()) {
    tell_announced(*from, id, header.destination, header.sequence - 1);
  }
  return true;
}

}  // namespace sterna::net
