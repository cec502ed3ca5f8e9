// How a call of a C program that may block is made: io.h. Internal to the C API.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>

#include <sys/uio.h>

#include "base/function_ref.h"
#include "base/syscall.h"
#include "threads/thread.h"

namespace sterna::runtime::capi {

/// The caller as io.h sees it. Opened first in each of its calls, inside a RuntimeScope.
class IoCaller {
 public:
  /// A cancellation point.
  IoCaller() noexcept;

  /// It may wait in the kernel as it likes: no user thread of this API, and not in the poll.
  [[nodiscard]] bool is_plain() const noexcept { return is_plain_; }
  /// For a value of system_call(): -1 with errno of the calling thread, or the value.
  static long finish(long value) noexcept;
  /// The same of what has opened a descriptor, which is noted for a mobile rank.
  static int finish_open(long value, const char* what, const char* name) noexcept;
  /// Of a mobile rank's 0, 1 and 2: what they stand for.
  [[nodiscard]] static int descriptor(int fd) noexcept;

 private:
  bool is_plain_ = true;
};

/// A text that says why, and -EDEADLK: in the poll (is_in_poll()) nothing waits.
long refuse_io_in_poll() noexcept;

/// On a spare kernel thread while the others go on; -EDEADLK, with a text, for a caller in the
/// poll. `call` is as for system_call().
template <typename Call>
long call_aside(Call call) noexcept;
long run_aside(FunctionRef<long()> call) noexcept;

template <typename Call>
long call_aside(Call call) noexcept {
  return run_aside([&]() -> long { return system_call(call); });
}

/// What is known of a descriptor whose call would block. Negative: an error, for the program.
[[nodiscard]] bool is_nonblocking(int fd) noexcept;
[[nodiscard]] bool is_regular(int fd) noexcept;
/// When SO_RCVTIMEO or SO_SNDTIMEO (`option`) of a socket is over, from now; kNever: it has none.
[[nodiscard]] std::uint64_t socket_deadline(int fd, int option) noexcept;

enum class Wait : std::uint8_t { again, aside, timed_out, failed };
/// Until the descriptor is ready for `events` of poll(). aside: it cannot be waited for, so the
/// call goes to a spare kernel thread. `error` is positive.
Wait wait_for(int fd, std::uint32_t events, std::uint64_t deadline_ns, int& error) noexcept;

/// Of an attempt: it cannot be made without the danger to block.
inline constexpr long kUntried = LONG_MIN;

/// attempt() again and again while it returns -EAGAIN and the descriptor blocks, with waits between
/// them; aside() where there is no waiting, and after a wait instead of an attempt that is
/// kUntried. The value, or the negated error number.
long repeat(int fd, std::uint32_t events, int timeout_option, FunctionRef<long()> attempt,
            FunctionRef<long()> aside) noexcept;

/// What is left of a list of parts when some of its bytes are done. No memory of its own: a thread
/// that is cancelled frees nothing.
class Remaining {
 public:
  Remaining(const iovec* parts, std::size_t count) noexcept : first_{parts}, end_{parts + count} {}
  void skip(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return first_ == end_; }
  /// All of them as long as nothing was skipped, then some: for one call.
  struct Parts {
    const iovec* first;
    int count;
  };
  [[nodiscard]] Parts parts() noexcept;

 private:
  const iovec* first_;
  const iovec* end_;
  std::size_t offset_ = 0;  // In the first one.
  std::array<iovec, 16> window_;
};

}  // namespace sterna::runtime::capi
