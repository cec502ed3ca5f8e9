// The traffic of the tcp driver: reading, pushing what waits, sleeping, ends.
#include "net/drivers/tcp/driver.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "base/check.h"
#include "net/drivers/tcp/marks.h"

namespace sterna::net::tcp {
namespace {

constexpr std::uint32_t kLookEvery = 16;       // Polls between two looks at the epoll set.
constexpr std::size_t kActiveMax = 4;          // Silent channels that are still read every poll.
constexpr std::uint32_t kEmptyReadsMax = 512;  // Then a silent channel leaves the active ones.

/// Whether nothing has come that was not received: who has read something last has not seen the end
/// of it, and here that mostly is it. The end of the stream is something.
bool is_empty(const TcpChannel& channel) noexcept {
  std::byte first;
  return channel.reader.holds_no_packet() &&
         raw_system_call(SYS_recvfrom, channel.socket(), reinterpret_cast<long>(&first), 1,
                         MSG_PEEK | MSG_DONTWAIT, 0, 0) == -EAGAIN;
}

}  // namespace

TcpDriver::TcpDriver(const DriverOptions& given, const Options& options, Listener listener) noexcept
    : bootstrap_{*given.bootstrap},
      clock_{given.clock != nullptr ? *given.clock : machine_clock_},
      logger_{given.log != nullptr ? Logger{*given.log, "tcp"} : Logger{}},
      kept_{given.kept},
      options_{options},
      self_{bootstrap_.job().node_index},
      node_count_{bootstrap_.job().node_count},
      network_token_{listener.told.network_token},
      address_{encode(listener.told)},
      known_(node_count_),
      channels_(node_count_),
      listener_{std::move(listener.socket)},
      dials_(node_count_) {
  capabilities_ = options.is_unix ? kUnixProfile : kProfile;
  capabilities_.packet_bytes_max = options.packet_bytes;
}

TcpDriver::~TcpDriver() {
  for (std::atomic<TcpChannel*>& channel : channels_) {
    delete channel.load(std::memory_order_relaxed);
  }
}

Result<> TcpDriver::open() noexcept {
  waiting_ = FileDescriptor{::epoll_create1(EPOLL_CLOEXEC)};
  wake_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  timer_ = FileDescriptor{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  if (!waiting_.is_open() || !wake_.is_open() || !timer_.is_open() ||
      !silence_.open(options_.silence_ns) ||
      !watch(silence_.fd(), EPOLLIN, mark_of(Mark::silence), EPOLL_CTL_ADD) ||
      !watch(wake_.get(), EPOLLIN, mark_of(Mark::wake), EPOLL_CTL_ADD) ||
      !watch(timer_.get(), EPOLLIN, mark_of(Mark::timer), EPOLL_CTL_ADD) ||
      !watch(listener_.get(), EPOLLIN, mark_of(Mark::listener), EPOLL_CTL_ADD)) {
    return system_error("cannot wait for tcp connections", last_error_number());
  }
  return Done{};
}

bool TcpDriver::watch(int fd, std::uint32_t events, std::uint64_t mark, int operation) noexcept {
  epoll_event event{.events = events, .data = {.u64 = mark}};
  return ::epoll_ctl(waiting_.get(), operation, fd, &event) == 0;
}

bool TcpDriver::reaches(std::uint32_t node, Packet peer_address) const noexcept {
  if (node == self_ || node >= node_count_) {
    return false;
  }
  auto peer = decode(peer_address);
  return peer && !usable_addresses(peer.value(), network_token_).empty();
}

std::uint32_t TcpDriver::packet_bytes_to(std::uint32_t node) const noexcept {
  const std::vector<std::string>& hosts = bootstrap_.job().host_of_node;
  return hosts[node] == hosts[self_] ? options_.host_packet_bytes : options_.packet_bytes;
}

TcpChannel* TcpDriver::channel_to(std::uint32_t node) noexcept {
  std::atomic<TcpChannel*>& place = channels_[node];
  // Acquire: pairs with D, the channel is complete.
  if (TcpChannel* known = place.load(std::memory_order_acquire); known != nullptr) {
    return known;
  }
  std::unique_ptr<TcpChannel> made{new (std::nothrow) TcpChannel(
      node, packet_bytes_to(node), options_.is_unix ? nullptr : &silence_, kept_)};
  TcpChannel* known = nullptr;
  if (made == nullptr ||
      !place.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {  // D.
    return known;  // Another thread was faster, or there is no memory.
  }
  return made.release();
}

void TcpDriver::ask(Request request) noexcept {
  {
    const SpinGuard guard{lock_};
    requests_.push_back(std::move(request));
  }
  request_count_.fetch_add(1, std::memory_order_release);
  const std::uint64_t one = 1;
  raw_system_call(SYS_write, wake_.get(), reinterpret_cast<long>(&one), sizeof one);
}

Result<Channel*> TcpDriver::connect(std::uint32_t node, Packet peer_address) noexcept {
  check(node < node_count_ && node != self_, "a channel goes to another node of the job");
  auto peer = decode(peer_address);
  if (!peer) {
    return peer.error();
  }
  Request request{.node = node, .addresses = usable_addresses(peer.value(), network_token_)};
  if (request.addresses.empty()) {
    return Error{Errc::unreachable,
                 "node " + std::to_string(node) + " listens on addresses of its own host only"};
  }
  {
    const SpinGuard guard{lock_};
    known_[node] = request.addresses;
  }
  TcpChannel* channel = channel_to(node);
  if (channel == nullptr) {
    return Errc::out_of_memory;
  }
  if (channel->state() == TcpChannel::State::idle) {
    ask(std::move(request));
  }
  return static_cast<Channel*>(channel);
}

std::uint32_t TcpDriver::poll(PacketSink& sink, std::uint32_t packets_max) noexcept {
  if (active_.empty() || --polls_until_look_ == 0 ||
      request_count_.load(std::memory_order_relaxed) != 0) {
    look();
  }
  std::uint32_t count = 0;
  bool is_silent = false;
  for (std::size_t i = 0; i < active_.size() && count < packets_max && !sink.is_enough(); ++i) {
    count += read(*active_[i], sink, packets_max - count);
    is_silent = is_silent || active_[i]->empty_reads > 0;
  }
  if (is_silent) {
    retire_silent();
  }
  if (!ending_.empty()) [[unlikely]] {
    report_ends(sink);
  }
  return count;
}

std::uint32_t TcpDriver::read(TcpChannel& channel, PacketSink& sink,
                              std::uint32_t packets_max) noexcept {
  std::uint32_t count = 0;
  bool may_receive = true;
  while (channel.state() == TcpChannel::State::open) {
    Packet packet;
    switch (channel.reader.next(packet)) {
      case FrameReader::Next::packet:
        sink.on_packet(channel.node(), packet);
        if (++count == packets_max || sink.is_enough()) {
          channel.is_readable = true;  // The rest is here already.
          return count;
        }
        continue;
      case FrameReader::Next::placed:
        end_placed(channel, sink);
        ++count;
        continue;
      case FrameReader::Next::end:
        channel.has_ended_well = true;
        end(channel, "it has closed");
        return count;
      case FrameReader::Next::malformed:
        end(channel, "it sent bytes that are no packets");
        return count;
      case FrameReader::Next::more:
        break;
    }
    if (!may_receive || count != 0) {
      break;  // Who waits for what a poll before this one has left waits no longer.
    }
    may_receive = false;  // Once a poll: other channels wait, too.
    receive(channel, sink);
    if (!channel.is_readable) {
      break;
    }
  }
  return count;
}

void TcpDriver::activate(TcpChannel& channel) noexcept {
  channel.is_readable = true;
  channel.empty_reads = 0;
  if (!channel.is_active) {
    channel.is_active = true;
    active_.push_back(&channel);
  }
}

void TcpDriver::retire_silent() noexcept {
  std::size_t silent_max = kActiveMax;
  std::erase_if(active_, [&](TcpChannel* channel) {
    if (channel->is_readable || (channel->empty_reads < kEmptyReadsMax && silent_max > 0 &&
                                 channel->state() == TcpChannel::State::open)) {
      silent_max -= channel->is_readable ? 0 : 1;
      return false;
    }
    channel->is_active = false;
    return true;
  });
}

void TcpDriver::look() noexcept {
  polls_until_look_ = kLookEvery;
  has_new_channel_ = false;
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(waiting_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const std::uint64_t mark = event.data.u64;
    switch (kind_of(mark)) {
      case Mark::channel:
        if (TcpChannel* channel = known_channel(index_of(mark));
            channel != nullptr && (event.events & ~std::uint32_t{EPOLLOUT}) != 0) {
          activate(*channel);
        }
        break;
      case Mark::joining:
        advance(index_of(mark));
        break;
      case Mark::listener:
        accept_all();
        break;
      case Mark::timer:
        on_timer();
        break;
      case Mark::silence:
        look_for_silence();
        break;
      case Mark::wake: {
        std::uint64_t rings;
        raw_system_call(SYS_read, wake_.get(), reinterpret_cast<long>(&rings), sizeof rings);
        break;
      }
    }
  }
  if (request_count_.load(std::memory_order_acquire) != 0) {
    take_requests();
  }
  push_waiting();
}

void TcpDriver::push_waiting() noexcept {
  const bool is_closed = is_closed_.load(std::memory_order_relaxed);
  for (std::atomic<TcpChannel*>& place : channels_) {
    TcpChannel* channel = place.load(std::memory_order_acquire);
    if (channel == nullptr) {
      continue;
    }
    // A broken connection is found by reading, after what did arrive.
    if (channel->flush() == TcpChannel::Flush::broken) {
      activate(*channel);
    }
    if (is_closed && !channel->queue_end()) {
      polls_until_look_ = 1;
    }
  }
}

bool TcpDriver::prepare_sleep() noexcept {
  bool may_sleep =
      ending_.empty() && !has_new_channel_ && request_count_.load(std::memory_order_acquire) == 0;
  for (TcpChannel* channel : active_) {
    may_sleep = may_sleep && !channel->is_readable;
  }
  // After an answer "would wait" the socket rings when it takes more: that is asked for here.
  for (std::atomic<TcpChannel*>& place : channels_) {
    TcpChannel* channel = place.load(std::memory_order_acquire);
    if (channel != nullptr) {
      may_sleep = !channel->is_in_use() && may_sleep;
      const TcpChannel::Flush flushed = channel->flush();
      may_sleep =
          may_sleep && flushed != TcpChannel::Flush::busy && flushed != TcpChannel::Flush::broken;
      may_sleep = !channel->take_room() && may_sleep;
    }
  }
  if (!may_sleep) {
    polls_until_look_ = 1;
  }
  return may_sleep;
}

/// As prepare_sleep(), but for one thread that has us alone: nobody else is sending.
bool TcpDriver::hear() noexcept {
  polls_until_look_ = 1;
  bool tells_all =
      ending_.empty() && !has_new_channel_ && request_count_.load(std::memory_order_acquire) == 0;
  for (TcpChannel* const channel : active_) {
    channel->is_readable = channel->is_readable && !is_empty(*channel);
    tells_all = tells_all && !channel->is_readable;
  }
  for (const std::atomic<TcpChannel*>& place : channels_) {
    TcpChannel* const channel = place.load(std::memory_order_acquire);
    if (channel != nullptr && channel->has_unsent()) {
      const TcpChannel::Flush flushed = channel->flush();
      tells_all = tells_all && flushed != TcpChannel::Flush::busy &&
                  flushed != TcpChannel::Flush::broken;
      tells_all = !channel->take_room() && tells_all;
    }
  }
  return tells_all;
}

void TcpDriver::end(TcpChannel& channel, std::string_view reason) noexcept {
  if (channel.state() < TcpChannel::State::ending) {
    channel.is_readable = false;
    channel.end(reason);
    ending_.push_back(&channel);
  }
}

void TcpDriver::abandon(std::uint32_t node, std::string_view reason) noexcept {
  TcpChannel* channel = known_channel(node);
  if (channel != nullptr && channel->state() == TcpChannel::State::open) {
    end(*channel, reason);
  }
}

void TcpDriver::report_ends(PacketSink& sink) noexcept {
  for (std::size_t i = 0; i < ending_.size();) {
    TcpChannel* channel = ending_[i];
    if (!channel->finish()) {
      ++i;  // A sender is using the socket this moment.
      continue;
    }
    ending_.erase(ending_.begin() + static_cast<std::ptrdiff_t>(i));
    std::erase(active_, channel);
    channel->is_active = false;
    channel->is_readable = false;
    if (!channel->has_ended_well && !is_closed_.load(std::memory_order_relaxed)) {
      sink.on_peer_lost(channel->node(), channel->reason());
    }
  }
}

void TcpDriver::close() noexcept {
  is_closed_.store(true, std::memory_order_relaxed);
  listener_ = FileDescriptor{};
  for (std::atomic<TcpChannel*>& place : channels_) {
    if (TcpChannel* channel = place.load(std::memory_order_acquire); channel != nullptr) {
      channel->close();
    }
  }
  push_waiting();
}

bool TcpDriver::is_drained() const noexcept {
  return std::ranges::all_of(channels_, [](const std::atomic<TcpChannel*>& place) {
    TcpChannel* channel = place.load(std::memory_order_acquire);
    return channel == nullptr || channel->is_drained();
  });
}

}  // namespace sterna::net::tcp
