// The event loop of the launcher and its agents: descriptors, signals, ends of child processes.
//
// One thread, poll(2): some hundreds of descriptors, no wake-up is lost, and regular files
// (standard output sent to a file) are always ready, which epoll refuses.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "base/result.h"
#include "base/syscall.h"

namespace sterna::launch {

class DescriptorHandler {
 public:
  /// `events` are those of poll(2), errors included. The handler may watch and unwatch anything.
  virtual void on_ready(int fd, short events) = 0;

 protected:
  ~DescriptorHandler() = default;
};

/// How a child process ended.
struct ProcessEnd {
  int exit_code = 0;  // Valid if signal is 0.
  int signal = 0;
  std::uint64_t cpu_ns = 0;  // User and system time.
};

class ChildHandler {
 public:
  virtual void on_child_end(pid_t pid, const ProcessEnd& end) = 0;

 protected:
  ~ChildHandler() = default;
};

class SignalHandler {
 public:
  virtual void on_signal(int signal) = 0;

 protected:
  ~SignalHandler() = default;
};

class Loop {
 public:
  /// Blocks SIGCHLD, SIGTERM and those of SIGINT, SIGHUP and SIGQUIT that are not ignored, and
  /// receives them from now on; ignores SIGPIPE and SIGXFSZ.
  [[nodiscard]] static Result<Loop> open();

  /// From now on `handler` hears of `events`; replaces what was said before about `fd`.
  void watch(int fd, short events, DescriptorHandler& handler);
  void unwatch(int fd);
  void watch_child(pid_t pid, ChildHandler& handler);
  /// Tells the ends of children that have ended by now; else run_once does it.
  void reap();
  void on_signals(SignalHandler& handler) { signals_ = &handler; }

  /// Waits for events until `deadline_ns` at most, and handles those there are.
  void run_once(std::uint64_t deadline_ns);

  /// In a forked child: gives it ordinary signals again. Async-signal-safe.
  static void restore_signals() noexcept;

 private:
  struct Watch {
    short events;
    DescriptorHandler* handler;
  };

  explicit Loop(FileDescriptor signal_fd) : signal_fd_{std::move(signal_fd)} {}
  void read_signals();

  FileDescriptor signal_fd_;
  std::unordered_map<int, Watch> watches_;
  std::unordered_map<pid_t, ChildHandler*> children_;
  std::vector<pollfd> poll_set_;  // Kept between calls for its memory.
  SignalHandler* signals_ = nullptr;
};

}  // namespace sterna::launch
