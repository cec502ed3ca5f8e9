// Gates: who may send now, and what waits.
#include "net/matching/gate.h"

#include "base/clock.h"
#include "net/packets/forming.h"
#include "net/rails/link.h"
#include "net/transfer/lending.h"

namespace sterna::net {

Gate::~Gate() {
  drop_all();
}

void Gate::open(std::uint32_t node, Driver& driver, Packet peer_address, const CostModel& cost,
                const GateShared& shared, std::uint32_t rail_count) noexcept {
  node_ = node;
  rail_count_ = rail_count;
  driver_ = &driver;
  peer_address_ = peer_address;
  packet_bytes_max_ = driver.packet_bytes_to(node);
  shared_ = shared;
  const SpinGuard guard{cost_lock_};
  cost_ = std::make_unique<CostModel>(cost);
  publish_cost();
}

bool Gate::try_own() noexcept {
  if (*shared_.is_serial) {
    const bool is_free = !is_owned_.load(std::memory_order_relaxed);
    is_owned_.store(true, std::memory_order_relaxed);
    return is_free;
  }
  // Acquire: pairs with A in let_go(), for what the last owner wrote. Sequentially consistent, see
  // let_go().
  return !is_owned_.exchange(true, std::memory_order_seq_cst);
}

void Gate::let_go() noexcept {
  for (;;) {
    // A: releases what the owner wrote. Sequentially consistent: a sender pushes, then tries to
    // own; we let go, then look. If it failed to own because of us, its push comes before our look
    // in the one order of the four operations, so we see it.
    if (*shared_.is_serial) {
      is_owned_.store(false, std::memory_order_relaxed);
    } else {
      is_owned_.exchange(false, std::memory_order_seq_cst);
    }
    if (inbox_.looks_empty() || !try_own()) {
      return;
    }
    // Only moved, when there is no room: then advance() goes on, from poll().
    drain_for_others();
  }
}

Channel* Gate::connected() noexcept {
  Channel* channel = channel_.load(std::memory_order_relaxed);  // Written by owners.
  if (channel != nullptr || is_lost()) [[likely]] {
    return channel;
  }
  Result<Channel*> opened = driver_->connect(node_, peer_address_);
  if (!opened) {
    lose();
    return nullptr;
  }
  if (opened.value()->are_copies_refused()) {
    lose_direct();
  }
  channel_.store(opened.value(), std::memory_order_release);
  return opened.value();
}

Channel* Gate::channel() noexcept {
  if (Channel* channel = channel_.load(std::memory_order_acquire); channel != nullptr) {
    return channel;
  }
  if (!try_own()) {
    return nullptr;
  }
  Channel* channel = connected();
  let_go();
  return channel;
}

void Gate::push(std::span<const Piece> frame, std::uint32_t route_version) noexcept {
  HeldPacket* packet = shared_.pool->copy(frame);
  packet->route_version = route_version;
  inbox_.push(*packet);
}

Gate::SendResult Gate::send(std::span<const Piece> frame, std::uint32_t route_version) noexcept {
  if (is_lost()) [[unlikely]] {
    return SendResult::lost;
  }
  if (!try_own()) {
    push(frame, route_version);
    if (try_own()) {
      drain_for_others();
      let_go();
    }
    return SendResult::queued;
  }
  if (is_stale(route_version)) [[unlikely]] {
    let_go();
    return SendResult::stale;
  }
  SendResult result = SendResult::queued;
  if (pending_.first == nullptr && inbox_.looks_empty()) [[likely]] {
    if (Channel* channel = connected(); channel != nullptr) [[likely]] {
      const SendState state = channel->try_send(frame);
      if (state == SendState::accepted) [[likely]] {
        let_go();
        return SendResult::sent;
      }
      if (state == SendState::closed) {
        lose();
      }
    }
  } else if (send_behind(frame)) {
    let_go();
    return SendResult::sent;
  }
  if (is_lost()) {
    result = SendResult::lost;
  } else {
    push(frame, route_version);
  }
  drain_for_others();
  let_go();
  return result;
}

std::uint32_t Gate::advance() noexcept {
  if (is_empty() || !try_own()) {
    return 0;
  }
  const std::uint32_t count = drain();
  let_go();
  return count;
}

void Gate::take_inbox() noexcept {
  while (HeldPacket* packet = inbox_.pop()) {
    if (is_stale(packet->route_version)) [[unlikely]] {
      shared_.on_stale(shared_.core, packet);
      continue;
    }
    add_by_priority(pending_, *packet);
    // Relaxed: written by owners only, read elsewhere as a hint.
    pending_count_.fetch_add(1, std::memory_order_relaxed);
  }
}

/// Of the first packet of a drain, which alone is one to learn from, or of the next.
PacketLimits Gate::limits(bool is_first) const noexcept {
  return {.packet_bytes_max = packet_bytes_max_,
          .share_bytes = share_bytes_.load(std::memory_order_relaxed),
          .learnt_packet_ns = learner_.packet_ns(),
          .learnt_ps_per_byte = learner_.ps_per_byte(),
          .trial = is_first ? learner_.next_trial() : Trial::none};
}

/// What others left here may be what a sleeper waits for the answer to. Free when nobody sleeps.
void Gate::drain_for_others() noexcept {
  drain();
  if (shared_.wake_sleeper != nullptr && !*shared_.is_serial) {
    shared_.wake_sleeper(shared_.core);
  }
}

std::uint32_t Gate::drain() noexcept {
  std::uint32_t packet_count = 0;
  std::uint32_t frame_count = 0;
  std::uint64_t bytes = 0;
  take_inbox();
  if (is_lost()) {
    drop_all();
  }
  Channel* channel = pending_.first != nullptr ? connected() : nullptr;
  const bool learns = channel != nullptr && shared_.clock != nullptr && shared_.strategy->learns();
  while (pending_.first != nullptr && channel != nullptr) {
    Formed formed;
    form_packet(pending_, *shared_.strategy, limits(packet_count == 0), passed_over_, formed);
    if (formed.broken_rule != nullptr) [[unlikely]] {
      shared_.on_bad_choice(shared_.core, formed.broken_rule);
    }
    const SendState state = channel->try_send({formed.pieces.data(), formed.count});
    if (state == SendState::full) {
      break;
    }
    if (state == SendState::closed) {
      lose();
      drop_all();
      break;
    }
    take_out(pending_, formed);
    passed_over_ = formed.passed_over;
    for (std::uint32_t i = 0; i < formed.count; ++i) {
      bytes += formed.pieces[i].size();
      shared_.pool->release(formed.packets[i]);
    }
    frame_count += formed.count;
    pending_count_.fetch_sub(formed.count, std::memory_order_relaxed);
    ++packet_count;
    take_inbox();
  }
  if (learns) [[unlikely]] {
    learner_.left(packet_count, frame_count, bytes, pending_.first != nullptr,
                  shared_.clock->now_ns());
    if (const std::uint64_t rate = is_direct() ? 0 : learner_.take_news(); rate != 0) {
      change_cost([&](CostModel& cost) { cost.measured_rate(rate); });
    }
  }
  note_waiting();
  return packet_count;
}

void Gate::count_waiting(bool is_waiting) noexcept {
  // Relaxed: a hint for the poller, which looks again at each poll.
  shared_.waiting_count->fetch_add(is_waiting ? 1 : ~std::uint32_t{0}, std::memory_order_relaxed);
  if (shared_.kept != nullptr) {
    is_waiting ? shared_.kept->add() : shared_.kept->remove();
  }
}

void Gate::note_waiting() noexcept {
  has_followed_.store(false, std::memory_order_relaxed);  // What waits still, waits for room.
  const bool is_waiting = pending_.first != nullptr;
  if (is_waiting != is_waiting_) {
    is_waiting_ = is_waiting;
    count_waiting(is_waiting);
    if (is_waiting && shared_.wake_sleeper != nullptr) {
      shared_.wake_sleeper(shared_.core);
    }
  }
}

void Gate::drop_all() noexcept {
  take_inbox();
  while (pending_.first != nullptr) {
    HeldPacket* packet = pending_.first;
    pending_.first = packet->next;
    shared_.pool->release(packet);
  }
  pending_.last = nullptr;
  pending_count_.store(0, std::memory_order_relaxed);
}

void Gate::lose() noexcept {
  is_lost_.store(true, std::memory_order_release);
}

bool Gate::is_empty() const noexcept {
  return pending_count_.load(std::memory_order_relaxed) == 0 && inbox_.looks_empty();
}

std::uint64_t Gate::lent_from_bytes() const noexcept {
  // A channel knows whether its peer reads; before there is one, the driver whether it could.
  const Channel* const channel = open_channel();
  const CostModel model = cost();
  const bool is_lent = channel != nullptr ? is_lent_to(model, channel->lent_bytes_max())
                                          : driver_->capabilities().can_lend;
  return is_lent ? net::lent_from_bytes(model) : CostModel::kNever;
}

[[gnu::noinline]] bool Gate::is_trial(std::uint64_t bytes) noexcept {
  const SpinGuard guard{cost_lock_};
  const bool is_next = trials_.is_next(*cost_, bytes);
  until_trial_.store(trials_.until(), std::memory_order_relaxed);
  return is_next;
}

void Gate::publish_cost() noexcept {
  eager_bytes_.store(cost_->eager_bytes(), std::memory_order_relaxed);
  unawaited_eager_bytes_.store(cost_->unawaited_eager_bytes(), std::memory_order_relaxed);
  computing_eager_bytes_.store(cost_->computing_eager_bytes(), std::memory_order_relaxed);
  eager_trials_.begin_from(cost_->tried_from_bytes());
  own_reading_ps_.store(cost_->own_reading_ps(), std::memory_order_relaxed);
  direct_from_bytes_.store(cost_->direct_from_bytes(), std::memory_order_relaxed);
  direct_thresholds_.publish(*cost_);
  share_bytes_.store(cost_->share_bytes(), std::memory_order_relaxed);
  head_bytes_.store(cost_->head_bytes(), std::memory_order_relaxed);
  is_handed_over_.store(cost_->hands_over(), std::memory_order_relaxed);
  beside_from_bytes_.store(cost_->beside_from_bytes(), std::memory_order_relaxed);
}

}  // namespace sterna::net
