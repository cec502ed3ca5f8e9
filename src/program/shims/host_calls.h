// What the code of a rank needs of the node that runs it: the seam between the loader and the
// runtime, implemented by runtime::Runtime (and by a small host in the tests).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "memory/rank_slot.h"

namespace sterna::program {

enum class OutputStream : std::uint8_t { out = 1, err = 2 };  // As the file descriptors.

/// All calls come on the rank's stack with the *worker's* thread pointer loaded, but for
/// write_output, which also comes from kernel threads that the rank has created (std::thread).
class HostCalls {
 public:
  virtual ~HostCalls() = default;

  /// The rank has ended, after its destructors; its output has been written. Does not return.
  [[noreturn]] virtual void rank_exit(memory::RankSlot& slot, int status) noexcept = 0;

  /// The rank ends at once, as by `signal` (abort(), a failed assertion). Does not return.
  [[noreturn]] virtual void rank_abort(memory::RankSlot& slot, int signal) noexcept = 0;

  /// Whole lines, or what is left of one when the rank ends or its line is longer than 64 KiB.
  virtual void write_output(memory::RankSlot& slot, OutputStream stream,
                            std::string_view lines) noexcept = 0;

  /// Reads from the job's standard input into `bytes`. 0: its end, which is what every rank but one
  /// sees. Negative: an error number. May switch.
  virtual long read_input(memory::RankSlot& slot, std::span<char> bytes) noexcept = 0;

  /// sched_yield() of the rank. Switches.
  virtual void yield(memory::RankSlot& slot) noexcept = 0;

  /// sleep() and its family. Switches: other ranks of the worker run meanwhile.
  virtual void sleep_for(memory::RankSlot& slot, std::uint64_t duration_ns) noexcept = 0;
};

}  // namespace sterna::program
