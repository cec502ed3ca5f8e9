// The traffic of the shm driver: opening ways, telling room, sleeping, closing.
#include "net/drivers/shm/driver.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/processors.h"
#include "net/drivers/shm/doorbell.h"
#include "net/opening/auth.h"

namespace sterna::net::shm {
namespace {

constexpr std::size_t kPopulatedMax =
    64;  // Inboxes of peers: a page table of them takes time, too.

}  // namespace

ShmDriver::ShmDriver(const DriverOptions& given, const Options& options,
                     SegmentMapping mapping) noexcept
    : bootstrap_{*given.bootstrap},
      logger_{given.log != nullptr ? Logger{*given.log, "shm"} : Logger{}},
      is_direct_wanted_{options.is_direct_wanted},
      segment_{std::move(mapping)},
      pool_{*segment_, options.chunk_count, options.chunk_bytes, options.stream_count},
      inbox_{*segment_},
      channels_(bootstrap_.host().nodes.size()) {
  self_.local_index = options.local_index;
  self_.segment = &*segment_;
  self_.pool = &pool_;
  capabilities_ = kProfile;
  capabilities_.packet_bytes_max = options.chunk_bytes;
}

ShmDriver::~ShmDriver() {
  for (std::atomic<ShmChannel*>& channel : channels_) {
    delete channel.load(std::memory_order_relaxed);
  }
}

Result<> ShmDriver::open() noexcept {
  const HostShare& host = bootstrap_.host();
  waiting_ = FileDescriptor{::epoll_create1(EPOLL_CLOEXEC)};
  if (!waiting_.is_open()) {
    return system_error("cannot make an epoll set for shared memory", last_error_number());
  }
  // The flag is the eventfd's, not the descriptor's: each node sets it for all who ring its own.
  // All bells in all nodes would be a system call for each pair.
  const int bell = host.bell_fds[self_.local_index];
  const long flags = system_call([&] { return ::fcntl(bell, F_GETFL); });
  if (flags < 0 || system_call([&] { return ::fcntl(bell, F_SETFL, flags | O_NONBLOCK); }) < 0) {
    return system_error("the bell of this node is not usable", last_error_number());
  }
  epoll_event event{.events = EPOLLIN, .data = {.u32 = kNotANode}};
  if (::epoll_ctl(waiting_.get(), EPOLL_CTL_ADD, bell, &event) != 0) {
    return system_error("cannot wait on the bell of this node", last_error_number());
  }
  // Under Yama only a parent may write into our memory; a peer of the job is not one. Fails where
  // there is no Yama, and then nothing is needed.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  const Nonce nonce = random_nonce();
  std::memcpy(&cookie_, nonce.data(), sizeof cookie_);
  address_ = {.pid = static_cast<std::uint32_t>(::getpid()),
              .version = kAddressVersion,
              .cookie_address = reinterpret_cast<std::uint64_t>(&cookie_),
              .cookie = cookie_};
  // Where nodes outnumber processors they sleep often, and few senders run at a time: there the
  // fence of each packet is cheaper than one for all processors before each sleep.
  has_membarrier_ = host.nodes.size() <= usable_processors() && register_for_membarrier();
  if (!has_membarrier_) {
    segment_->state.fetch_or(kFence, std::memory_order_relaxed);
  }
  segment_->pid.store(address_.pid, std::memory_order_relaxed);
  segment_->cookie_address.store(address_.cookie_address, std::memory_order_relaxed);
  segment_->cookie.store(address_.cookie, std::memory_order_relaxed);
  segment_->chunk_bytes.store(pool_.chunk_bytes(), std::memory_order_relaxed);
  segment_->chunk_count.store(pool_.chunk_count(), std::memory_order_relaxed);
  segment_->ready.store(1, std::memory_order_release);
  return Done{};
}

std::uint32_t ShmDriver::local_of(std::uint32_t node) const noexcept {
  const std::vector<std::uint32_t>& nodes = bootstrap_.host().nodes;
  const auto place = std::ranges::lower_bound(nodes, node);
  return place != nodes.end() && *place == node ? static_cast<std::uint32_t>(place - nodes.begin())
                                                : kNotANode;
}

bool ShmDriver::reaches(std::uint32_t node, Packet peer_address) const noexcept {
  return local_of(node) != kNotANode &&
         (peer_address.empty() || peer_address.size() == sizeof(DirectAddress));
}

Result<ShmChannel*> ShmDriver::channel_to(std::uint32_t local) noexcept {
  std::atomic<ShmChannel*>& place = channels_[local];
  // Acquire: pairs with D, the channel is complete.
  if (ShmChannel* known = place.load(std::memory_order_acquire); known != nullptr) {
    return known;
  }
  const HostShare& host = bootstrap_.host();
  auto mapping = SegmentMapping::map(host.segment_fd, local, host.segment_bytes);
  if (!mapping) {
    return mapping.error();
  }
  if (host.nodes.size() <= kPopulatedMax) {
    mapping.value().populate();
  }
  std::unique_ptr<ShmChannel> made{new (std::nothrow) ShmChannel(
      self_, {.node = host.nodes[local], .local_index = local, .bell_fd = host.bell_fds[local]},
      std::move(mapping.value()))};
  if (made == nullptr) {
    return Errc::out_of_memory;
  }
  if (!has_membarrier_) {
    made->segment().state.fetch_or(kFence, std::memory_order_relaxed);
  }
  ShmChannel* known = nullptr;
  if (!place.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {  // D.
    return known;  // Another thread was faster.
  }
  unwatched_count_.fetch_add(1, std::memory_order_release);
  return made.release();
}

Result<Channel*> ShmDriver::connect(std::uint32_t node, Packet peer_address) noexcept {
  const std::uint32_t local = local_of(node);
  if (local == kNotANode || !reaches(node, peer_address)) {
    return Error{Errc::unreachable, "node " + std::to_string(node) +
                                        " shares no memory with node " +
                                        std::to_string(bootstrap_.job().node_index)};
  }
  auto channel = channel_to(local);
  if (!channel) {
    return channel.error();
  }
  if (!peer_address.empty()) {
    DirectAddress address;
    std::memcpy(&address, peer_address.data(), sizeof address);
    if (address.version != kAddressVersion) {
      return Error{Errc::malformed, "node " + std::to_string(node) +
                                        " runs another version of the shm driver: start all nodes "
                                        "from one installation"};
    }
    open_direct(*channel.value(), address);
  }
  return static_cast<Channel*>(channel.value());
}

void ShmDriver::open_direct(ShmChannel& channel, const DirectAddress& address) noexcept {
  channel.note_direct_tried();
  if (!is_direct_wanted_) {
    channel.refuse_copies();
    return;
  }
  if (auto opened = channel.open_direct(address); !opened) {
    channel.refuse_copies();
    logger_.info("large messages to node {} go through shared memory: {}", channel.peer().node,
                 opened.error().text);
  }
}

void ShmDriver::wake_room_waiters() noexcept {
  segment_->is_room_wanted.store(0, std::memory_order_relaxed);
  // A waiter that sets its bit after our exchange sets is_room_wanted after it, too.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::vector<int>& bells = bootstrap_.host().bell_fds;
  for (std::size_t word = 0; word * 64 < bells.size(); ++word) {
    std::uint64_t bits = segment_->room_waiters[word].exchange(0, std::memory_order_acq_rel);
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t local = word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits));
      if (local < bells.size()) {
        ring(bells[local]);
      }
    }
  }
}

bool ShmDriver::prepare_sleep() noexcept {
  watch_new_peers();
  segment_->rung_ns.store(0, std::memory_order_relaxed);
  segment_->state.fetch_or(kAsleep, std::memory_order_relaxed);
  const auto for_each_channel = [&](auto what) {
    for (std::atomic<ShmChannel*>& place : channels_) {
      if (ShmChannel* channel = place.load(std::memory_order_acquire); channel != nullptr) {
        what(*channel);
      }
    }
  };
  bool has_refused = false;
  for_each_channel([&](ShmChannel& channel) { has_refused = has_refused || channel.is_refused(); });
  if (has_refused) {
    // All of them: the chunks are one pool, and who gives one back need not be who lacks it.
    for_each_channel([](ShmChannel& channel) { channel.want_room(); });
  }
  InboxReceiver::Head head;
  if (has_membarrier_ && doze_.begin(now_ns(), inbox_.place())) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    while (!inbox_.peek(head) && !doze_.is_settled(now_ns())) {
      cpu_pause();
    }
  } else {
    sleeper_fence(has_membarrier_);
  }
  bool may_sleep = !inbox_.peek(head) && ends_.empty();
  for_each_channel([&](ShmChannel& channel) {
    may_sleep = !(channel.is_refused() && channel.take_room()) && may_sleep;
  });
  if (!may_sleep) {
    segment_->state.fetch_and(~kAsleep, std::memory_order_relaxed);
  }
  return may_sleep;
}

bool ShmDriver::hear() noexcept {
  silence(bootstrap_.host().bell_fds[self_.local_index]);
  polls_until_look_ = 1;  // Perhaps it was the end of a process that woke us.
  return true;
}

void ShmDriver::end_sleep() noexcept {
  segment_->state.fetch_and(~kAsleep, std::memory_order_relaxed);
  doze_.end(now_ns());
  (void)hear();
}

void ShmDriver::close() noexcept {
  self_.is_closed.store(true, std::memory_order_relaxed);
  segment_->state.fetch_or(kClosed, std::memory_order_release);
  wake_room_waiters();  // Who waits for room learns that there will be none.
}

void ShmDriver::complain(std::string_view what) noexcept {
  if (!has_complained_) {
    has_complained_ = true;
    logger_.error(
        "shared memory holds {}: a node of this host has gone wrong; ignored, as the "
        "next ones",
        what);
  }
}

}  // namespace sterna::net::shm
