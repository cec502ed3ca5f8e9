// See away_bell.h.
#include "runtime/background/away_bell.h"

#include <ctime>

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "net/driver.h"

namespace sterna::runtime {
namespace {

using net::AbsenceFlag;

constexpr std::uint64_t kNsOfSecond = 1'000'000'000;

timespec time_of(std::uint64_t ns) noexcept {
  return {.tv_sec = static_cast<time_t>(ns / kNsOfSecond),
          .tv_nsec = static_cast<long>(ns % kNsOfSecond)};
}

/// Between processes: the word may lie in shared memory.
long shared_futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
                  const timespec* timeout = nullptr) noexcept {
  return raw_system_call(SYS_futex, reinterpret_cast<long>(&word), operation, value,
                         reinterpret_cast<long>(timeout), 0, 0);
}

}  // namespace

bool AwayBell::open() noexcept {
  if (descriptor_ < 0) {
    return true;
  }
  epoll_ = FileDescriptor{::epoll_create1(EPOLL_CLOEXEC)};
  rung_ = FileDescriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  epoll_event always{.events = EPOLLIN, .data = {.fd = rung_.get()}};
  epoll_event later{.events = EPOLLONESHOT, .data = {.fd = descriptor_}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, rung_.get(), &always) == 0 &&
         ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor_, &later) == 0;
}

void AwayBell::ring() noexcept {
  flag_.store(AbsenceFlag::kRung, std::memory_order_seq_cst);
  if (descriptor_ < 0) {
    (void)shared_futex(flag_, FUTEX_WAKE, 1);
    return;
  }
  const std::uint64_t one = 1;
  raw_system_call(SYS_write, rung_.get(), reinterpret_cast<long>(&one), sizeof one);
}

void AwayBell::watch(std::uint32_t events) noexcept {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.fd = descriptor_}};
  raw_system_call(SYS_epoll_ctl, epoll_.get(), EPOLL_CTL_MOD, descriptor_,
                  reinterpret_cast<long>(&event));
}

void AwayBell::arm() noexcept {
  is_armed_.store(true, std::memory_order_relaxed);
  watch(EPOLLIN);
}

void AwayBell::disarm() noexcept {
  if (is_armed_.exchange(false, std::memory_order_relaxed)) {
    watch(0);
  }
}

bool AwayBell::sleep(std::uint64_t ns) noexcept {
  if (descriptor_ < 0) {
    return sleep_for_flag(ns);
  }
  const timespec limit = time_of(ns);
  pollfd waits{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
  if (::ppoll(&waits, 1, ns == kForever ? nullptr : &limit, nullptr) <= 0) {
    return false;
  }
  epoll_event events[2];
  const int count = ::epoll_wait(epoll_.get(), events, 2, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == descriptor_) {
      is_armed_.store(false, std::memory_order_relaxed);
      continue;
    }
    std::uint64_t rings;
    raw_system_call(SYS_read, rung_.get(), reinterpret_cast<long>(&rings), sizeof rings);
  }
  return count > 0;
}

bool AwayBell::sleep_for_flag(std::uint64_t ns) noexcept {
  const timespec limit = time_of(ns);
  const std::uint32_t flag = flag_.load(std::memory_order_seq_cst);
  if (flag != AbsenceFlag::kRung) {
    (void)shared_futex(flag_, FUTEX_WAIT, flag, ns == kForever ? nullptr : &limit);
  }
  return flag_.load(std::memory_order_seq_cst) == AbsenceFlag::kRung;
}

}  // namespace sterna::runtime
