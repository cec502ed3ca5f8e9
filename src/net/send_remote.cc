// Messages to another node at their sender: eager, or announced, and put into frames.
#include <algorithm>
#include <array>

#include "net/buffer.h"
#include "net/core.h"
#include "net/packets/eager_cut.h"
#include "net/peer.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

struct Way {
  bool can_be_read;  // By the receiver's node, where it lies.
  bool is_left;      // That can be, and its sender does not wait.
  // Who does not wait computes, perhaps, and would fill no packets meanwhile. Who waits, now or by
  // his habit at once, writes long ones himself, so that his model learns what that costs.
  bool may_compute;
  std::uint64_t eager_bytes;  // Messages of at most so many go eagerly.
};

Way way_of(const Endpoint& from, const SendRequest& request, const Gate& gate,
           const progress::WaitHabits::Habit& habit, std::uint64_t local_eager_bytes,
           std::uint32_t frame_payload_max) noexcept {
  Way way{};
  way.can_be_read = from.is_fixed && request.data.extents == nullptr && gate.is_direct();
  way.is_left = way.can_be_read && !request.is_awaited;
  way.may_compute = way.is_left && !habit.waits_at_once;
  // A rank that is on its way to or from here has no gate: any threshold will do.
  way.eager_bytes = !gate.is_open()   ? local_eager_bytes
                    : way.may_compute ? gate.computing_eager_bytes()
                    : way.is_left     ? gate.unawaited_eager_bytes()
                                      : gate.eager_bytes();
  if (way.is_left && !way.may_compute && habit.is_open) {
    // Of several that are started at once some come before their receives, to be copied once more.
    way.eager_bytes = std::min<std::uint64_t>(way.eager_bytes, frame_payload_max);
  }
  return way;
}

/// Whether a message that its receiver could read had better be sent by who progresses in the place
/// of its program, which by its habit computes for `away_ns`. To read it takes one processor alone
/// until the program is back, and here longer than that; packets are copied twice, but by the
/// processes themselves, which may be several times as fast as the kernel. They take turns on the
/// processor of who waits, once who sends is awake.
bool is_for_who_stays(const Gate& gate, std::uint64_t away_ns, std::uint64_t bytes) noexcept {
  if (away_ns == 0 || bytes <= kReadAtOnceBytesMax || !gate.is_open() ||
      gate.driver()->absence_flag() == nullptr) {
    return false;
  }
  const CostModel cost = gate.cost();
  const auto away = static_cast<double>(away_ns);
  return cost.rendezvous_ns(bytes) > away &&
         cost.in_place_ns(bytes, away) < cost.read_beside_ns(bytes, away);
}

/// Of what is shorter the answer comes before we would sleep.
constexpr std::uint64_t kExpectedBytesMin = 512 << 10;

/// The packets of an eager message have been filled, unless they wait for room. By the poller.
void measure_filling(Gate& gate, std::uint64_t bytes, std::uint64_t ns) noexcept {
  const Channel* const channel = gate.channel();
  if (channel != nullptr && channel->is_settled() && !channel->is_receiver_behind() &&
      gate.is_empty()) {
    gate.measured_filling(bytes, ns, EagerTrials::kFilledEvery);
  }
}

/// Whether a message that goes eagerly goes in the two frames of one that is unannounced (head.cc).
/// One frame is received whole before its receive is known, and copied from there: of 64 KB over
/// loopback that is a twelfth of the time. Below kLedBytesMin a call more of the driver costs more.
bool is_better_led(const SendRequest& request, const Gate& gate, std::uint32_t frame_bytes,
                   bool is_serial) noexcept {
  constexpr std::uint64_t kLedBytesMin = 40 << 10;
  const std::uint64_t bytes = request.data.bytes;
  return bytes >= kLedBytesMin && bytes <= frame_bytes && request.mode == SendMode::standard &&
         request.data.extents == nullptr && (is_serial || !request.may_be_left) &&
         gate.rail_count() == 1 && !gate.is_direct() && gate.gains_by_several() &&
         (gate.is_empty() || gate.holds_followed_only());
}

}  // namespace

void TransportCore::send_remote(Endpoint& from, SendRequest& request, std::uint32_t node) noexcept {
  const Target& target = request.target;
  const std::uint32_t to_rank = target.rank;
  const std::uint64_t bytes = request.data.bytes;
  Gate& gate = gates_[node];
  progress::Progress* const progress = progress_.load(std::memory_order_acquire);
  progress::WaitHabits::Habit habit;
  if (is_serial_) {
    habit.waits_at_once = habits_.of_sends().waits_at_once();
    habit.is_open = habits_.of_sends().is_open();
  } else if (progress != nullptr) {
    habit = progress->habit_of_caller();
  }
  Way way = way_of(from, request, gate, habit, options_.local_eager_bytes, frame_payload_max_);
  const bool may_be_tried = !way.may_compute && gate.is_direct();
  if (way.may_compute && is_serial_ && are_reads_left_ &&
      is_for_who_stays(gate, habits_.of_sends().computes_ns(), bytes)) {
    way.may_compute = false;
  }
  const bool request_is_awaited = request.is_awaited;  // It may end before we return.
  const bool is_synchronous = request.mode == SendMode::synchronous;
  const std::uint32_t frame_bytes = gate.frame_bytes(bytes, frame_payload_max_);
  // Whose answer is awaited has its id where the number of frames would stand.
  EagerCut cut{bytes, frame_bytes,
               gate.is_direct() && !gate.has_several_rails() && !is_synchronous};
  // Frames of one message do not overtake others: an urgent one of several is announced, whose
  // bytes do, where frames wait.
  const bool may_overtake =
      target.priority == 0 || bytes <= frame_bytes || !gate.is_open() || gate.is_empty();
  bool is_eager =
      bytes <= way.eager_bytes && request.data.extent_count <= kEagerExtentsMax && may_overtake;
  const bool is_tried = is_eager && way.can_be_read && may_be_tried && !is_synchronous &&
                        gate.eager_trials().is_announced(bytes);
  is_eager = is_eager && !is_tried;
  FrameHeader header;
  std::uint32_t frame_count = 1;
  std::uint32_t head_bytes = 0;
  bool is_kept = false;
  bool is_shorter_way = false;
  bool is_unannounced = false;  // Though it is long.
  bool is_led = false;          // What follows its first bytes is received where it belongs.
  bool is_alone = false;        // Nothing is read from here as yet.
  {
    RankEntry& entry = ranks_[from.rank];
    const threads::OwnedGuard guard{entry.lock};
    Peer* peer = make_peer(from, target.rank);
    const std::uint32_t window = options_.eager_window_bytes;
    is_eager = is_eager && peer != nullptr;
    request.lacked_room = is_eager && !has_credit(*peer, credit_of(bytes), window);
    is_eager = is_eager && !request.lacked_room;
    is_unannounced = !is_eager && !is_tried && peer != nullptr && !request.lacked_room &&
                     goes_unannounced(from, request, *peer, gate);
    is_led = is_unannounced || (is_eager && is_better_led(request, gate, frame_bytes, is_serial_));
    if (is_led) {
      is_eager = true;
      cut = EagerCut::led(bytes, frame_bytes);
    }
    is_alone = from.pending_sends == 0;
    if (peer != nullptr && (!is_eager || is_synchronous)) {
      request.id = add_pending(from, PendingEntry::Kind::send, &request, target.rank);
    }
    is_kept = !is_eager && peer != nullptr && !has_credit(*peer, credit_of(0), window);
    if (is_kept && request.id != kNoId) [[unlikely]] {
      is_kept = keep_back(from, *peer, request);
    }
    if (peer == nullptr || ((!is_eager || is_synchronous) && request.id == kNoId)) {
      request.fault = Fault::no_memory;
      request.done.complete();
      return;
    }
    header.cookie = request.id;
    if (is_eager) {
      frame_count = cut.frame_count();
      header.cookie = cut.begins_short() ? frame_count : request.id;
    } else if (!is_kept) {
      const bool is_chosen = bytes >= gate.direct_from_bytes();
      request.is_trial = is_tried ? !is_chosen : may_be_tried && gate.tries_other_way(bytes);
      is_shorter_way = is_chosen != request.is_trial;
      head_bytes = is_shorter_way ? 0 : head_bytes_of(from, request, *peer, gate);
    }
    if (!is_kept) {
      request.head_bytes = head_bytes;
    }
    if (target.priority != 0 && from.rank == invitations_.rank()) {
      invitations_.stop_sending();
    }
    if (!is_kept) [[likely]] {
      peer->eager_sent += credit_of(is_eager ? bytes : head_bytes);
      header.sequence = peer->send_sequence;
      peer->send_sequence += frame_count + (head_bytes != 0 ? 1 : 0);
      tell_credit(*peer, header);
    }
  }
  if (is_kept) [[unlikely]] {
    announce_kept(from, header.cookie, to_rank);
    return;
  }
  const bool is_readable = !is_eager && way.can_be_read && (way.may_compute || is_shorter_way);
  const std::uint64_t word =
      is_readable ? reinterpret_cast<std::uint64_t>(request.data.address) : head_bytes;
  if (large_pages_ != nullptr && !is_eager && way.can_be_read &&
      (is_readable || bytes >= gate.direct_thresholds().if_large())) {
    large_pages_->are_copied(request.data.address, bytes, is_alone);
  }
  header.kind = is_eager ? FrameKind::eager : FrameKind::rendezvous;
  header.flags |= is_eager && is_synchronous ? kFrameSynchronous
                  : is_readable              ? kFrameReadable
                  : head_bytes != 0          ? kFrameHeaded
                                             : 0;
  header.source = from.rank;
  header.destination = target.rank;
  header.context = target.context;
  header.tag = target.tag;
  header.priority = target.priority;
  header.total_bytes = bytes;
  (is_eager ? counters_.eager : counters_.rendezvous).add();
  if (bytes >= BothWays::kBytesMin && gate.is_direct()) {
    gate.sends_long();
  }
  // The answer may complete a synchronous or announced send at any moment from here on: the
  // request is not ours any more then.
  const bool is_ours = is_eager && !is_synchronous;
  const Buffer whole = request.data;
  const Buffer data = is_eager ? whole : word != 0 ? Buffer::of(&word, sizeof word) : Buffer{};
  const Sender sender = is_ours && request.may_be_left ? Sender::goes_on : Sender::waits;
  const std::uint32_t sequence = header.sequence;
  bool is_sent = true;
  // Relaxed: a hint. Behind the bytes of others its answer would be long in coming.
  if (!is_eager && job_count_.load(std::memory_order_relaxed) == 0) {
    gate.begin_turn(from.rank, header.cookie, head_bytes);
  }
  std::uint64_t offset = 0;
  if (head_bytes != 0 && head_bytes == bytes) {
    const std::size_t gone = send_at_once(header, data, FrameKind::head, whole, head_bytes);
    counters_.heads.add(gone == 2 ? 1 : 0);
    frame_count = gone == 0 ? 1 : 0;
    header.sequence += gone == 0 ? 0 : 1;
    head_bytes = gone == 2 ? 0 : head_bytes;
  } else if (is_led) {
    const std::uint32_t lead = cut.bytes_at(0);
    const Buffer rest = Buffer::of(whole.address + lead, bytes - lead);
    const auto gone = static_cast<std::uint32_t>(
        send_at_once(header, Buffer::of(whole.address, lead), FrameKind::eager_more, rest,
                     frame_bytes));
    frame_count -= gone;
    if (gone != 0) {
      header.kind = FrameKind::eager_more;
      header.sequence += gone;
      offset = lead + (gone - 1) * std::uint64_t{frame_bytes};
    }
  }
  const bool is_measured =
      is_eager && is_serial_ && way.can_be_read && gate.eager_trials().is_measured(bytes);
  const std::uint64_t start_ns = is_measured ? clock_.now_ns() : 0;
  for (; frame_count-- != 0 && is_sent; offset += header.payload_bytes) {
    header.payload_bytes = is_eager ? cut.bytes_at(offset) : static_cast<std::uint32_t>(data.bytes);
    if (frame_count != 0 && gate.has_several_rails() &&
        transmit_two(header, data, offset, frame_bytes, is_sent)) {
      --frame_count;
      offset += frame_bytes;
    } else {
      is_sent = transmit(header, data, offset, sender);
    }
    header.kind = FrameKind::eager_more;
    ++header.sequence;
  }
  if (is_measured && is_sent) {
    measure_filling(gate, bytes, clock_.now_ns() - start_ns);
  }
  if (head_bytes != 0 && is_sent) {
    counters_.heads.add();
    header.kind = FrameKind::head;
    header.flags &= kFrameHasCredit;
    header.payload_bytes = head_bytes;
    is_sent = transmit(header, whole);
  }
  if (!is_eager && !gate.is_empty()) {
    gate.end_turn(from.rank, header.cookie, false);  // It may wait for room.
  }
  if (is_ours) {
    request.fault = is_sent ? Fault::none : Fault::peer_lost;
    request.done.complete_alone();  // Nobody waits before we return.
  } else if (!is_sent) {
    end_pending_send(from, header.cookie, target.rank, Fault::peer_lost);
  } else if (!is_eager && gate.is_direct() && from.rank == invitations_.rank()) {
    tell_announced(from, header.cookie, target.rank, sequence);
  }
  if ((!is_eager || is_unannounced) && bytes >= kExpectedBytesMin && progress != nullptr &&
      gate.is_open()) {
    constexpr double kTimes = 1.5;  // Its receiver may have something else to do first.
    progress->expect_within(static_cast<std::uint64_t>(kTimes * gate.cost().rendezvous_ns(bytes)));
  }
  const bool is_sent_later = (!is_eager || is_unannounced) && !request_is_awaited &&
                             !gate.is_direct() && gate.head_bytes() != 0;
  const bool is_left = way.is_left || (whole.layout() != nullptr && !request_is_awaited);
  const bool may_be_left = is_left ? bytes > frame_payload_max_ : is_sent_later;
  if (may_be_left && is_serial_) {
    habits_.has_sent(clock_.now_ns());
  } else if (may_be_left && is_left && progress != nullptr) {
    progress->has_started();
  }
}

/// The next two frames of a message in pieces, at once by two rails; `header` is then that of the
/// second. False: nothing has happened.
bool TransportCore::transmit_two(FrameHeader& header, const Buffer& data, std::uint64_t offset,
                                 std::uint32_t frame_bytes, bool& is_sent) noexcept {
  const std::atomic<std::uint32_t>& route_of_rank = ranks_[header.destination].route;
  const std::uint32_t route = route_of_rank.load(std::memory_order_relaxed);
  if (route == RankEntry::kNoRoute || route == node_ || data.extents != nullptr) {
    return false;
  }
  const std::uint32_t version = gates_[route].route_version();  // First: as in transmit().
  if (route_of_rank.load(std::memory_order_relaxed) != route) {
    return false;
  }
  FrameHeader second = header;
  second.kind = FrameKind::eager_more;
  ++second.sequence;
  second.payload_bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(data.bytes - offset - header.payload_bytes, frame_bytes));
  const Piece pieces[2][2] = {
      {std::as_bytes(std::span{&header, 1}), {data.address + offset, header.payload_bytes}},
      {std::as_bytes(std::span{&second, 1}),
       {data.address + offset + header.payload_bytes, second.payload_bytes}}};
  Gate::TwoResults two{};
  if (!gates_[route].try_send_two(pieces[0], pieces[1], version, two)) {
    return false;
  }
  if (two.was_beside) {
    counters_.handed.add();
  }
  is_sent = two.results[0] != Gate::SendResult::lost && two.results[1] != Gate::SendResult::lost;
  header = second;
  return true;
}

/// The message was announced: what is said of it from now on comes after that. Unless it has been
/// answered.
void TransportCore::tell_announced(Endpoint& from, std::uint64_t id, std::uint32_t peer,
                                   std::uint32_t sequence) noexcept {
  const threads::OwnedGuard guard{ranks_[from.rank].lock};
  if (void* const request = find_pending(from, id, PendingEntry::Kind::send, peer)) {
    invitations_.announce(*static_cast<SendRequest*>(request), sequence);
  }
}

}  // namespace sterna::net
