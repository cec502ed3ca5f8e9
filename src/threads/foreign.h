// Kernel threads that the code of a mobile rank has created (std::thread): what they allocate is
// the rank's, but not while they are in the runtime, whose memory lives longer than the rank is
// here.
#pragma once

#include <atomic>

#include "threads/this_thread.h"

namespace sterna::threads {

/// Whether a rank of this process has ever created one. Relaxed: set before its first one starts.
/// Not inline: libmpi_abi.so would have one of its own.
extern constinit std::atomic<bool> has_foreign_threads;

/// The side of the border on which this kernel thread is.
[[nodiscard]] bool is_foreign_in_runtime() noexcept;
/// It changes sides. Returns whether it was in the runtime.
bool change_foreign_side(bool is_in_runtime) noexcept;

/// Such a thread is in the runtime, or back in the program's code, for the life of this. For others
/// it does nothing: user threads have the thread pointer (runtime/scope.h), and change kernel
/// threads.
class ForeignSide {
 public:
  explicit ForeignSide(bool is_in_runtime) noexcept
      : is_foreign_{has_foreign_threads.load(std::memory_order_relaxed) && self() == nullptr},
        was_in_runtime_{is_foreign_ && change_foreign_side(is_in_runtime)} {}
  ~ForeignSide() {
    if (is_foreign_) [[unlikely]] {
      change_foreign_side(was_in_runtime_);
    }
  }
  ForeignSide(const ForeignSide&) = delete;
  ForeignSide& operator=(const ForeignSide&) = delete;

 private:
  const bool is_foreign_;
  const bool was_in_runtime_;
};

}  // namespace sterna::threads
