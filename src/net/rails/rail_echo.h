// Which packets tell how long one rail takes there and back. The headers that go by any rail echo
// the packet that came last by any; where several carry parts of each message and of its answer,
// those of all rails but one would never be that, and such a rail would be taken for as slow as the
// messages are. So a packet with data echoes the last one that came by its own rail, once; and as
// another rail may have told before that it has come, its sender keeps when it left.
#pragma once

#include <cstdint>

namespace sterna::net {

/// Of one rail, at both of its ends.
class RailEcho {
 public:
  struct Packet {
    std::uint32_t sequence = 0;
    std::uint64_t ns = 0;  // When it came, or left; 0: there is none.
    std::uint64_t bytes = 0;
  };

  void came(std::uint32_t sequence, std::uint64_t now_ns) noexcept { came_ = {sequence, now_ns}; }
  /// What came since the last call.
  [[nodiscard]] Packet take_came() noexcept {
    const Packet last = came_;
    came_.ns = 0;
    return last;
  }

  void left(std::uint32_t sequence, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
    left_ = {sequence, now_ns, bytes};
  }
  /// It goes once more, by whichever rail: news of it say nothing of the first time.
  void left_again(std::uint32_t sequence) noexcept {
    left_.ns = left_.sequence == sequence ? 0 : left_.ns;
  }
  /// The packet that is echoed, if it is the last that left; then it is not again.
  [[nodiscard]] Packet take_left(std::uint32_t sequence) noexcept {
    const Packet last = left_.sequence == sequence ? left_ : Packet{};
    left_.ns = last.ns != 0 ? 0 : left_.ns;
    return last;
  }

 private:
  Packet came_;
  Packet left_;
};

}  // namespace sterna::net
