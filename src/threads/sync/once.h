// Something that happens once, whoever comes first; the others wait until it has happened: by a
// mutex. Without it is only the look at whether it has (A). tests: once_model_test.cc.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/function_ref.h"
#include "threads/sync/mutex.h"

namespace sterna::threads {

class Once {
 public:
  constexpr Once() noexcept = default;

  /// Switches.
  void call(FunctionRef<void()> function) noexcept {
    if (!done_.load(std::memory_order_acquire)) [[unlikely]] {  // A
      call_slow(function);
    }
  }
  [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }

 private:
  void call_slow(FunctionRef<void()> function) noexcept;

  std::atomic<bool> done_{false};
  Mutex mutex_;
};

}  // namespace sterna::threads
