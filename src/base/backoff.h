// How one waits for a section of a few hundred nanoseconds of another kernel thread, which may have
// lost its processor within it, even to us. Under a real-time policy nobody takes that away from
// who spins: threads of the same priority run when he yields, others when he sleeps.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace sterna {

class Backoff {
 public:
  void pause() noexcept {
    if (++turns_ < kSpins) {
      cpu_pause();
    } else {
      leave_processor();
    }
  }

 private:
  static constexpr std::uint32_t kSpins = 1000;  // Ten to forty microseconds.
  static constexpr std::uint32_t kYields = 64;
  static constexpr std::uint64_t kNapNs = 50'000;

  /// System calls only, without errno: also on the thread pointer of a rank.
  void leave_processor() noexcept;

  std::uint32_t turns_ = 0;
};

}  // namespace sterna
