// A slower network: packets take a while, and so many bytes a second. Each way is a wire of its own
// at the sender: a packet begins when the one before it has left, and arrives a latency later. When
// more than two of the largest packets wait for the wire, it is full, as a slow network is.
#include <deque>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/annotate.h"
#include "base/kernel_lock.h"
#include "base/syscall.h"
#include "net/drivers/builtin.h"
#include "net/drivers/decorators/decorator.h"

namespace sterna::net {
namespace decorators {
namespace {

constexpr std::size_t kWaitingMax = 1024;  // Packets of one channel on their way.

struct DelayOptions {
  std::uint64_t latency_ns;
  std::uint64_t ps_per_byte;  // 0: no bound.
  std::uint64_t backlog_ns;   // Of the wire, at most.
};

class DelayDriver;

class DelayChannel final : public DecoratorChannel {
 public:
  DelayChannel(Decorator& driver, std::uint32_t node, const DelayOptions& options, Clock& clock,
               KeptCount* kept) noexcept
      : DecoratorChannel{driver, node}, options_{options}, clock_{clock}, kept_{kept} {}

  struct Advance {
    std::uint64_t next_ns;     // When there is something to do; kNever: the network inside will
                               // say, or nothing waits.
    bool has_moved = false;    // Something was handed on.
  };
  /// Hands on what is due.
  Advance advance() noexcept {
    const KernelGuard guard{lock_};
    const std::uint64_t now = clock_.now_ns();
    std::uint64_t next = kNever;
    bool has_moved = false;
    while (!waiting_.empty()) {
      Waiting& first = waiting_.front();
      if (first.due_ns > now) {
        next = first.due_ns;
        break;
      }
      const Piece piece{first.bytes};
      const SendState state = inner().try_send({&piece, 1});
      if (state == SendState::full) {
        break;
      }
      if (state == SendState::closed) {
        is_inner_closed_ = true;
        drop_waiting();
        break;
      }
      waiting_.pop_front();
      note_kept(-1);
      has_moved = true;
    }
    if (is_refused_) {
      const std::uint64_t room_ns = free_ns_ - std::min(free_ns_, options_.backlog_ns);
      next = std::min(next, waiting_.size() < kWaitingMax ? room_ns : next);
    }
    return {.next_ns = next, .has_moved = has_moved};
  }
  /// Whether a refused sender may try again; says it once.
  [[nodiscard]] bool take_room() noexcept {
    const KernelGuard guard{lock_};
    const bool is_told = is_refused_ && has_room(clock_.now_ns());
    is_refused_ = is_refused_ && !is_told;
    return is_told;
  }
  [[nodiscard]] bool is_empty() noexcept {
    const KernelGuard guard{lock_};
    return waiting_.empty();
  }
  /// The peer is lost, or the way to it begins anew.
  void forget(bool is_lost) noexcept {
    const KernelGuard guard{lock_};
    drop_waiting();
    is_inner_closed_ = is_lost;
  }

 private:
  struct Waiting {
    std::uint64_t due_ns;
    std::vector<std::byte> bytes;
  };

  SendState send(std::span<const Piece> pieces) noexcept override;
  void drop_waiting() noexcept STERNA_REQUIRES(lock_) {
    note_kept(-static_cast<int>(waiting_.size()));
    waiting_.clear();
  }
  void note_kept(int more) noexcept {
    if (kept_ != nullptr) {
      more > 0 ? kept_->add() : kept_->remove(static_cast<std::uint32_t>(-more));
    }
  }

  [[nodiscard]] bool has_room(std::uint64_t now) const noexcept STERNA_REQUIRES(lock_) {
    return is_inner_closed_ ||
           (waiting_.size() < kWaitingMax && free_ns_ <= now + options_.backlog_ns);
  }

  const DelayOptions options_;
  Clock& clock_;
  KeptCount* const kept_;  // Has as many as wait.
  KernelLock lock_;  // The sender and the poller.
  std::deque<Waiting> waiting_ STERNA_GUARDED_BY(lock_);
  std::uint64_t free_ns_ STERNA_GUARDED_BY(lock_) = 0;  // When the wire is free again.
  bool is_refused_ STERNA_GUARDED_BY(lock_) = false;
  bool is_inner_closed_ STERNA_GUARDED_BY(lock_) = false;
};

class DelayDriver final : public Decorator {
 public:
  DelayDriver(std::unique_ptr<Driver> inner, const DecoratorOptions& options,
              const DelayOptions& delay) noexcept
      : Decorator{std::move(inner), options},
        delay_{delay},
        clock_{options.driver.clock != nullptr ? *options.driver.clock : machine_clock_},
        kept_{options.driver.kept},
        is_lost_(options.driver.bootstrap->job().node_count) {
    delay_.backlog_ns =
        2 * std::uint64_t{capabilities_.packet_bytes_max} * delay.ps_per_byte / 1000;
  }

  Result<> open() noexcept {
    if (inner_->fd() < 0) {
      return Done{};  // It is polled without sleep.
    }
    waiting_ = FileDescriptor{::epoll_create1(EPOLL_CLOEXEC)};
    timer_ = FileDescriptor{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
    for (const int fd : {inner_->fd(), timer_.get()}) {
      epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
      if (!waiting_.is_open() || fd < 0 ||
          ::epoll_ctl(waiting_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
        return system_error("cannot wait for packets that are delayed", last_error_number());
      }
    }
    return Done{};
  }

  /// Something is due at `due_ns`: a sleeping poller wakes then. Any thread.
  void arm(std::uint64_t due_ns) noexcept {
    const KernelGuard guard{timer_lock_};
    if (is_asleep_ && due_ns < armed_ns_) {
      set_timer(due_ns);
    }
  }

  Result<Channel*> revive(std::uint32_t node) noexcept override {
    Result<Channel*> revived = Decorator::revive(node);
    auto* const channel = static_cast<DelayChannel*>(channel_to(node));
    if (revived && channel != nullptr && is_lost_[node].exchange(false)) {
      channel->forget(false);
    }
    return revived;
  }
  int fd() const noexcept override { return waiting_.get(); }

  /// To hand a packet on takes microseconds, in which others have become due on other wires: those
  /// come first, and what the network inside has in the next poll.
  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override {
    const bool had_moved = std::exchange(has_moved_, false);
    if (!had_moved && !is_closed()) {
      static_cast<void>(flush());
      if (has_moved_) {
        return 0;
      }
    }
    return Decorator::poll(sink, packets_max);
  }

  // A sender that puts a packet on the wire either does so before `is_asleep_` is set, then the
  // look at all channels that follows sees it (through the channel's lock), or calls arm() after.
  bool prepare_sleep() noexcept override {
    if (!waiting_.is_open()) {
      return false;
    }
    {
      const KernelGuard guard{timer_lock_};
      is_asleep_ = true;
      armed_ns_ = kNever;
    }
    std::uint64_t next = kNever;
    bool may_sleep = true;
    for_each_channel([&](DecoratorChannel& channel) {
      auto& delayed = static_cast<DelayChannel&>(channel);
      next = std::min(next, delayed.advance().next_ns);
      may_sleep = !delayed.take_room() && may_sleep;
    });
    arm(next);
    if (may_sleep && Decorator::prepare_sleep()) {
      return true;
    }
    wake();
    return false;
  }
  void end_sleep() noexcept override {
    wake();
    Decorator::end_sleep();
  }

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    auto channel = std::make_unique<DelayChannel>(*this, node, delay_, clock_, kept_);
    channel->forget(is_lost_[node].load(std::memory_order_relaxed));
    return channel;
  }
  bool flush() noexcept override {
    bool is_empty = true;
    for_each_channel([&](DecoratorChannel& channel) {
      auto& delayed = static_cast<DelayChannel&>(channel);
      has_moved_ = delayed.advance().has_moved || has_moved_;
      is_empty = delayed.is_empty() && is_empty;
    });
    return is_empty;
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    is_lost_[node].store(true, std::memory_order_relaxed);
    if (DecoratorChannel* channel = channel_to(node); channel != nullptr) {
      static_cast<DelayChannel*>(channel)->forget(true);
    }
    Decorator::on_peer_lost(node, reason);
  }

  void wake() noexcept {
    const KernelGuard guard{timer_lock_};
    is_asleep_ = false;
    set_timer(kNever);
  }
  void set_timer(std::uint64_t due_ns) noexcept STERNA_REQUIRES(timer_lock_) {
    armed_ns_ = due_ns;
    itimerspec setting{};  // All zero: never.
    if (due_ns != kNever) {
      const std::uint64_t at = std::max<std::uint64_t>(due_ns, 1);
      setting.it_value = {.tv_sec = static_cast<time_t>(at / 1'000'000'000),
                          .tv_nsec = static_cast<long>(at % 1'000'000'000)};
    }
    check(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &setting, nullptr) == 0,
          "a timer can be set");
  }

  DelayOptions delay_;
  MonotonicClock machine_clock_;
  Clock& clock_;
  KeptCount* const kept_;
  std::vector<std::atomic<bool>> is_lost_;  // By node; by the poller.
  bool has_moved_ = false;  // Since poll() began. Guard: the poller.
  FileDescriptor waiting_;                  // epoll: the driver inside, and the timer.
  FileDescriptor timer_;
  KernelLock timer_lock_;
  bool is_asleep_ STERNA_GUARDED_BY(timer_lock_) = false;
  std::uint64_t armed_ns_ STERNA_GUARDED_BY(timer_lock_) = kNever;
};

SendState DelayChannel::send(std::span<const Piece> pieces) noexcept {
  std::uint64_t due_ns;
  {
    const KernelGuard guard{lock_};
    const std::uint64_t now = clock_.now_ns();
    if (is_inner_closed_) {
      return SendState::closed;
    }
    if (!has_room(now)) {
      is_refused_ = true;
      return SendState::full;
    }
    std::vector<std::byte> bytes;
    bytes.reserve(bytes_of(pieces));
    for (const Piece& piece : pieces) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    free_ns_ = std::max(free_ns_, now) + bytes.size() * options_.ps_per_byte / 1000;
    due_ns = free_ns_ + options_.latency_ns;
    waiting_.push_back({due_ns, std::move(bytes)});
    note_kept(1);
  }
  static_cast<DelayDriver&>(driver_).arm(due_ns);
  return SendState::accepted;
}

constexpr Tunable kLatency{.name = "delay_latency",
                           .kind = TunableKind::time,
                           .fallback = "50us",
                           .maximum = 60'000'000'000,
                           .help = "how long a packet of a delayed network is on its way"};
constexpr Tunable kBandwidth{.name = "delay_bandwidth",
                             .kind = TunableKind::bytes,
                             .fallback = "0",
                             .maximum = std::int64_t{1} << 40,
                             .help = "bytes a second of a delayed network, one way; 0: no bound"};
constexpr std::array kTunables{kLatency, kBandwidth};

DelayOptions read_delay(const DecoratorOptions& options) noexcept {
  const std::uint64_t bandwidth = number_of(options, kBandwidth);
  return {
      .latency_ns = number_of(options, kLatency),
      .ps_per_byte = bandwidth == 0 ? 0 : std::max<std::uint64_t>(1'000'000'000'000 / bandwidth, 1),
      .backlog_ns = 0};
}

void change(Capabilities& capabilities, const DecoratorOptions& options) noexcept {
  const DelayOptions delay = read_delay(options);
  // Direct copies would go around the wire.
  capabilities.direct_latency_ns = capabilities.direct_mb_per_s = 0;
  capabilities.latency_ns +=
      static_cast<std::uint32_t>(std::min<std::uint64_t>(delay.latency_ns, 1'000'000'000));
  if (delay.ps_per_byte != 0) {
    capabilities.bandwidth_mb_per_s = std::min(
        capabilities.bandwidth_mb_per_s,
        static_cast<std::uint32_t>(std::max<std::uint64_t>(1'000'000 / delay.ps_per_byte, 1)));
  }
}

Result<std::unique_ptr<Driver>> wrap(std::unique_ptr<Driver> inner,
                                     const DecoratorOptions& options) noexcept {
  const DelayOptions delay = read_delay(options);
  std::unique_ptr<DelayDriver> driver{new (std::nothrow)
                                          DelayDriver(std::move(inner), options, delay)};
  if (driver == nullptr) {
    return Errc::out_of_memory;
  }
  if (Result<> opened = driver->open(); !opened) {
    return opened.error();
  }
  return std::unique_ptr<Driver>{std::move(driver)};
}

}  // namespace
}  // namespace decorators

constinit const DecoratorEntry kDelayDecorator{
    .name = "delay",
    .summary = "a slower network: latency and bandwidth as set",
    .tunables = decorators::kTunables,
    .wrap = decorators::wrap,
    .change = decorators::change};

}  // namespace sterna::net
