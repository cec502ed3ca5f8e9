// Gates: frames that may be left to a worker of the node that is awake and has nothing to run.
#include "base/clock.h"
#include "net/matching/gate.h"
#include "net/rails/link.h"

namespace sterna::net {
namespace {

// Of the sends that may be left to others, one of so many is measured instead.
constexpr std::uint32_t kSendsPerMeasure = 16;
constexpr std::size_t kMeasuredBytesMax = 2048;

}  // namespace

/// What it takes the sender himself, as long as that is not the copying of many bytes.
Gate::SendResult Gate::send_measured(std::span<const Piece> frame,
                                     std::uint32_t route_version) noexcept {
  if (shared_.clock == nullptr || bytes_of(frame) > kMeasuredBytesMax) {
    return send(frame, route_version);
  }
  const std::uint64_t begin = shared_.clock->now_ns();
  const SendResult result = send(frame, route_version);
  if (result == SendResult::sent) {
    measured_send(shared_.clock->now_ns() - begin);
  }
  return result;
}

/// Null: nobody is there to whom work could be handed.
threads::HandOver* Gate::taker() const noexcept {
  // Acquire: the object is as its maker left it.
  threads::HandOver* const hand_over = shared_.hand_over != nullptr && !*shared_.is_serial
                                           ? shared_.hand_over->load(std::memory_order_acquire)
                                           : nullptr;
  return hand_over != nullptr && hand_over->has_taker() ? hand_over : nullptr;
}

bool Gate::is_to_be_measured() noexcept {
  // Relaxed: a count that need not be exact.
  const std::uint32_t count = unmeasured_.load(std::memory_order_relaxed) + 1;
  unmeasured_.store(count, std::memory_order_relaxed);
  return count % kSendsPerMeasure == 0;
}

bool Gate::try_send_two(std::span<const Piece> first, std::span<const Piece> second,
                        std::uint32_t route_version, TwoResults& two) noexcept {
  threads::HandOver* const hand_over = rail_count_ > 1 ? taker() : nullptr;
  if (hand_over == nullptr || shared_.side_work == nullptr || is_lost()) {
    return false;
  }
  const bool is_measured = shared_.clock != nullptr && is_to_be_measured();
  // Relaxed: a choice that may be an old one.
  const bool gains =
      bytes_of(second) >= beside_from_bytes_.load(std::memory_order_relaxed) && !is_measured;
  if ((!gains && !is_measured) || !try_own()) {
    return false;
  }
  const bool is_idle =
      !is_stale(route_version) && pending_.first == nullptr && inbox_.looks_empty();
  auto* const link = is_idle ? static_cast<Link*>(connected()) : nullptr;
  if (link == nullptr) {
    let_go();
    return false;
  }
  Link::Two sent{};
  if (gains) {
    sent = link->try_send_two(first, second, *shared_.side_work, *hand_over);
  } else {
    const std::uint64_t begin = shared_.clock->now_ns();
    sent.states[0] = link->try_send(first);
    if (sent.states[0] == SendState::accepted) {
      measured_piece(bytes_of(first), shared_.clock->now_ns() - begin);
    }
    sent.states[1] =
        sent.states[0] == SendState::accepted ? link->try_send(second) : sent.states[0];
  }
  two.was_beside = sent.was_beside;
  for (int i = 0; i < 2; ++i) {
    if (sent.states[i] == SendState::closed) {
      lose();
    }
    two.results[i] = sent.states[i] == SendState::accepted ? SendResult::sent
                     : is_lost()                           ? SendResult::lost
                                                           : SendResult::queued;
    if (two.results[i] == SendResult::queued) {
      push(i == 0 ? first : second, route_version);
    }
  }
  if (!inbox_.looks_empty()) {
    drain_for_others();
  }
  let_go();
  return true;
}

bool Gate::sends_at_once() noexcept {
  if (taker() == nullptr) {
    return true;
  }
  // Relaxed, both: as in is_to_be_measured(), which has its turn; a choice that may be an old one.
  const std::uint32_t count = unmeasured_.load(std::memory_order_relaxed) + 1;
  if (is_handed_over_.load(std::memory_order_relaxed) || count % kSendsPerMeasure == 0) {
    return false;
  }
  unmeasured_.store(count, std::memory_order_relaxed);
  return true;
}

Gate::SendResult Gate::send_later(std::span<const Piece> frame,
                                  std::uint32_t route_version) noexcept {
  threads::HandOver* const hand_over = taker();
  if (hand_over == nullptr || is_lost()) {
    return send(frame, route_version);
  }
  if (is_to_be_measured()) {
    return send_measured(frame, route_version);
  }
  // Relaxed: a choice that may be an old one.
  if (!is_handed_over_.load(std::memory_order_relaxed)) {
    return send(frame, route_version);
  }
  push(frame, route_version);
  // Who takes it finds the gate free, or its owner looks into the inbox after letting go: the
  // taker's attempt to own it comes after our push. The same holds for us.
  if (!hand_over->hand() && try_own()) {
    drain_for_others();
    let_go();
  }
  return SendResult::handed;
}

}  // namespace sterna::net
