// A request of message.h, in memory of the program: what it describes, and the message under way.
// In a mobile rank it moves with the rank, so it holds iso-addresses only.
#pragma once

#include <cstdint>
#include <new>
#include <string>

#include <sterna/message.h>

#include "base/valgrind.h"
#include "net/message.h"
#include "runtime/capi/messages/message_data.h"
#include "runtime/capi/messages/session.h"
#include "runtime/rank_context.h"
#include "threads/waiter.h"

namespace sterna::runtime::capi {

struct MessageQueue;

/// Callbacks can be called: in a mobile rank always, in a program while it has workers.
[[nodiscard]] bool open_callbacks() noexcept;

/// Guard: the program, which lets one thread at a time use a request; while it is started the
/// transport has `send` or `receive`, whose `done` orders both. With a callback or a queue who
/// completes it is the next user: `ended`.
struct MessageRequest : threads::Listener {
  static constexpr std::uint32_t kMade = 0x5e9d'7e57;  // Tells initialised memory from other.

  explicit MessageRequest(bool sends) noexcept : is_send{sends} {
    if (sends) {
      new (&send) net::SendRequest;
    } else {
      new (&receive) net::RecvRequest;
    }
  }

  std::uint32_t made = kMade;
  const bool is_send;
  bool is_started = false;
  bool is_watched = false;  // By a wait for several that is under way.
  net::SendMode mode = net::SendMode::standard;
  std::uint8_t priority = 0;  // Of a send.
  bool has_mask = false;
  std::uint32_t mask = 0;
  std::uint32_t rank = 0;
  std::int32_t tag = 0;
  const MessageSession* session = nullptr;  // Null: the one without a name.
  MessageData data;
  MessageBytes bytes;
  union {  // By is_send.
    net::SendRequest send;
    net::RecvRequest receive;
  };
  // How its end is told; none of both: to who waits.
  sterna_message_callback callback = nullptr;
  void* argument = nullptr;
  MessageQueue* queue = nullptr;
  sterna_message_request* storage = nullptr;  // The program's memory, where it lies.
  MessageRequest* next = nullptr;             // Among those that have ended.
  RankContext* owner = nullptr;               // Whose message it is, while it is started.

  [[nodiscard]] progress::Completion& done() noexcept { return is_send ? send.done : receive.done; }
  /// Its end comes by a callback or a queue: nobody may wait for it.
  [[nodiscard]] bool is_told() const noexcept { return callback != nullptr || queue != nullptr; }
};

/// The request in memory of the program, whatever that holds. Listeners are aligned to more than
/// what the program knows: the first place that is.
[[nodiscard]] inline void* place_of(sterna_message_request* storage) noexcept {
  static_assert(sizeof(MessageRequest) + alignof(MessageRequest) -
                    alignof(sterna_message_request) <=
                sizeof(sterna_message_request));
  constexpr std::uintptr_t kMask = alignof(MessageRequest) - 1;
  return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(storage) + kMask) & ~kMask);
}

/// Null: no memory, or not initialised.
[[nodiscard]] inline MessageRequest* request_in(sterna_message_request* storage) noexcept {
  auto* const request = static_cast<MessageRequest*>(place_of(storage));
  return storage != nullptr && request->made == MessageRequest::kMade ? request : nullptr;
}

/// Null, but where the memory holds a request that is started, which the transport has: describing
/// it anew would break the lists it is in. Its address makes sure that no other memory, of an old
/// copy say, is taken for one.
[[nodiscard]] inline MessageRequest* started_in(sterna_message_request* storage) noexcept {
  // What follows looks at memory in which nothing may ever have been written.
  make_valgrind_take_as_written(storage, sizeof *storage);
  MessageRequest* const request = request_in(storage);
  return request != nullptr && request->storage == storage && request->is_started ? request
                                                                                  : nullptr;
}

/// "the send to rank 3 with tag 5 in session 'solver'", for error texts.
[[nodiscard]] std::string words_for(const MessageRequest& request);

[[nodiscard]] sterna_status to_status(net::Fault fault) noexcept;

/// Which messages of a session a receive or a probe may name.
[[nodiscard]] bool is_pattern(const RankContext& rank, std::uint32_t source,
                              std::int32_t tag) noexcept;
void store_envelope(const net::Envelope& from, sterna_envelope* to) noexcept;

/// Waits until it is done, at most until `deadline_ns`; whether it is. A mobile rank is moved
/// meanwhile when that is asked of it, and calls its callbacks. Switches.
bool wait_until(RankContext& rank, progress::Completion& done, std::uint64_t deadline_ns) noexcept;

/// Nothing more will come from `source`, which was named and is gone: after this a last look finds
/// what had come.
[[nodiscard]] bool is_named_and_lost(const RankContext& rank, std::uint32_t source) noexcept;
/// NOT_STARTED, in words.
sterna_status refuse_not_started(const char* call) noexcept;
/// CLOSED, in words, of a probe that found nothing then.
sterna_status refuse_lost(const char* call, std::uint32_t source) noexcept;

/// A test has found nothing: others run, and the callbacks of a mobile rank. Switches.
void test_in_vain(RankContext& rank) noexcept;

/// What who completes a request with a callback or a queue calls.
void on_ended(threads::Listener& listener) noexcept;

/// Starts it, for the entry point `call`; `matched`: to receive this message. With a callback or a
/// queue it may have ended, and be gone, when this returns.
sterna_status start(MessageRequest& request, net::Message* matched, const char* call) noexcept;

/// Its message has ended: what was received goes where it belongs, and it can be started again.
sterna_status finish(RankContext& rank, MessageRequest& request,
                     sterna_envelope* envelope) noexcept;

}  // namespace sterna::runtime::capi
