// Messages that their sender has kept, and that it sends since there is room again: held.h.
#include <algorithm>

#include "net/buffer.h"
#include "net/core.h"
#include "net/matching/held.h"
#include "net/packets/eager_cut.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// How the first message that is kept for a peer goes.
enum class Release : std::uint8_t { waits, eager, announced };

/// `eager_bytes`: at most so many go eagerly.
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

/// One that is on its way: what is needed when its rank is not locked.
struct Released {
  FrameHeader header;  // Of its first frame.
  Buffer data;
  SendRequest* sent = nullptr;  // Ends when it has gone; null: by an answer.
  std::uint64_t address = 0;    // Where its receiver may read it; 0: not.
  std::uint32_t frame_bytes = 0;
  std::uint32_t frame_count = 1;
  bool begins_short = false;
};

void begin_eager(Released& released, SendRequest& request, Endpoint& from,
                 const Gate& gate) noexcept {
  const bool is_synchronous = request.mode == SendMode::synchronous;
  released.begins_short = gate.is_direct() && !gate.has_several_rails() && !is_synchronous;
  const EagerCut cut{released.data.bytes, released.frame_bytes, released.begins_short};
  released.frame_count = cut.frame_count();
  released.header.kind = FrameKind::eager;
  if (is_synchronous) {
    released.header.flags |= kFrameSynchronous;
    return;
  }
  released.header.cookie = cut.begins_short() ? cut.frame_count() : kNoId;
  remove_pending(from, request.id);
  request.id = kNoId;
  released.sent = &request;
}

/// The first message that is kept for the peer is kept no longer. False: it has to wait.
bool begin(Released& released, Endpoint& from, Peer& peer, const Gate& gate, std::uint32_t window,
           std::uint32_t frame_payload_max) noexcept {
  SendRequest& request = *peer.hold->first->request;
  released.data = request.data;
  released.frame_bytes = gate.frame_bytes(request.data.bytes, frame_payload_max);
  // Frames of one message do not overtake others, as in send_remote().
  const bool may_overtake = request.target.priority == 0 || gate.is_empty();
  const std::uint64_t eager_bytes =
      std::min(gate.eager_bytes(), may_overtake ? ~std::uint64_t{0} : released.frame_bytes);
  const Release how = release_of(peer, request, eager_bytes, window);
  if (how == Release::waits) {
    return false;
  }
  FrameHeader& header = released.header;
  header.kind = FrameKind::rendezvous;
  header.source = from.rank;
  header.destination = peer.rank;
  header.context = request.target.context;
  header.tag = request.target.tag;
  header.priority = request.target.priority;
  header.total_bytes = request.data.bytes;
  header.cookie = request.id;
  header.sequence = peer.send_sequence;
  let_go(from, request);
  if (how == Release::eager) {
    begin_eager(released, request, from, gate);
  } else if (from.is_fixed && request.data.extents == nullptr && gate.is_direct() &&
             request.data.bytes >= gate.direct_from_bytes()) {
    released.address = reinterpret_cast<std::uintptr_t>(request.data.address);
    header.flags |= kFrameReadable;
  }
  peer.eager_sent += credit_of(how == Release::eager ? request.data.bytes : 0);
  peer.send_sequence += released.frame_count;
  tell_credit(peer, header);
  return true;
}

}  // namespace

/// Of the peer that is told something next: the first message that is kept for it is on its way,
/// and kept no longer. False: it has said nothing of room, or has none for it. Not to ranks here,
/// whose window is another one.
bool TransportCore::release_next(std::uint32_t rank) noexcept {
  RankEntry& entry = ranks_[rank];
  Released released;
  Endpoint* from = nullptr;
  std::uint32_t route = RankEntry::kNoRoute;
  {
    const threads::OwnedGuard guard{entry.lock};
    from = entry.state == RankState::here ? entry.endpoint : nullptr;
    Peer* const peer = from != nullptr ? from->to_tell_first : nullptr;
    if (peer == nullptr || !peer->hold->has_grant || peer->hold->first == nullptr) [[likely]] {
      return false;
    }
    route = ranks_[peer->rank].route.load(std::memory_order_relaxed);
    if (route == RankEntry::kNoRoute || route == node_ ||
        !begin(released, *from, *peer, gates_[route], options_.eager_window_bytes,
               frame_payload_max_)) {
      return false;
    }
    ++entry.pins;  // Its bytes stay here until they have gone.
  }
  FrameHeader& header = released.header;
  const bool is_eager = header.kind == FrameKind::eager;
  const std::uint32_t sequence = header.sequence;
  const Buffer payload =
      is_eager                ? released.data
      : released.address != 0 ? Buffer::of(&released.address, sizeof released.address)
                              : Buffer{};
  const EagerCut cut{released.data.bytes, released.frame_bytes, released.begins_short};
  bool is_sent = true;
  std::uint64_t offset = 0;
  for (std::uint32_t left = released.frame_count; left-- != 0 && is_sent;) {
    header.payload_bytes =
        is_eager ? cut.bytes_at(offset) : static_cast<std::uint32_t>(payload.bytes);
    // At the latest the answer that there is no room for more goes with it.
    is_sent = transmit(header, payload, offset, Sender::follows);
    offset += header.payload_bytes;
    header.kind = FrameKind::eager_more;
    ++header.sequence;
  }
  if (released.sent != nullptr) {
    end_send(rank, *released.sent, is_sent ? Fault::none : Fault::peer_lost);
    return true;
  }
  if (!is_sent) {
    end_pending_send(*from, header.cookie, header.destination, Fault::peer_lost);
  } else if (!is_eager && gates_[route].is_direct() && rank == invitations_.rank()) {
    tell_announced(*from, header.cookie, header.destination, sequence);
  }
  const threads::OwnedGuard guard{entry.lock};
  --entry.pins;  // From here on the rank may leave.
  return true;
}

}  // namespace sterna::net
