// Who gets in: dialling, accepting, the two sides' proofs, and what to do with strangers.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/check.h"
#include "net/drivers/tcp/driver.h"
#include "net/drivers/tcp/marks.h"

namespace sterna::net::tcp {
namespace {

constexpr std::uint64_t kTickNs = 50'000'000;          // Between two looks at deadlines.
constexpr std::uint64_t kRetryNs = 100'000'000;        // Between two rounds over the addresses.
constexpr std::uint64_t kTellEveryNs = 1'000'000'000;  // Between two lines about strangers.
constexpr int kAcceptsMax = 64;                        // A look accepts no more.

}  // namespace

Result<Channel*> TcpDriver::revive(std::uint32_t node) noexcept {
  check(node < node_count_ && node != self_, "a channel goes to another node of the job");
  Request request{.node = node, .addresses = {}};
  {
    const SpinGuard guard{lock_};
    request.addresses = known_[node];
  }
  TcpChannel* channel = known_channel(node);
  if (channel == nullptr || request.addresses.empty()) {
    return Error{Errc::unreachable, "node " + std::to_string(node) + " was never connected to"};
  }
  if (is_closed_.load(std::memory_order_relaxed) || channel->has_ended_well) {
    return Errc::closed;
  }
  if (channel->state() != TcpChannel::State::ended) {
    return static_cast<Channel*>(channel);  // It is not lost, or the loss was not yet told.
  }
  while (!channel->revive()) {
    // A sender is looking at the state this moment, and finds it ended.
  }
  ask(std::move(request));
  return static_cast<Channel*>(channel);
}

void TcpDriver::take_requests() noexcept {
  std::vector<Request> requests;
  {
    const SpinGuard guard{lock_};
    requests.swap(requests_);
  }
  request_count_.fetch_sub(static_cast<std::uint32_t>(requests.size()), std::memory_order_relaxed);
  for (Request& request : requests) {
    const TcpChannel* channel = known_channel(request.node);
    if (channel->state() != TcpChannel::State::idle || dials_[request.node] != nullptr) {
      continue;  // The peer was faster.
    }
    auto dial = std::make_unique<Dial>();
    dial->addresses = std::move(request.addresses);
    dial->deadline_ns = clock_.now_ns() + options_.connect_ns;
    dials_[request.node] = std::move(dial);
    ++dial_count_;
    begin_attempt(request.node);
  }
  set_timer();
}

void TcpDriver::begin_attempt(std::uint32_t node) noexcept {
  Dial& dial = *dials_[node];
  if (self_ < node && has_pledged(node)) {
    dial.retry_ns = clock_.now_ns();  // (4): when the pledge has come to nothing.
    return;
  }
  dial.retry_ns = kNever;
  const SocketAddress& address = dial.addresses[dial.next];
  auto socket = start_connect(options_, address);
  if (!socket) {
    attempt_failed(node, socket.error().text);
    return;
  }
  const int fd = socket.value().get();
  const Handshake handshake = Handshake::initiate(
      bootstrap_.job().secret, {.self = self_, .peer = node, .node_count = node_count_},
      random_nonce(), known_channel(node)->connection());
  const std::uint64_t deadline = clock_.now_ns() + options_.handshake_ns;
  const std::size_t slot = add_joining(
      std::make_unique<Joining>(std::move(socket.value()), handshake, address, deadline));
  if (!watch(fd, EPOLLOUT, mark_of(Mark::joining, slot), EPOLL_CTL_ADD)) {
    drop(slot);
    attempt_failed(node, "its socket cannot be watched");
  }
}

void TcpDriver::attempt_failed(std::uint32_t node, std::string_view reason) noexcept {
  Dial& dial = *dials_[node];
  if (dial.next == 0) {
    dial.failures.clear();
  }
  dial.failures += (dial.failures.empty() ? "" : "; ") + dial.addresses[dial.next].text() + ": ";
  dial.failures += reason;
  dial.next = (dial.next + 1) % dial.addresses.size();
  const std::uint64_t now = clock_.now_ns();
  // The next address at the next tick, a new round somewhat later.
  dial.retry_ns = dial.next == 0 ? now + kRetryNs : now;
  set_timer();
}

void TcpDriver::drop_attempts(std::uint32_t node) noexcept {
  for (std::size_t slot = 0; slot < joinings_.size(); ++slot) {
    if (joinings_[slot] != nullptr && joinings_[slot]->peer() == node &&
        (!joinings_[slot]->is_incoming() || joinings_[slot]->is_pledged())) {
      drop(slot);
    }
  }
}

void TcpDriver::lose_peer(std::uint32_t node) noexcept {
  if (node >= node_count_) {
    return;
  }
  // A connection that stands, or is just being taken, shows the end itself, behind what was sent;
  // nobody else answers. Without one nobody but us will ever say it to who waits for the peer.
  take_requests();
  for (std::size_t slot = 0; slot < joinings_.size(); ++slot) {
    if (joinings_[slot] != nullptr) {
      advance(slot);
    }
  }
  if (dials_[node] != nullptr) {
    dials_[node]->failures = "its process has ended";
    give_up(node);
  } else if (TcpChannel* const channel = channel_to(node);
             channel != nullptr && channel->state() == TcpChannel::State::idle) {
    end(*channel, "its process has ended");
  }
}

void TcpDriver::give_up(std::uint32_t node) noexcept {
  const std::string failures = std::exchange(dials_[node]->failures, {});
  drop_attempts(node);
  dials_[node].reset();
  --dial_count_;
  end(*known_channel(node),
      "it cannot be reached (" + (failures.empty() ? "no answer in time" : failures) + ")");
}

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

bool TcpDriver::has_attempt(std::uint32_t node) const noexcept {
  return dials_[node] != nullptr && dials_[node]->retry_ns == kNever;
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
    case Joining::Step::declined: {
      // The peer keeps its own attempt, which will reach us; should it fail, we try again. Or the
      // peer did not know that the connection before was lost: soon it does.
      const std::uint32_t node = joining.peer();
      const bool is_again = known_channel(node)->connection() != 0;
      drop(slot);
      dials_[node]->retry_ns = clock_.now_ns() + (is_again ? 1 : 5) * kRetryNs;
      break;
    }
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
                         !(has_attempt(node) && self_ < node) && !has_pledged(node);
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
  const std::uint32_t node = joinings_[slot]->peer();
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
  drop(slot);
  attempt_failed(node, reason);
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

void TcpDriver::set_timer() noexcept {
  const bool is_wanted = dial_count_ > 0 || joining_count_ > 0 || is_listener_paused_;
  if (is_wanted == is_timer_set_) {
    return;
  }
  is_timer_set_ = is_wanted;
  const timespec tick{.tv_sec = 0, .tv_nsec = is_wanted ? static_cast<long>(kTickNs) : 0};
  const itimerspec setting{.it_interval = tick, .it_value = tick};
  check(::timerfd_settime(timer_.get(), 0, &setting, nullptr) == 0, "a timer can be set");
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
        !joinings_[slot]->is_pledged()) {
      fail(slot, joinings_[slot]->is_connecting() ? "it does not answer"
                                                  : "it did not prove itself in time");
    }
  }
  for (std::uint32_t node = 0; node < node_count_; ++node) {
    if (dials_[node] == nullptr) {
      continue;
    }
    if (dials_[node]->deadline_ns <= now && !has_pledged(node)) {
      give_up(node);
    } else if (dials_[node]->retry_ns <= now) {
      begin_attempt(node);
    }
  }
  set_timer();
}

}  // namespace sterna::net::tcp
