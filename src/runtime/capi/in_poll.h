// The kernel thread that runs a function of the program inside the poll, for a scope: such a
// function must not wait (is_in_poll(), is_in_callback()). There is one at a time, as there is one
// poller.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_pointer.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/rank_context.h"

namespace sterna::runtime::capi {

class InPoll {
 public:
  /// `is_in_poll` false: it is a thread that runs the function, and nothing is noted.
  explicit InPoll(RankContext& rank, bool is_in_poll = true) noexcept
      : word_{is_in_poll ? &rank.callback_caller : nullptr} {
    if (word_ != nullptr) {
      const auto caller = reinterpret_cast<std::uintptr_t>(thread_pointer());
      word_->store(caller, std::memory_order_relaxed);
      poll_caller.store(caller, std::memory_order_relaxed);
    }
  }
  ~InPoll() {
    if (word_ != nullptr) {
      word_->store(0, std::memory_order_relaxed);
      poll_caller.store(0, std::memory_order_relaxed);
    }
  }
  InPoll(const InPoll&) = delete;
  InPoll& operator=(const InPoll&) = delete;

 private:
  std::atomic<std::uintptr_t>* const word_;
};

}  // namespace sterna::runtime::capi
