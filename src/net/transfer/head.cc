// Heads of announced messages: where data frames are all there is, the sender of a message
// lets its first bytes follow the announcement at once, as many as fit the way while the
// answer is under way. Else both sides, and the network, would do nothing meanwhile.
//
// A receive that has matched when the head comes gets it, and `clear` asks for the rest. It knows
// which when it writes `clear`: the head is the next frame of its pair, so it has been taken or has
// not. A head that comes before its receive is dropped, so that announced messages never take
// memory of their receiver, and `clear` asks for everything; the gate then does without heads for
// some messages, more each time (Gate::takes_head).
//
// A receiver that has moved meanwhile may be written to directly, or be here: then the whole
// message is, and a head that comes after its last byte finds nobody.
#include <algorithm>

#include "net/buffer.h"
#include "net/core.h"
#include "net/peer.h"

namespace sterna::net {

/// How long the head of this message will be; 0: it goes without.
std::uint32_t TransportCore::head_bytes_of(const Endpoint& from, const SendRequest& request,
                                           Gate& gate) const noexcept {
  // The program keeps its memory as it is until send() returns, whatever the answer has done
  // before. One that computes then has its head on the way, and the receiver something to do,
  // before somebody has woken up to send the rest in its place, unless others of it are under way.
  // Where something waits for the gate, the answer does not wait for much else.
  const bool is_alone = request.is_awaited || from.pending_count == 1;
  if (!is_alone || request.data.extents != nullptr || !gate.is_open() || gate.is_direct() ||
      !gate.is_empty()) {
    return 0;
  }
  const std::uint64_t bytes =
      std::min<std::uint64_t>({gate.head_bytes(), request.data.bytes, frame_payload_max_});
  return bytes != 0 && gate.takes_head() ? static_cast<std::uint32_t>(bytes) : 0;
}

/// A receive has matched this message and is pending: the byte from which its sender shall go on.
std::uint64_t TransportCore::expect_head(Peer* peer, const RecvRequest& request,
                                         const Message& announced) noexcept {
  const std::uint64_t begin = std::min(announced.head_bytes, request.envelope.bytes);
  if (begin == 0 || peer == nullptr || peer->receive_sequence != announced.head_sequence) {
    return 0;
  }
  peer->head_receive = request.id;
  return begin;
}

/// A frame without payload: its bytes were placed.
void TransportCore::accept_head(RankEntry& entry, Endpoint& at, Peer& peer,
                                const Frame& frame) noexcept {
  RecvRequest* const request = find_head_receive(at, peer);
  peer.head_receive = kNoId;
  if (request == nullptr) {
    counters_.dropped_heads.add();
    return;
  }
  const std::uint64_t bytes =
      std::min<std::uint64_t>(frame.header.payload_bytes, request->envelope.bytes);
  if (!frame.payload.empty()) {
    copy_in(request->data, 0, frame.payload.data(), bytes);
  }
  take_data(entry, at, *request, bytes);
}

}  // namespace sterna::net
