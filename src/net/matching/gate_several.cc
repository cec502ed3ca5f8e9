// Gates: several frames in one call of the channel, where it is each call that costs.
#include <array>

#include "base/check.h"
#include "net/matching/gate.h"

namespace sterna::net {
namespace {

// Transfers let frames that wait go first, but so often in a row only: else a stream of short
// messages would keep a long one for ever.
constexpr std::uint32_t kRefusedMax = 4;

}  // namespace

std::size_t Gate::try_send(std::span<const std::span<const Piece>> frames,
                           SendState& state) noexcept {
  state = is_lost() ? SendState::closed : SendState::full;
  if (is_lost() || !try_own()) {
    return 0;
  }
  std::size_t count = 0;
  const bool is_idle = pending_.first == nullptr && inbox_.looks_empty();
  if (is_idle || ++refused_ > kRefusedMax) {
    Channel* channel = connected();
    state = SendState::closed;
    if (channel != nullptr) {
      count = channel->try_send_several(frames, state);
    }
    if (state == SendState::closed) {
      lose();
    }
    refused_ = count != 0 ? 0 : refused_;
  }
  let_go();
  return count;
}

/// It waits among the frames of the gate, where the next sender, or whoever polls, finds it.
Gate::SendResult Gate::send_followed(std::span<const Piece> frame,
                                     std::uint32_t route_version) noexcept {
  if (is_lost() || !try_own()) {
    return send(frame, route_version);
  }
  const bool is_idle =
      !is_stale(route_version) && pending_.first == nullptr && inbox_.looks_empty();
  Channel* const channel = is_idle ? connected() : nullptr;
  if (channel == nullptr || !channel->gains_by_several()) {
    let_go();
    return send(frame, route_version);
  }
  push(frame, route_version);
  take_inbox();
  // As in note_waiting(), but that nobody is woken for it.
  if (pending_.first != nullptr) {
    is_waiting_ = true;
    count_waiting(true);
    has_followed_.store(pending_.first == pending_.last, std::memory_order_relaxed);
  }
  let_go();
  return SendResult::queued;
}

/// The one frame that waits, if there is one, and these behind it, in one call. Returns how many of
/// these have gone.
std::size_t Gate::send_with_waiting(Channel& channel,
                                    std::span<const std::span<const Piece>> frames) noexcept {
  HeldPacket* const first = pending_.first;
  const Piece piece = first != nullptr ? first->packet() : Piece{};
  std::array<std::span<const Piece>, kFramesAtOnceMax + 1> all;
  std::size_t all_count = 0;
  if (first != nullptr) {
    all[all_count++] = {&piece, 1};
  }
  for (const std::span<const Piece>& frame : frames) {
    all[all_count++] = frame;
  }
  SendState state;
  const std::size_t count = channel.try_send_several({all.data(), all_count}, state);
  if (state == SendState::closed) {
    lose();
  }
  has_followed_.store(false, std::memory_order_relaxed);  // If it waits still, then for room.
  if (first == nullptr || count == 0) {
    return count;
  }
  pending_ = {};
  shared_.pool->release(first);
  pending_count_.fetch_sub(1, std::memory_order_relaxed);
  note_waiting();
  return count - 1;
}

/// One frame waits, which send_followed() has left, or for which there was no room: this one goes
/// with it. False: it has not gone, but perhaps the other one has.
bool Gate::send_behind(std::span<const Piece> frame) noexcept {
  Channel* const channel = channel_.load(std::memory_order_relaxed);  // Written by owners.
  HeldPacket* const first = pending_.first;
  return channel != nullptr && channel->gains_by_several() && first != nullptr &&
         first == pending_.last && inbox_.looks_empty() && frame.size() < kPacketPiecesMax &&
         send_with_waiting(*channel, {&frame, 1}) == 1;
}

bool Gate::gains_by_several() const noexcept {
  const Channel* const channel = channel_.load(std::memory_order_acquire);
  return channel != nullptr && channel->gains_by_several();
}

std::size_t Gate::try_send_at_once(std::span<const std::span<const Piece>> frames,
                                   std::uint32_t route_version) noexcept {
  check(frames.size() <= kFramesAtOnceMax, "few frames go at once");
  if (is_lost() || !try_own()) {
    return 0;
  }
  const bool is_free =
      !is_stale(route_version) && pending_.first == pending_.last && inbox_.looks_empty();
  Channel* const channel = is_free ? channel_.load(std::memory_order_relaxed) : nullptr;
  const std::size_t count = channel != nullptr && channel->gains_by_several()
                                ? send_with_waiting(*channel, frames)
                                : 0;
  let_go();
  return count;
}

}  // namespace sterna::net
