// Who gets in: accepting, the two sides' proofs, and what to do with strangers.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/check.h"
#include "net/drivers/tcp/driver.h"
#include "net/drivers/tcp/marks.h"

namespace sterna::net::tcp {
namespace {

constexpr std::uint64_t kTellEveryNs = 1'000'000'000;  // Between two lines about strangers.
constexpr int kAcceptsMax = 64;                        // A look accepts no more.

}  // namespace

std::size_t TcpDriver::add_joining(std::unique_ptr<Joining> joining) noexcept {
  ++joining_count_;
  const auto place = std::find(joinings_.begin(), joinings_.end(), nullptr);
  const auto slot = static_cast<std::size_t>(place - joinings_.begin());
  if (place == joinings_.end()) {
    joinings_.push_back(std::move(joining));
  } else {
    *place = std::move(joining);
  }
  return slot;
}

void TcpDriver::drop(std::size_t slot) noexcept {
  joinings_[slot].reset();  // Closing its socket takes it out of the epoll set.
  --joining_count_;
}

bool TcpDriver::has_pledged(std::uint32_t node) const noexcept {
  return std::ranges::any_of(joinings_, [&](const std::unique_ptr<Joining>& joining) {
    return joining != nullptr && joining->is_pledged() && joining->peer() == node;
  });
}

void TcpDriver::accept_all() noexcept {
  for (int i = 0; i < kAcceptsMax; ++i) {
    SocketAddress address;
    int error;
    FileDescriptor socket = accept_one(listener_.get(), address, error);
    if (!socket.is_open()) {
      if (error != EAGAIN && error != ECONNABORTED && error != EINTR) {
        // Most likely no descriptor is free. The listener rests until the next tick, else it would
        // wake us for ever.
        logger_.warn("cannot accept a connection: {}; trying again", error_number_text(error));
        is_listener_paused_ = watch(listener_.get(), 0, mark_of(Mark::listener), EPOLL_CTL_MOD);
        set_timer();
      }
      return;
    }
    make_place();
    const int fd = socket.get();
    const Handshake handshake = Handshake::respond(
        bootstrap_.job().secret, {.self = self_, .peer = self_, .node_count = node_count_},
        random_nonce());
    auto joining = std::make_unique<Joining>(std::move(socket), handshake, address,
                                             clock_.now_ns() + options_.handshake_ns);
    joining->set_incoming();
    const std::size_t slot = add_joining(std::move(joining));
    if (!watch(fd, EPOLLIN | EPOLLRDHUP, mark_of(Mark::joining, slot), EPOLL_CTL_ADD)) {
      drop(slot);
    }
    set_timer();
  }
}

void TcpDriver::make_place() noexcept {
  // Peers prove themselves in a moment, so the oldest stranger is the one to go.
  const std::size_t places = std::max(options_.strangers_max, node_count_);
  std::size_t incoming_count = 0;
  std::size_t oldest = 0;
  for (std::size_t slot = 0; slot < joinings_.size(); ++slot) {
    if (joinings_[slot] != nullptr && joinings_[slot]->is_incoming() &&
        !joinings_[slot]->is_pledged()) {
      if (incoming_count++ == 0 ||
          joinings_[slot]->deadline_ns() < joinings_[oldest]->deadline_ns()) {
        oldest = slot;
      }
    }
  }
  if (incoming_count >= places) {
    fail(oldest, "too many connections wait to prove themselves (tcp_strangers)");
  }
}

void TcpDriver::advance(std::size_t slot) noexcept {
  if (slot >= joinings_.size() || joinings_[slot] == nullptr) {
    return;  // An event of a connection that was dropped in the same look.
  }
  Joining& joining = *joinings_[slot];
  const bool was_connecting = joining.is_connecting();
  switch (joining.advance()) {
    case Joining::Step::waiting:
      if (was_connecting && !joining.is_connecting()) {
        static_cast<void>(watch(joining.socket(), EPOLLIN | EPOLLRDHUP,
                                mark_of(Mark::joining, slot), EPOLL_CTL_MOD));
        tune_joining(joining.socket(), options_);  // Its host may go while it waits for ever.
      }
      break;
    case Joining::Step::proven:
      decide(slot);
      break;
    case Joining::Step::pledged:  // Of decide() only.
      break;
    case Joining::Step::admitted:
      admit(slot);
      break;
    case Joining::Step::declined:
      attempt_declined(slot);
      break;
    case Joining::Step::failed:
      fail(slot, std::string{joining.reason()});
      break;
  }
}

void TcpDriver::decide(std::size_t slot) noexcept {
  Joining& joining = *joinings_[slot];
  const std::uint32_t node = joining.peer();
  TcpChannel* channel = channel_to(node);
  const bool is_wanted = channel != nullptr && !is_closed_.load(std::memory_order_relaxed) &&
                         channel->state() == TcpChannel::State::idle &&
                         !(has_attempt(node, Attempts::all) && self_ < node) && !has_pledged(node);
  if (channel != nullptr && channel->state() == TcpChannel::State::open &&
      channel->connection() == joining.lost_connection()) {
    end(*channel, "its end of the connection was lost, and it connects anew");
  }
  switch (joining.decide(is_wanted)) {
    case Joining::Step::pledged:
      // An end of which nothing is heard is found by the system.
      tune_joining(joining.socket(), options_);
      break;
    case Joining::Step::failed:
      fail(slot, std::string{joining.reason()});
      break;
    default:
      drop(slot);
      break;
  }
}

void TcpDriver::admit(std::size_t slot) noexcept {
  const std::uint32_t node = joinings_[slot]->peer();
  const std::uint64_t connection = joinings_[slot]->connection();
  FileDescriptor socket = joinings_[slot]->take_socket();
  drop(slot);
  admitted_ns_ = clock_.now_ns();
  drop_attempts(node);
  if (dials_[node] != nullptr) {
    dials_[node].reset();
    --dial_count_;
  }
  TcpChannel* channel = known_channel(node);
  if (channel->state() != TcpChannel::State::idle) {
    return;  // Lost meanwhile.
  }
  tune(socket.get(), options_);
  const int fd = socket.get();
  if (!channel->adopt(std::move(socket), connection)) {
    end(*channel, "there is no memory for its connection");
    return;
  }
  if (!watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, mark_of(Mark::channel, node),
             EPOLL_CTL_MOD)) {
    end(*channel, "its connection cannot be watched");
    return;
  }
  has_new_channel_ = true;
  activate(*channel);  // push_waiting() sends what has waited.
}

void TcpDriver::fail(std::size_t slot, std::string_view reason) noexcept {
  const bool is_incoming = joinings_[slot]->is_incoming();
  const bool was_pledged = joinings_[slot]->is_pledged();  // (2): it had given up.
  if (is_incoming) {
    const bool is_perhaps_peer = joinings_[slot]->has_left() &&
                                 (dial_count_ > 0 || clock_.now_ns() - admitted_ns_ < kTellEveryNs);
    if (is_perhaps_peer || was_pledged) {
      // Two nodes that call each other at once close one of the two connections, at any step.
      logger_.info("a connection from {} was closed by its other side: {}",
                   joinings_[slot]->address().text(), reason);
      drop(slot);
      return;
    }
    tell_stranger(joinings_[slot]->address(), reason);
    drop(slot);
    return;
  }
  attempt_failed(slot, reason);
}

void TcpDriver::tell_stranger(const SocketAddress& address, std::string_view reason) noexcept {
  const std::uint64_t now = clock_.now_ns();
  if (strangers_told_ns_ != 0 && now - strangers_told_ns_ < kTellEveryNs) {
    ++strangers_untold_;
    return;
  }
  strangers_told_ns_ = now;
  logger_.warn("closed a connection from {}: {} ({} more like it since the last such line)",
               address.text(), reason, std::exchange(strangers_untold_, 0));
}

void TcpDriver::on_timer() noexcept {
  std::uint64_t ticks;
  raw_system_call(SYS_read, timer_.get(), reinterpret_cast<long>(&ticks), sizeof ticks);
  const std::uint64_t now = clock_.now_ns();
  if (std::exchange(is_listener_paused_, false)) {
    is_listener_paused_ = !watch(listener_.get(), EPOLLIN, mark_of(Mark::listener), EPOLL_CTL_MOD);
  }
  for (std::size_t slot = 0; slot < joinings_.size(); ++slot) {
    if (joinings_[slot] != nullptr && joinings_[slot]->deadline_ns() <= now) {
      advance(slot);  // What has come meanwhile counts: it may be we who were late.
    }
    if (joinings_[slot] != nullptr && joinings_[slot]->deadline_ns() <= now &&
        !joinings_[slot]->is_pledged() && !becomes_patient(slot)) {
      fail(slot, joinings_[slot]->is_connecting() ? "it does not answer"
                                                  : "it did not prove itself in time");
    }
  }
  look_at_dials(now);
  set_timer();
}

}  // namespace sterna::net::tcp
