// Links: what time brings. All of it is called by the poller.
#include <algorithm>

#include "net/rails/link.h"

namespace sterna::net {
namespace {

// A rail that never loses packets is avoided, and asked whether it is alive, when one has been on
// its way so long, or eight times what one takes, or four times what all that is on its way there
// takes: congestion looks the same, and costs some packets that come twice.
constexpr std::uint64_t kSilenceNs = 500'000'000;
constexpr std::uint64_t kTellNs = 3'000'000'000;  // A silence that the log has as a warning.
constexpr std::uint64_t kLossNs = 3'000'000;  // Of one that does lose them; and two round trips.
constexpr std::uint32_t kDoublingsMax = 8;
constexpr std::uint64_t kAskNs = 100'000'000;
constexpr std::uint64_t kNoRoomNs = 1'000'000;
constexpr std::uint32_t kAgainAtOnce = 64;  // Sent in one step.

}  // namespace

std::uint64_t Link::patience_ns(const LinkRail& rail, std::uint32_t tries) const noexcept {
  const std::uint64_t round_trip_ns = rail.rate.round_trip_ns();
  const std::uint32_t doublings = rail.may_miss ? std::min(tries, kDoublingsMax) : 0;
  if (rail.is_reliable) {
    return std::max({kSilenceNs, 8 * round_trip_ns,
                     4 * rail.rate.in_flight() * rail.rate.ps_per_byte() / 1000})
           << doublings;
  }
  return (kLossNs + 2 * round_trip_ns) << doublings;
}

/// When the rail is to be asked whether it is alive.
std::uint64_t Link::asks_at(const LinkRail& rail) const noexcept {
  if (is_in_doubt(rail)) {
    return rail.try_ns;
  }
  return rail.state == RailState::up && !rail.is_reliable && rail.unheard_ns != kNever
             ? std::max(rail.unheard_ns + shared_.options.silence_ns / 2, rail.ask_ns)
             : kNever;
}

std::uint32_t Link::step(std::uint64_t now_ns) noexcept {
  const SpinGuard send{send_lock_};
  {
    const SpinGuard guard{state_lock_};
    due_ns_.store(kNever, std::memory_order_relaxed);
    if (is_over()) {
      drop_all();
      return 0;
    }
    // With what has come from a process that has ended: its end is behind it.
    is_lost_ = gone_ns_ != kNever && (!may_have_more() || now_ns - gone_ns_ >= kGoneNs);
  }
  open_rails();
  std::uint32_t count = connect_again(now_ns);
  {
    const SpinGuard guard{state_lock_};
    if (is_over() || ends_now()) {
      drop_all();
      note_due(now_ns);  // What waits for it may end in parts.
      return count;
    }
    find_silent(now_ns);
    if (may_miss_ || now_ns >= miss_ns_) {
      find_missing(now_ns);
    }
  }
  count += send_again(now_ns) + acknowledge(now_ns) + ask_and_answer(now_ns);
  const SpinGuard guard{state_lock_};
  plan(now_ns);
  return count;
}

void Link::mark_missing(Sent& sent) noexcept {
  rails_[sent.rail].rate.forget(sent.packet->bytes);
  sent.must_go = true;
  ++again_count_;
}

/// All that went by the rail.
void Link::mark_missing(const LinkRail& rail) noexcept {
  for (std::uint32_t i = window_.first(); i != window_.next(); ++i) {
    Sent& sent = window_[i];
    if (sent.packet != nullptr && !sent.must_go && !sent.is_busy && &rails_[sent.rail] == &rail) {
      mark_missing(sent);
    }
  }
}

/// Marks what has to be sent again: by a rail that is gone, that was overtaken or has been silent.
void Link::find_missing(std::uint64_t now_ns) noexcept {
  const bool has_other = up_count() > 1;
  for (std::uint32_t i = window_.first(); i != window_.next(); ++i) {
    Sent& sent = window_[i];
    if (sent.packet == nullptr || sent.must_go || sent.is_busy) {
      continue;
    }
    LinkRail& rail = rails_[sent.rail];
    const bool is_late = now_ns - std::min(now_ns, sent.sent_ns) >= patience_ns(rail, sent.tries);
    bool is_missing = rail.state == RailState::down || rail.state == RailState::ended ||
                      is_in_doubt(rail);
    const bool may_be_silent = rail.is_reliable && has_other;
    if (!is_missing && rail.may_miss) {
      is_missing = (is_late && !may_be_silent) ||
                   (rail.is_ordered && sent.order + kOvertaken <= rail.newest_order);
    }
    if (!is_missing && is_late && may_be_silent) {
      suspect(rail, now_ns);
      find_missing(now_ns);  // All that went by it. Once a rail, so not deep.
      return;
    }
    if (is_missing) {
      mark_missing(sent);
    }
  }
  may_miss_ = false;
}

/// Rails that may lose packets and by which nothing has come for long, though they were asked. Such
/// a driver has no connection to make anew: while another rail works it goes on being asked.
void Link::find_silent(std::uint64_t now_ns) noexcept {
  for (LinkRail& rail : rails_) {
    if (rail.state != RailState::up || rail.is_reliable ||
        now_ns - std::min(now_ns, rail.unheard_ns) <= shared_.options.silence_ns) {
      continue;
    }
    const bool has_other = std::ranges::any_of(rails_, [&](const LinkRail& other) {
      return &other != &rail &&
             (other.state == RailState::up ||
              (other.is_reliable && (other.state == RailState::suspect || other.try_ns != kNever)));
    });
    why_ = "nothing has come from it for too long";
    if (has_other) {
      suspect(rail, now_ns);
      may_miss_ = true;
      lost_since_ns_ = has_way() ? lost_since_ns_ : std::min(lost_since_ns_, now_ns);
    } else {
      rail.state = RailState::down;
      rail.try_ns = kNever;
      is_lost_ = true;
      drop_all();
    }
  }
}

/// From now on it is asked. Answers to what it was asked before count for nothing; each later one
/// counts, since a way there and back may take longer than the time between two questions.
void Link::doubt(LinkRail& rail, RailState state, std::uint64_t now_ns) noexcept {
  rail.state = state;
  rail.try_ns = rail.suspect_ns = now_ns;
  rail.old_probe = rail.probe;
  rail.is_told = state == RailState::reviving;  // That it is down was told.
}

void Link::suspect(LinkRail& rail, std::uint64_t now_ns) noexcept {
  doubt(rail, RailState::suspect, now_ns);
  owe_again(now_ns);
  shared_.log->info("rail {} to node {} is silent; its packets take the other rails", rail.name,
                    node_);
}

std::uint32_t Link::send_again(std::uint64_t /*now_ns*/) noexcept {
  std::uint32_t count = 0;
  std::uint32_t sequence = 0;
  {
    const SpinGuard guard{state_lock_};
    sequence = window_.first();
  }
  for (;; ++sequence) {
    HeldPacket* packet = nullptr;
    {
      const SpinGuard guard{state_lock_};
      if (again_count_ == 0 || !window_.holds(sequence) || count == kAgainAtOnce) {
        return count;
      }
      Sent& sent = window_[sequence];
      if (!sent.must_go) {
        continue;
      }
      packet = sent.packet;
      sent.is_busy = true;
      sent.must_go = false;
      --again_count_;
      sent.tries = static_cast<std::uint16_t>(std::min<std::uint32_t>(sent.tries + 1U, 60'000));
    }
    const SendState state = send_kept(sequence, *packet);
    const SpinGuard guard{state_lock_};
    if (state != SendState::accepted) {
      Sent& sent = window_[sequence];  // Held: this thread takes the news, and it is busy here.
      sent.is_busy = false;
      sent.must_go = true;
      ++again_count_;
      return count;
    }
    ++statistics_.sent_again;
    ++count;
  }
}

/// A packet of the link's own: not numbered, not kept.
bool Link::send_note(std::uint32_t at, LinkKind kind, std::uint32_t sequence,
                     std::span<const std::byte> payload) noexcept {
  static constexpr std::array<std::byte, kLinkHeaderBytes> kRoom{};
  const Piece pieces[2] = {kRoom, payload};
  HeldPacket* const packet = shared_.pool->copy(pieces);
  LinkRail& rail = rails_[at];
  {
    const SpinGuard guard{state_lock_};
    write_header(*packet, kind, rail.index, sequence, shared_.clock->now_ns());
  }
  const Piece piece = packet->packet();
  const SendState state =
      rail.channel != nullptr ? rail.channel->try_send({&piece, 1}) : SendState::full;
  {
    const SpinGuard guard{state_lock_};
    if (state == SendState::accepted) {
      note_told(*packet, kind);
    } else if (state == SendState::closed) {
      note_closed(rail);
    }
  }
  shared_.pool->release(packet);
  return state == SendState::accepted;
}

std::uint32_t Link::acknowledge(std::uint64_t now_ns) noexcept {
  std::array<std::uint64_t, kArrivedWords> words;
  std::uint32_t word_count = 0;
  std::array<std::uint32_t, 65> order;  // The rail of the last packet first.
  std::uint32_t rail_count = 0;
  {
    const SpinGuard guard{state_lock_};
    if (owed_ == 0 || (!is_closing_ && now_ns < ack_ns_)) {
      return 0;
    }
    word_count = received_.map(words);
    order[rail_count++] = echo_rail_;
    for (std::uint32_t i = 0; i < rails_.size() && rail_count < order.size(); ++i) {
      if (i != echo_rail_) {
        order[rail_count++] = i;
      }
    }
  }
  const std::span<const std::byte> map = std::as_bytes(std::span{words.data(), word_count});
  for (std::uint32_t i = 0; i < rail_count; ++i) {
    bool is_way = false;
    {
      const SpinGuard guard{state_lock_};
      const LinkRail& rail = rails_[order[i]];
      is_way = rail.state == RailState::up || (is_in_doubt(rail) && up_count() == 0);
    }
    if (is_way && send_note(order[i], LinkKind::ack, 0, map)) {
      const SpinGuard guard{state_lock_};
      ++statistics_.acks;
      return 1;
    }
  }
  const SpinGuard guard{state_lock_};
  ack_ns_ = owed_ != 0 ? now_ns + kNoRoomNs : kNever;
  return 0;
}

/// Answers the peer's questions; asks rails that were silent.
std::uint32_t Link::ask_and_answer(std::uint64_t now_ns) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < rails_.size(); ++i) {
    LinkRail& rail = rails_[i];
    bool must_answer = false;
    bool must_ask = false;
    std::uint32_t asked = 0;
    std::uint32_t probe = 0;
    {
      const SpinGuard guard{state_lock_};
      must_answer = rail.is_asked;
      rail.is_asked = false;
      asked = rail.asked;
      must_ask = now_ns >= asks_at(rail);
      if (must_ask) {
        probe = ++rail.probe;
        rail.ask_ns = now_ns + std::min(kAskNs, shared_.options.silence_ns / 16);
        if (rail.state == RailState::suspect && !rail.is_told &&
            now_ns - rail.suspect_ns >= kTellNs) {
          rail.is_told = true;
          shared_.log->warn(
              "rail {} to node {} has been silent for {} s; the others carry its packets",
              rail.name, node_, kTellNs / 1'000'000'000);
        }
        rail.try_ns = is_in_doubt(rail) ? rail.ask_ns : rail.try_ns;
      }
    }
    count += must_answer && send_note(i, LinkKind::answer, asked, {}) ? 1 : 0;
    count += must_ask && send_note(i, LinkKind::probe, probe, {}) ? 1 : 0;
  }
  return count;
}

/// Rails that broke, in pauses that grow; and whether those that refuse packets have closed.
std::uint32_t Link::connect_again(std::uint64_t now_ns) noexcept {
  std::uint32_t count = 0;
  for (LinkRail& rail : rails_) {
    {
      const SpinGuard guard{state_lock_};
      if ((rail.state != RailState::down && rail.state != RailState::ended) ||
          now_ns < rail.try_ns) {
        continue;
      }
    }
    Result<Channel*> revived = rail.driver->revive(node_);
    const SpinGuard guard{state_lock_};
    count += try_again(rail, revived, now_ns) ? 1 : 0;
  }
  const SpinGuard guard{state_lock_};
  const bool may_come =
      std::ranges::any_of(rails_, [](const LinkRail& rail) { return rail.try_ns != kNever; });
  if (lost_since_ns_ != kNever &&
      (!may_come || now_ns - lost_since_ns_ >= shared_.options.reconnect_ns)) {
    is_lost_ = true;
    drop_all();
  }
  return count;
}

/// True: its driver connects anew. A driver may take packets for a peer that does not answer, and
/// tell of it much later: only an answer shows that the rail is up.
bool Link::try_again(LinkRail& rail, Result<Channel*>& revived,
                     std::uint64_t now_ns) noexcept {
  const Errc why = revived ? Errc{} : revived.error().code;
  if (rail.state == RailState::ended) {
    if (why == Errc::closed || why == Errc::unsupported) {
      rail.try_ns = kNever;  // The peer has closed it in good order.
    } else if (now_ns - rail.ended_ns < std::max(shared_.options.reconnect_ns, kGoneNs)) {
      rail.try_ns = now_ns + kEndNs;  // It is lost, which its driver is about to tell.
    } else {
      drop_rail(rail, "it takes no packets", now_ns);
    }
    return false;
  }
  if (revived) {
    mark_missing(rail);  // What the old connection had is gone with it.
    rail.channel = revived.value();
    rail.unheard_ns = kNever;
    doubt(rail, RailState::reviving, now_ns);
    return true;
  }
  rail.pause_ns = std::min(2 * rail.pause_ns, kPauseMaxNs);
  rail.try_ns = why == Errc::unsupported ? kNever : now_ns + rail.pause_ns;
  return false;
}

/// When the next step is due. Nothing is missed by a later one: what comes and goes says when it
/// wants one.
void Link::plan(std::uint64_t now_ns) noexcept {
  std::uint64_t at_ns = ack_ns_;
  miss_ns_ = kNever;
  if (again_count_ != 0) {
    at_ns = std::min(at_ns, now_ns + kNoRoomNs);
  }
  for (const LinkRail& rail : rails_) {
    at_ns = std::min({at_ns, rail.is_asked ? now_ns : rail.try_ns, asks_at(rail)});
  }
  for (std::uint32_t i = window_.first(); i != window_.next(); ++i) {
    const Sent& sent = window_[i];
    if (sent.packet != nullptr && !sent.must_go) {
      const LinkRail& rail = rails_[sent.rail];
      // One that is late on the only rail that is up is waited for, if that loses none. Should
      // another one come up, hear() says so.
      if (rail.state != RailState::up || rail.may_miss || up_count() > 1) {
        miss_ns_ = sent.sent_ns + patience_ns(rail, sent.tries);
        at_ns = std::min(at_ns, miss_ns_);
      }
      break;  // The others went later, but for what went again: that is looked at then.
    }
  }
  if (lost_since_ns_ != kNever) {
    at_ns = std::min(at_ns, lost_since_ns_ + shared_.options.reconnect_ns);
  }
  if (gone_ns_ != kNever) {
    at_ns = std::min(at_ns, gone_ns_ + kGoneNs);
  }
  if (now_ns < lent_look_ns_) {  // Who has lent something looks in the same poll.
    at_ns = std::min(at_ns, now_ns + kStuckNs);
  }
  note_due(at_ns);
  is_sooner_.store(false, std::memory_order_relaxed);
}

}  // namespace sterna::net
