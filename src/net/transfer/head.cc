// Heads of announced messages: where a message goes in data frames, its sender lets its first
// bytes follow the announcement at once, as many as fit the way while the answer is under way.
// Else both sides, and the network, would do nothing meanwhile. Where it might be copied directly,
// too, only a sender that waits does so.
//
// A receive that has matched when the head comes gets it, and `clear` asks for the rest. It knows
// which when it writes `clear`: the head is the next frame of its pair, so it has been taken or has
// not. A head that comes before its receive is dropped, so that announced messages never take
// memory of their receiver, and `clear` asks for everything; the gate then does without heads for
// some messages, more each time (HeadHabit).
//
// Where heads were taken again and again, and a message fits a packet, the head is all of it, in
// one call with the announcement: nothing is left to be sent when the answer comes. Over loopback
// that saves a sixth of the time of 256 KB; of a head that is dropped nothing is gained, so that
// the next ones are short again.
//
// Then the answer is what is left: a frame more, behind which its receiver goes on, and for which
// its sender waits. So over ways that do not copy directly such messages go unannounced, seven of
// eight, as short ones do: by a frame of a few bytes, which finds the receive, and a few of the
// rest, which a driver can then receive where they belong. They count against the window, and what
// comes before its receive waits whole. Of the eighth is heard whether receives are still in time.
//
// A sender that waits does so up to a megabyte, where all goes in one call. The answer is more than
// a frame there: its receiver writes it to a connection by which the head is just coming, and its
// sender reads it behind that. Over loopback that is a twelfth of the time of 512 KB. A sender that
// does not wait is kept from what it does by each byte that it sends itself.
//
// To send a head keeps its sender from the answer. So of the ways whose turns are measured
// (costs/round_trip.h) one message of some goes without.
//
// A receiver that has moved meanwhile may be written to directly, or be here: then the whole
// message is, and a head that comes after its last byte finds nobody.
#include <algorithm>

#include "net/buffer.h"
#include "net/core.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kWholeBytesMax = 256 << 10;
constexpr std::uint64_t kAwaitedBytesMax = 1 << 20;  // Beyond, what it saves is little.

/// Whether bytes of the message may follow its announcement, or its first frame, at once.
bool may_be_followed(const Endpoint& from, const SendRequest& request, const Gate& gate) noexcept {
  // The program keeps its memory as it is until send() returns, whatever the answer has done
  // before. One that computes then has its head on the way, and the receiver something to do,
  // before somebody has woken up to send the rest in its place, unless others of it are under way.
  // Where something waits for the gate, the answer does not wait for much else.
  const std::uint32_t own = request.id != kNoId ? 1 : 0;
  const bool is_alone = request.is_awaited || from.pending_count == own;
  return is_alone && request.data.extents == nullptr && gate.is_open() &&
         (!gate.is_direct() || request.is_awaited) && !gate.is_a_part_a_rail(request.data.bytes) &&
         (gate.is_empty() || gate.holds_followed_only());
}

}  // namespace

/// How long the head of this message, which goes in data frames, will be; 0: it goes without.
std::uint32_t TransportCore::head_bytes_of(const Endpoint& from, const SendRequest& request,
                                           const Peer& peer, Gate& gate) const noexcept {
  const std::uint64_t whole = request.data.bytes;
  if (!may_be_followed(from, request, gate) ||
      (!request.is_awaited && is_left_whole(gate, whole))) {
    return 0;
  }
  const auto has_room = [&](std::uint64_t bytes) {
    return bytes <= frame_payload_max_ &&
           has_credit(peer, credit_of(bytes), options_.eager_window_bytes);
  };
  std::uint64_t bytes = std::min<std::uint64_t>({gate.head_bytes(), whole, frame_payload_max_});
  if (bytes == 0 || !gate.heads().takes_one() || gate.is_turn_to_be_measured()) {
    return 0;
  }
  if (whole <= kWholeBytesMax && gate.takes_whole_head() && has_room(whole)) {
    bytes = whole;
  }
  return has_room(bytes) ? static_cast<std::uint32_t>(bytes) : 0;
}

/// Whether a message that would be announced, with all of it as its head, goes as a short one
/// instead: nobody has to answer then before its sender goes on.
bool TransportCore::goes_unannounced(const Endpoint& from, const SendRequest& request,
                                     const Peer& peer, Gate& gate) const noexcept {
  const std::uint64_t whole = request.data.bytes;
  const bool is_in_one_call = request.is_awaited && gate.gains_by_several();
  const std::uint64_t most =
      std::min(is_in_one_call ? kAwaitedBytesMax : kWholeBytesMax,
               (Gate::kFramesAtOnceMax - 1) * std::uint64_t{frame_payload_max_});
  return request.mode == SendMode::standard && whole <= most && !gate.is_direct() &&
         gate.head_bytes() != 0 && gate.takes_whole_head() &&
         may_be_followed(from, request, gate) &&
         (request.is_awaited || !is_left_whole(gate, whole)) &&
         has_credit(peer, credit_of(whole), options_.eager_window_bytes) &&
         gate.heads().goes_unannounced();
}

/// Whether who sends in the place of a program that computes shall have all of a message: by its
/// habit the program is away for a good part of what the message takes. To send a head would keep
/// it from its computation for as long as its copy takes.
bool TransportCore::is_left_whole(const Gate& gate, std::uint64_t bytes) const noexcept {
  constexpr double kPart = 0.5;
  return is_serial_ && are_reads_left_ &&
         static_cast<double>(habits_.of_sends().computes_ns()) >=
             kPart * gate.cost().rendezvous_ns(bytes);
}

/// An announcement and the whole message as its head, or the frames of one that goes unannounced,
/// in one call of the channel, and the request that they belong to, if one waits for them: over
/// sockets it is each call that costs. The frames behind the first are of `frame_bytes` at most.
/// Returns how many of them have gone.
std::size_t TransportCore::send_at_once(const FrameHeader& first, const Buffer& payload,
                                        FrameKind next_kind, const Buffer& rest,
                                        std::uint32_t frame_bytes) noexcept {
  const std::atomic<std::uint32_t>& route_of_rank = ranks_[first.destination].route;
  const std::uint32_t route = route_of_rank.load(std::memory_order_relaxed);
  if (route == RankEntry::kNoRoute || route == node_) {
    return 0;
  }
  const std::uint32_t version = gates_[route].route_version();  // First: as in transmit().
  if (route_of_rank.load(std::memory_order_relaxed) != route) {
    return 0;
  }
  FrameHeader headers[Gate::kFramesAtOnceMax];
  Piece pieces[Gate::kFramesAtOnceMax][2];
  std::span<const Piece> frames[Gate::kFramesAtOnceMax];
  std::size_t count = 0;
  const auto add = [&](FrameKind kind, const std::byte* address, std::size_t bytes) {
    FrameHeader& header = headers[count];
    header = first;
    header.kind = kind;
    header.flags &= count == 0 ? header.flags : kFrameHasCredit;
    header.sequence += static_cast<std::uint32_t>(count);
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    pieces[count][0] = std::as_bytes(std::span{&header, 1});
    pieces[count][1] = {address, bytes};
    frames[count] = pieces[count];
    ++count;
  };
  add(first.kind, payload.address, payload.bytes);
  for (std::size_t offset = 0; offset < rest.bytes; offset += frame_bytes) {
    add(next_kind, rest.address + offset, std::min<std::size_t>(frame_bytes, rest.bytes - offset));
  }
  return gates_[route].try_send_at_once({frames, count}, version);
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
