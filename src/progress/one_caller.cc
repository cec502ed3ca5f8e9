// What the one caller of a process and the second one do when they meet.
#include "progress/one_caller.h"

#include <sys/syscall.h>

#include "base/syscall.h"

namespace sterna::progress {

constinit std::atomic<OneCaller*> process_caller{nullptr};

void OneCaller::end() noexcept {
  when_shared_(argument_);
  owner_.store(kNobody, std::memory_order_release);  // A
}

void OneCaller::share() noexcept {
  if (is_owner()) {
    if (depth_ != 0 || come_in()) {
      end();
      depth_ = 0;
      inside_.unlock();
    }
    return;
  }
  while (!is_shared()) {
    if (!inside_.try_lock_from_outside()) {
      raw_system_call(SYS_sched_yield);  // Somebody else shares it.
      continue;
    }
    if (!is_shared()) {
      end();
    }
    inside_.unlock_from_outside();
  }
}

std::uint32_t OneCaller::step_out() noexcept {
  if (!is_owner() || depth_ == 0) {
    return 0;
  }
  const std::uint32_t depth = depth_;
  depth_ = 0;
  inside_.unlock();
  return depth;
}

void OneCaller::step_in(std::uint32_t depth) noexcept {
  if (is_owner() && come_in()) {
    depth_ = depth;
  }
}

void OneCaller::give_way_slowly() noexcept {
  const Away away{this};
}

}  // namespace sterna::progress
