// Finds connections of whose other end nothing is heard any more, though its system was asked.
//
// The system asks by itself: bytes that are not acknowledged are sent again, and a window that is
// shut is probed, each time after twice the pause. Whatever the peer's process does, the system of
// its host answers, as long as there is one. So silence is what follows a question without an
// answer, and not the pause before the next question, which may be longer than the limit. (The
// limit that the system has, TCP_USER_TIMEOUT, ends also a connection whose window is shut for so
// long, however often the other end answers: a peer that computes would be lost.) A connection on
// which nothing is under way is asked by the keepalive of the system, which also judges it.
//
// Who looks is the poller, once a tick, and only while something that was sent is not yet
// acknowledged: a sender that finds its channel unminded makes the timer tick (M), after it has
// sent. A tick unminds a channel before it looks. The lock of the socket orders the two: either the
// tick sees what was sent, or the sender that the channel is unminded.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/syscall.h"

namespace sterna::net::tcp {

/// When channels are to be looked at. It rings one tick after begin(), once.
class SilenceTimer {
 public:
  [[nodiscard]] bool open(std::uint64_t silence_ns) noexcept;
  [[nodiscard]] int fd() const noexcept { return timer_.get(); }

  /// By any thread: after this there will be a tick.
  void begin() noexcept;
  /// By the poller, when it rings.
  void take() noexcept;

 private:
  FileDescriptor timer_;
  std::uint64_t tick_ns_ = 0;
  std::atomic<bool> is_ticking_{false};
};

/// How long one connection has not answered. The poller's.
class Silence {
 public:
  /// Asks the system. True: nothing has been heard for `limit_ns` since a question.
  [[nodiscard]] bool is_too_long(int socket, std::uint64_t now_ns, std::uint64_t limit_ns) noexcept;

  struct Seen {
    bool has_unanswered_bytes;
    bool has_unanswered_probe;
    std::uint64_t sent_ago_ns;   // The last bytes, also those sent again.
    std::uint64_t heard_ago_ns;  // The last acknowledgement.
  };
  [[nodiscard]] bool is_too_long(const Seen& seen, std::uint64_t now_ns,
                                 std::uint64_t limit_ns) noexcept;

 private:
  std::uint64_t asked_ns_ = 0;  // When the question was asked that has no answer; 0: none.
};

}  // namespace sterna::net::tcp
