// Who sleeps for messages of the driver fabric, and what wakes it.
#include <algorithm>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "net/drivers/fabric/driver.h"

namespace sterna::net::fabric {
namespace {

bool is_readable(int fd) noexcept {
  pollfd asked{.fd = fd, .events = POLLIN, .revents = 0};
  return system_call([&] { return ::poll(&asked, 1, 0); }) > 0;
}

}  // namespace

Result<> FabricDriver::open_bell() {
  waiting_ = FileDescriptor{::epoll_create1(EPOLL_CLOEXEC)};
  wake_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  for (const int fd : {control_->fd(), wake_.get(), endpoint_->fd()}) {
    if (fd < 0 && fd == endpoint_->fd()) {
      continue;  // A provider without one.
    }
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (!waiting_.is_open() || fd < 0 ||
        ::epoll_ctl(waiting_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return system_error("cannot wait for messages", last_error_number());
    }
  }
  return Done{};
}

void FabricDriver::ring() noexcept {
  if (wake_.is_open()) {
    const std::uint64_t one = 1;
    raw_system_call(SYS_write, wake_.get(), reinterpret_cast<long>(&one), sizeof one);
  }
}

void FabricDriver::clear_bell() noexcept {
  std::uint64_t rings;
  raw_system_call(SYS_read, wake_.get(), reinterpret_cast<long>(&rings), sizeof rings);
}

/// Something to do that polls in a row do. Where nothing wakes us that is who comes and who goes;
/// what the provider has no room for is tried again after each nap.
bool FabricDriver::is_pressed() const noexcept {
  if (does_provider_wake()) {
    return needs_care_.load(std::memory_order_relaxed) || !endpoint_->may_wait();
  }
  return std::ranges::any_of(channels_, [](const auto& channel) {
    return channel != nullptr && (channel->wants_hello || !channel->broken.empty() ||
                                  channel->state == FabricChannel::State::ending);
  });
}

bool FabricDriver::prepare_sleep() noexcept {
  if (!waiting_.is_open() || is_shut_) {
    return false;
  }
  {
    const KernelGuard guard{lock_};
    clear_bell();  // Whatever rang was before what is looked at now.
    bool may_sleep = !is_pressed();
    for (const auto& channel : channels_) {
      if (channel != nullptr && channel->refused_weight != 0 &&
          (channel->under_way() + channel->refused_weight <= options_.window ||
           channel->state >= FabricChannel::State::ending)) {
        channel->refused_weight = 0;
        may_sleep = false;
      }
    }
    // A sender from now on rings; one before was seen by may_wait(), under the same lock, or has
    // made the nap a short one.
    is_asleep_ = may_sleep;
    if (!may_sleep) {
      return false;
    }
    if (!does_provider_wake()) {
      naps_.begin(now_ns());
    }
  }
  // It was looked at some polls ago.
  if (!is_readable(control_->fd()) && control_->prepare_sleep()) {
    return true;
  }
  polls_until_control_ = 1;
  const KernelGuard guard{lock_};
  is_asleep_ = false;
  return false;
}

std::uint64_t FabricDriver::next_deadline_ns() noexcept {
  const KernelGuard guard{lock_};
  return naps_.end_ns();
}

void FabricDriver::end_sleep() noexcept {
  {
    const KernelGuard guard{lock_};
    is_asleep_ = false;
    naps_.end(now_ns());
  }
  clear_bell();
  control_->end_sleep();
  polls_until_control_ = 1;
}

}  // namespace sterna::net::fabric
