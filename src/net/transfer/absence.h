// The program of a process that has one caller at a time, between its calls: what is said of it to
// the transport, and asked for it, by who progresses in its place (runtime/background/).
#pragma once

#include <atomic>
#include <cstdint>

#include "net/driver.h"

namespace sterna::net {

struct Endpoint;
class TransportCore;

/// Of a Transport, and as long as that lives.
class Absence {
 public:
  explicit Absence(TransportCore& core) noexcept : core_{core} {}

  /// Driver::absence_flag() of a driver that has one; else null.
  [[nodiscard]] std::atomic<std::uint32_t>* flag() const noexcept;
  /// All peers see it, and ring.
  [[nodiscard]] bool is_seen_by_all() const noexcept;
  /// A message from or to the rank is under way or expected. Who calls has the transport alone, or
  /// takes the answer for a hint.
  [[nodiscard]] bool has_open(const Endpoint& endpoint) const noexcept;
  /// Of what was sent, also by calls that have ended.
  [[nodiscard]] const KeptCount& kept() const noexcept;
  /// The next poll copies parts of large messages, or answers: it may take some microseconds.
  [[nodiscard]] bool has_work() const noexcept;
  /// True: after its calls the program mostly computes. What comes in a call that does not wait for
  /// it is left to others then, if it can be. By who has the transport alone.
  void leave_reads(bool are_left) const noexcept;
  /// The program was away from its calls, from then to then. The same.
  void was_away(std::uint64_t left_ns, std::uint64_t back_ns) const noexcept;
  /// Nothing that the program has started is open any more. The same.
  void has_nothing_open() const noexcept;
  /// It has started something long, and not waited since: was_away() tells something. The same.
  [[nodiscard]] bool tells_by_absence() const noexcept;
  /// A receive is left under way. The same.
  void has_left_receive(std::uint64_t now_ns) const noexcept;
  /// Something long is, and by its habit the program waits for it at once. The same.
  [[nodiscard]] bool is_about_to_wait() const noexcept;
  /// True: polls come from who progresses in the place of the program. The same.
  void poll_in_place(bool is_in_place) const noexcept;
  /// True: polls move no parts of large messages on. The same.
  void leave_copies(bool are_left) const noexcept;
  /// A message of so many bytes, sent now to `rank` by who does not wait for it, would be announced
  /// alone: all of its bytes are left to who polls in the place of the program. The same.
  [[nodiscard]] bool leaves_whole(std::uint32_t rank, std::uint64_t bytes) const noexcept;
  /// Something was left. A hint, from any thread.
  [[nodiscard]] bool has_left() const noexcept;

 private:
  TransportCore& core_;
};

}  // namespace sterna::net
