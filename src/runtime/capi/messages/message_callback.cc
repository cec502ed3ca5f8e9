// The list of requests that have ended, and the calls for them.
#include "runtime/capi/messages/message_callback.h"

#include <optional>

#include "base/check.h"
#include "base/thread_pointer.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

/// All that have ended, the first one first.
MessageRequest* take_ended(RankContext& rank) noexcept {
  // Acquires what those who pushed have written (A).
  threads::Listener* last = rank.ended_messages.exchange(nullptr, std::memory_order_acquire);
  MessageRequest* first = nullptr;
  for (auto* request = static_cast<MessageRequest*>(last); request != nullptr;) {
    MessageRequest* const before = request->next;
    request->next = first;
    first = request;
    request = before;
  }
  return first;
}

/// The request is the program's from the call on.
void call(RankContext& rank, MessageRequest& request) noexcept {
  const sterna_message_callback callback = request.callback;
  void* const argument = request.argument;
  sterna_message_request* const storage = request.storage;
  const bool is_send = request.is_send;
  sterna_envelope envelope{0, 0, 0};
  const sterna_status status = finish(rank, request, &envelope);
  // A mobile rank's code wants its own thread pointer. A process may be in the poll, which other
  // threads must not interrupt: it stays in the runtime.
  std::optional<UserScope> scope;
  if (rank.slot != nullptr) {
    scope.emplace();
  }
  callback(argument, storage, status, is_send ? nullptr : &envelope);
}

std::uintptr_t caller_here(const RankContext& rank) noexcept {
  return rank.slot != nullptr ? reinterpret_cast<std::uintptr_t>(rank.slot)
                              : reinterpret_cast<std::uintptr_t>(thread_pointer());
}

bool is_own_thread(const RankContext& rank) noexcept {
  return rank.slot == nullptr || threads::self() == rank.slot->thread;
}

}  // namespace

void call_soon(MessageRequest& request) noexcept {
  RankContext& rank = *request.owner;
  threads::Listener* last = rank.ended_messages.load(std::memory_order_relaxed);
  do {
    request.next = static_cast<MessageRequest*>(last);
    // A: the request, with what was received.
  } while (!rank.ended_messages.compare_exchange_weak(last, &request, std::memory_order_release,
                                                      std::memory_order_relaxed));
  // From here on the request may be gone. A rank is here as long as one of its messages ends.
  if (rank.slot != nullptr) {
    threads::unpark(*rank.slot->thread);
  } else {
    rank.progress->wake_for_source();
  }
}

std::uint32_t call_ended(RankContext& rank) noexcept {
  if (rank.ended_messages.load(std::memory_order_relaxed) == nullptr) [[likely]] {
    return 0;  // Relaxed: who pushes now wakes us again.
  }
  std::uint32_t count = 0;
  const bool is_in_poll = rank.slot == nullptr;  // A mobile rank's own thread may wait otherwise.
  rank.callback_caller.store(caller_here(rank), std::memory_order_relaxed);
  if (is_in_poll) {
    poll_caller.store(caller_here(rank), std::memory_order_relaxed);
  }
  for (MessageRequest* request = take_ended(rank); request != nullptr; ++count) {
    MessageRequest* const next = request->next;
    call(rank, *request);
    request = next;
  }
  rank.callback_caller.store(0, std::memory_order_relaxed);
  if (is_in_poll) {
    poll_caller.store(0, std::memory_order_relaxed);
  }
  return count;
}

void call_ended_of_mobile(RankContext& rank) noexcept {
  if (rank.slot != nullptr && is_own_thread(rank) && !is_in_callback(rank)) {
    (void)call_ended(rank);
  }
}

bool is_in_callback(const RankContext& rank) noexcept {
  // Relaxed: only what the caller itself has stored is what it compares with.
  const std::uintptr_t caller = rank.callback_caller.load(std::memory_order_relaxed);
  return caller != 0 && caller == caller_here(rank) && is_own_thread(rank);
}

void MessageCallbacks::open() noexcept {
  if (!is_open_.load(std::memory_order_relaxed) &&
      !is_open_.exchange(true, std::memory_order_relaxed)) {
    check(progress_.add(*this).has_value(), "a source without a descriptor can be added");
  }
}

MessageCallbacks::~MessageCallbacks() {
  if (is_open_.load(std::memory_order_relaxed)) {
    progress_.remove(*this);
  }
}

std::uint32_t MessageCallbacks::poll() noexcept {
  return call_ended(rank_);
}

bool MessageCallbacks::prepare_sleep() noexcept {
  // Sequentially consistent, as wake_for_source() asks: who pushes now finds the sleeper.
  return rank_.ended_messages.load(std::memory_order_seq_cst) == nullptr;
}

}  // namespace sterna::runtime::capi
