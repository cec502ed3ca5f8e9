// Our attempts to reach a node, over each of its addresses, until it answers or cannot be reached.
//
// Whose system has taken our hello can be reached: its process may compute, for as long as it
// likes, and such an attempt waits for it without limit. That its host has gone the system finds,
// that its process has ended shows as an end of the connection. Meanwhile the other addresses are
// tried beside it; whichever connection is admitted first ends the other attempts.
#include <algorithm>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/check.h"
#include "net/drivers/tcp/driver.h"
#include "net/drivers/tcp/marks.h"

namespace sterna::net::tcp {
namespace {

constexpr std::uint64_t kTickNs = 50'000'000;    // Between two looks at deadlines.
constexpr std::uint64_t kPauseNs = 4 * kTickNs;  // From here on nobody has polled meanwhile.
constexpr std::uint64_t kRetryNs = 100'000'000;  // Between two rounds over the addresses.
constexpr std::uint64_t kRetryBesideNs = 1'000'000'000;  // The same while an attempt waits.

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
    attempt_failed(node, address, socket.error().text);
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
    attempt_failed(slot, "its socket cannot be watched");
  }
}

void TcpDriver::attempt_failed(std::size_t slot, std::string_view reason) noexcept {
  const std::uint32_t node = joinings_[slot]->peer();
  const SocketAddress address = joinings_[slot]->address();
  const bool was_patient = joinings_[slot]->is_patient();
  drop(slot);
  if (!was_patient) {
    attempt_failed(node, address, reason);
    return;
  }
  // Its host was there until now, so there is as much time again.
  Dial& dial = *dials_[node];
  const std::uint64_t now = clock_.now_ns();
  dial.failures = address.text() + ": ";
  dial.failures += reason;
  dial.deadline_ns = std::max(dial.deadline_ns, now + options_.connect_ns);
  if (dial.retry_ns == kNever && !has_attempt(node, Attempts::in_time)) {
    pass_turn(node);
  }
}

void TcpDriver::attempt_failed(std::uint32_t node, const SocketAddress& address,
                               std::string_view reason) noexcept {
  Dial& dial = *dials_[node];
  if (dial.next == 0) {
    dial.failures.clear();
  }
  dial.failures += (dial.failures.empty() ? "" : "; ") + address.text() + ": ";
  dial.failures += reason;
  pass_turn(node);
}

void TcpDriver::pass_turn(std::uint32_t node) noexcept {
  Dial& dial = *dials_[node];
  const std::uint64_t now = clock_.now_ns();
  const auto waits_at = [&](const SocketAddress& address) {
    return std::ranges::any_of(joinings_, [&](const std::unique_ptr<Joining>& joining) {
      return joining != nullptr && joining->is_patient() && joining->peer() == node &&
             joining->address() == address;
    });
  };
  // The next address at the next tick, a new round somewhat later.
  dial.retry_ns = now;
  for (std::size_t i = 0; i < dial.addresses.size(); ++i) {
    dial.next = (dial.next + 1) % dial.addresses.size();
    if (dial.next == 0) {
      dial.retry_ns = now + (has_attempt(node, Attempts::patient) ? kRetryBesideNs : kRetryNs);
    }
    if (!waits_at(dial.addresses[dial.next])) {
      set_timer();
      return;
    }
  }
  dial.retry_ns = kNever;
}

void TcpDriver::attempt_declined(std::size_t slot) noexcept {
  // The peer keeps its own attempt, which will reach us; should it fail, we try again. Or the peer
  // did not know that the connection before was lost: soon it does.
  const std::uint32_t node = joinings_[slot]->peer();
  const bool is_again = known_channel(node)->connection() != 0;
  drop(slot);
  Dial& dial = *dials_[node];
  if (dial.retry_ns == kNever && !has_attempt(node, Attempts::in_time)) {
    dial.retry_ns = clock_.now_ns() + (is_again ? 1 : 5) * kRetryNs;
  }
}

bool TcpDriver::becomes_patient(std::size_t slot) noexcept {
  Joining& joining = *joinings_[slot];
  if (joining.is_incoming() || !joining.has_reached_host()) {
    return false;
  }
  joining.wait_for_ever();
  pass_turn(joining.peer());
  return true;
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

bool TcpDriver::has_attempt(std::uint32_t node, Attempts which) const noexcept {
  return std::ranges::any_of(joinings_, [&](const std::unique_ptr<Joining>& joining) {
    return joining != nullptr && !joining->is_incoming() && joining->peer() == node &&
           (which == Attempts::all || joining->is_patient() == (which == Attempts::patient));
  });
}

void TcpDriver::set_timer() noexcept {
  const bool is_wanted = dial_count_ > 0 || joining_count_ > 0 || is_listener_paused_;
  if (is_wanted == is_timer_set_) {
    return;
  }
  is_timer_set_ = is_wanted;
  ticked_ns_ = clock_.now_ns();
  const timespec tick{.tv_sec = 0, .tv_nsec = is_wanted ? static_cast<long>(kTickNs) : 0};
  const itimerspec setting{.it_interval = tick, .it_value = tick};
  check(::timerfd_settime(timer_.get(), 0, &setting, nullptr) == 0, "a timer can be set");
}

void TcpDriver::look_at_dials(std::uint64_t now) noexcept {
  // Time in which nobody polled does not count: the answers that came in it were not taken.
  const std::uint64_t pause = now - std::exchange(ticked_ns_, now);
  const std::uint64_t uncounted = pause > kPauseNs ? pause : 0;
  for (std::uint32_t node = 0; node < node_count_; ++node) {
    if (dials_[node] == nullptr) {
      continue;
    }
    dials_[node]->deadline_ns += uncounted;
    if (dials_[node]->deadline_ns <= now && !has_pledged(node) &&
        !has_attempt(node, Attempts::patient)) {
      give_up(node);
    } else if (dials_[node]->retry_ns <= now) {
      begin_attempt(node);
    }
  }
}

}  // namespace sterna::net::tcp
