// The event loop over poll(2), signalfd(2) and wait4(2).
#include "launch/loop.h"

#include <algorithm>
#include <csignal>

#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

namespace sterna::launch {
namespace {

bool is_ignored(int signal) noexcept {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t handled_signals() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  ::sigaddset(&set, SIGTERM);
  // What who started us has ignored (nohup, a script for what it starts in the background) stays
  // so, for the ranks, too. Blocked it would come all the same.
  for (const int signal : {SIGINT, SIGHUP, SIGQUIT}) {
    if (!is_ignored(signal)) {
      ::sigaddset(&set, signal);
    }
  }
  return set;
}

std::uint64_t to_ns(const timeval& time) noexcept {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_usec) * 1000;
}

}  // namespace

Result<Loop> Loop::open() {
  // Ignored by who started us, it would tell no ends; ranks get the default, too.
  static_cast<void>(std::signal(SIGCHLD, SIG_DFL));
  const sigset_t set = handled_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  for (const int failed_write : {SIGPIPE, SIGXFSZ}) {  // The write says it, too.
    static_cast<void>(std::signal(failed_write, SIG_IGN));
  }
  const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) {
    return system_error("launcher: cannot receive signals (signalfd)", last_error_number());
  }
  return Loop{FileDescriptor{fd}};
}

void Loop::restore_signals() noexcept {
  static_cast<void>(std::signal(SIGPIPE, SIG_DFL));
  static_cast<void>(std::signal(SIGXFSZ, SIG_DFL));
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void Loop::watch(int fd, short events, DescriptorHandler& handler) {
  watches_[fd] = {events, &handler};
}

void Loop::unwatch(int fd) {
  watches_.erase(fd);
}

void Loop::watch_child(pid_t pid, ChildHandler& handler) {
  children_[pid] = &handler;
}

void Loop::run_once(std::uint64_t deadline_ns) {
  poll_set_.clear();
  poll_set_.push_back({.fd = signal_fd_.get(), .events = POLLIN, .revents = 0});
  for (const auto& [fd, watch] : watches_) {
    if (watch.events != 0) {
      poll_set_.push_back({.fd = fd, .events = watch.events, .revents = 0});
    }
  }
  const std::uint64_t now = now_ns();
  int wait_ms = 0;
  if (deadline_ns > now) {
    wait_ms =
        static_cast<int>(std::min<std::uint64_t>((deadline_ns - now) / 1'000'000 + 1, 60'000));
  }
  if (::poll(poll_set_.data(), poll_set_.size(), wait_ms) <= 0) {
    return;
  }
  const std::vector<pollfd> ready = poll_set_;
  for (std::size_t i = 1; i < ready.size(); ++i) {
    // Asked again each time: an earlier handler may have unwatched it.
    const auto found = ready[i].revents != 0 ? watches_.find(ready[i].fd) : watches_.end();
    if (found != watches_.end()) {
      found->second.handler->on_ready(ready[i].fd, ready[i].revents);
    }
  }
  // Last: what a child has written before its end is read before its end is told.
  if (ready[0].revents != 0) {
    read_signals();
  }
}

void Loop::read_signals() {
  bool has_child_ended = false;
  for (;;) {
    signalfd_siginfo info;
    const long count = system_call([&] { return ::read(signal_fd_.get(), &info, sizeof info); });
    if (count != static_cast<long>(sizeof info)) {
      break;
    }
    if (info.ssi_signo == SIGCHLD) {
      has_child_ended = true;
    } else if (signals_ != nullptr) {
      signals_->on_signal(static_cast<int>(info.ssi_signo));
    }
  }
  if (has_child_ended) {
    reap();
  }
}

void Loop::reap() {
  for (;;) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid <= 0) {
      return;
    }
    const auto found = children_.find(pid);
    if (found == children_.end()) {
      continue;  // An orphan of a rank, left to us as the subreaper.
    }
    ChildHandler* const handler = found->second;
    children_.erase(found);
    ProcessEnd end;
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.cpu_ns = to_ns(usage.ru_utime) + to_ns(usage.ru_stime);
    handler->on_child_end(pid, end);
  }
}

}  // namespace sterna::launch
