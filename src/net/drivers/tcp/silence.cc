// Judges silence by what the system knows of a connection, at ticks of a timer.
#include "net/drivers/tcp/silence.h"

#include <algorithm>
#include <string>

#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/check.h"
#include "net/drivers/tcp/driver.h"

namespace sterna::net::tcp {
namespace {

constexpr std::uint64_t kTickMaxNs = 1'000'000'000;
constexpr std::uint64_t kTicksOfSilence = 4;  // At least.
constexpr std::uint64_t kNsPerMs = 1'000'000;

}  // namespace

bool SilenceTimer::open(std::uint64_t silence_ns) noexcept {
  tick_ns_ = std::min(silence_ns / kTicksOfSilence, kTickMaxNs);
  timer_ = FileDescriptor{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  return timer_.is_open();
}

void SilenceTimer::begin() noexcept {
  // Acquire and release: who finds it ticking has minded its channel before, and the tick sees it.
  if (is_ticking_.exchange(true, std::memory_order_acq_rel)) {
    return;
  }
  const timespec tick{.tv_sec = static_cast<time_t>(tick_ns_ / 1'000'000'000),
                      .tv_nsec = static_cast<long>(tick_ns_ % 1'000'000'000)};
  const itimerspec setting{.it_interval = {}, .it_value = tick};
  check(::timerfd_settime(timer_.get(), 0, &setting, nullptr) == 0, "a timer can be set");
}

void SilenceTimer::take() noexcept {
  std::uint64_t ticks;
  raw_system_call(SYS_read, timer_.get(), reinterpret_cast<long>(&ticks), sizeof ticks);
  is_ticking_.exchange(false, std::memory_order_acq_rel);  // Pairs with begin().
}

bool Silence::is_too_long(int socket, std::uint64_t now_ns, std::uint64_t limit_ns) noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) {
    return false;
  }
  return is_too_long({.has_unanswered_bytes = info.tcpi_unacked != 0 &&
                                              info.tcpi_last_data_sent < info.tcpi_last_ack_recv,
                      .has_unanswered_probe = info.tcpi_probes != 0,
                      .sent_ago_ns = info.tcpi_last_data_sent * kNsPerMs,
                      .heard_ago_ns = info.tcpi_last_ack_recv * kNsPerMs},
                     now_ns, limit_ns);
}

bool Silence::is_too_long(const Seen& seen, std::uint64_t now_ns,
                          std::uint64_t limit_ns) noexcept {
  if (!seen.has_unanswered_bytes && !seen.has_unanswered_probe) {
    asked_ns_ = 0;
    return false;
  }
  if (asked_ns_ == 0 || now_ns - asked_ns_ > seen.heard_ago_ns) {
    // A question since the last look, or since the last answer. It may be older than what was sent
    // last; nobody is lost for that.
    asked_ns_ = now_ns - (seen.has_unanswered_bytes ? seen.sent_ago_ns : 0);
  }
  return now_ns - asked_ns_ >= limit_ns;
}

void TcpDriver::look_for_silence() noexcept {
  silence_.take();
  const std::uint64_t now = clock_.now_ns();
  for (const std::atomic<TcpChannel*>& place : channels_) {
    TcpChannel* const channel = place.load(std::memory_order_acquire);
    if (channel == nullptr || !channel->take_minded() ||
        channel->state() != TcpChannel::State::open) {
      continue;
    }
    if (channel->silence.is_too_long(channel->socket(), now, options_.silence_ns)) {
      end(*channel, "nothing was heard of its host for " +
                        std::to_string(options_.silence_ns / 1'000'000'000) +
                        " s (tcp_silence_timeout)");
    } else if (!channel->is_drained()) {
      channel->mind();
    }
  }
}

}  // namespace sterna::net::tcp
