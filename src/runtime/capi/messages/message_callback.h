// Calls of the program at the end of messages. Who completes a message may hold the lock of a rank,
// and may be another rank's thread: it puts the request on a list of its rank. In a process the
// poll of the network makes the calls, in a mobile rank its own thread, which is woken for it.
#pragma once

#include <atomic>
#include <cstdint>

#include "progress/progress.h"
#include "progress/source.h"
#include "runtime/rank_context.h"

namespace sterna::runtime::capi {

struct MessageRequest;

/// The request has ended; `request.owner` will call its callback. Any thread, under any lock.
void call_soon(MessageRequest& request) noexcept;

/// Calls all that have ended, in that order; how many. By the poller, or the thread of the rank.
std::uint32_t call_ended(RankContext& rank) noexcept;

/// The thread of a mobile rank does so where it waits; others do nothing.
void call_ended_of_mobile(RankContext& rank) noexcept;

/// Whether the caller is inside a callback, where it must not wait.
[[nodiscard]] bool is_in_callback(const RankContext& rank) noexcept;

/// The source of a process.
class MessageCallbacks final : public progress::Source {
 public:
  explicit MessageCallbacks(RankContext& rank) noexcept : rank_{rank}, progress_{*rank.progress} {}
  ~MessageCallbacks();
  MessageCallbacks(const MessageCallbacks&) = delete;
  MessageCallbacks& operator=(const MessageCallbacks&) = delete;

  /// Polled by the rank's Progress from now on, until it is destroyed. From anywhere.
  void open() noexcept;

  std::uint32_t poll() noexcept override;
  bool prepare_sleep() noexcept override;

 private:
  RankContext& rank_;
  progress::Progress& progress_;
  std::atomic<bool> is_open_{false};  // Set by the first who opens, and then makes it a source.
};

}  // namespace sterna::runtime::capi
