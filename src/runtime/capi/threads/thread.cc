// thread.h: the C names of user threads.
#include <algorithm>
#include <cstring>
#include <optional>

#include <sterna/bubble.h>
#include <sterna/thread.h>

#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/hot_scope.h"
#include "threads/flags.h"
#include "threads/life/life.h"
#include "threads/this_thread.h"
#include "threads/user_calls.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
using sterna::runtime::HotScope;
using sterna::runtime::RuntimeScope;

namespace {

/// Its bubble joins it: a second joiner would meet a thread that is gone.
bool is_of_bubble(const threads::Thread& thread) noexcept {
  return (threads::flags_of(thread) & threads::ThreadFlag::placed) != 0 &&
         capi::is_joined_by_bubble(thread);
}

sterna_status refuse_of_bubble(const threads::Thread& thread) noexcept {
  return capi::refuse(STERNA_INVALID_ARGUMENT,
                      "{} is of a bubble: sterna_bubble_join waits for it; sterna_thread_create "
                      "with options.bubble gives a handle to join by",
                      capi::words_for(&thread));
}

/// What a join or detach of `thread` was refused for.
sterna_status refuse_join(const threads::Thread& thread, threads::JoinOutcome outcome) noexcept {
  if (outcome == threads::JoinOutcome::detached) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{} is detached: nobody joins or detaches it",
                        capi::words_for(&thread));
  }
  return capi::refuse(STERNA_BUSY, "{} is being joined by somebody: a thread is joined once",
                      capi::words_for(&thread));
}

[[gnu::noinline]] sterna_status join_of_others(sterna_thread* thread) noexcept {
  threads::Thread* const me = sterna::runtime::find_hot_caller();
  if (me != nullptr && !capi::is_in_poll()) [[likely]] {
    threads::Thread* const joined = capi::living_thread_of(thread);
    if (joined != nullptr && joined != me &&
        (threads::flags_of(*joined) & threads::ThreadFlag::placed) == 0) [[likely]] {
      const threads::JoinOutcome outcome = threads::join_in_user_code(*me, *joined);
      if (outcome == threads::JoinOutcome::ended) [[likely]] {
        return STERNA_SUCCESS;
      }
      return outcome == threads::JoinOutcome::cancelled ? STERNA_CANCELLED
                                                        : refuse_join(*joined, outcome);
    }
  }
  return sterna_thread_join_for(thread, STERNA_FOREVER);
}

}  // namespace

// The usual join is of a thread that runs next; what it is, is asked again of any other.
sterna_status sterna_thread_join(sterna_thread* thread) noexcept {
  threads::Thread* const me = sterna::runtime::find_hot_caller();
  if (me != nullptr && !capi::is_in_poll()) [[likely]] {
    const auto handle = reinterpret_cast<std::uintptr_t>(thread);
    const auto number = static_cast<std::uint16_t>(handle >> capi::kHandleShift);
    threads::JoinOutcome outcome;
    if (threads::try_join_in_user_code(*me, capi::address_in(handle), number, outcome)) [[likely]] {
      return outcome == threads::JoinOutcome::ended ? STERNA_SUCCESS : STERNA_CANCELLED;
    }
  }
  return join_of_others(thread);
}

sterna_status sterna_thread_join_for(sterna_thread* thread, uint64_t timeout_ns) noexcept {
  const HotScope scope;
  threads::Thread* const joined = capi::thread_of(thread);
  if (joined == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  if (joined == threads::self()) {
    return capi::refuse(STERNA_DEADLOCK, "{} joins itself, and would wait for ever",
                        capi::words_for(joined));
  }
  if (is_of_bubble(*joined)) [[unlikely]] {
    return refuse_of_bubble(*joined);
  }
  std::optional<capi::JoinScope> join;
  if (threads::self() == nullptr && capi::program() != nullptr) {  // A thread is waited for.
    join.emplace(*capi::program());
  }
  const std::uint64_t deadline_ns =
      timeout_ns == STERNA_FOREVER ? sterna::kNever : capi::deadline_of(timeout_ns);
  switch (const threads::JoinOutcome outcome = threads::try_join_until(*joined, deadline_ns)) {
    case threads::JoinOutcome::ended:
      return STERNA_SUCCESS;
    case threads::JoinOutcome::cancelled:
      return STERNA_CANCELLED;
    case threads::JoinOutcome::timed_out:
      return STERNA_TIMED_OUT;
    default:
      return refuse_join(*joined, outcome);
  }
}

sterna_status sterna_thread_detach(sterna_thread* thread) noexcept {
  const HotScope scope;
  threads::Thread* const detached = capi::thread_of(thread);
  if (detached == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (is_of_bubble(*detached)) {
    return refuse_of_bubble(*detached);
  }
  const threads::JoinOutcome outcome = threads::try_detach(*detached);
  return outcome == threads::JoinOutcome::ended ? STERNA_SUCCESS : refuse_join(*detached, outcome);
}

sterna_status sterna_thread_exit(void) noexcept {
  const RuntimeScope scope;
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  threads::Thread* const me = threads::self();
  if (me == nullptr || sterna::memory::rank_slot_of(me) != nullptr) {
    return capi::refuse(STERNA_UNSUPPORTED,
                        "sterna_thread_exit ends a user thread that sterna_thread_create made");
  }
  threads::end_current(*me);
}

sterna_thread* sterna_thread_self(void) noexcept {
  return capi::handle_of(threads::self());
}

namespace {

[[gnu::noinline]] sterna_status yield_of_others() noexcept {
  const RuntimeScope scope;
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll("sterna_thread_yield");
  }
  threads::yield();
  return STERNA_SUCCESS;
}

}  // namespace

sterna_status sterna_thread_yield(void) noexcept {
  // No scope for the usual caller: it enters and leaves around the switch itself.
  threads::Thread* const me = sterna::runtime::find_hot_caller();
  if (me == nullptr || capi::is_in_poll()) [[unlikely]] {
    return yield_of_others();
  }
  threads::yield_in_user_code(*me);
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_sleep(uint64_t duration_ns) noexcept {
  const RuntimeScope scope;
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  threads::sleep_for(duration_ns);
  return STERNA_SUCCESS;
}

sterna_status sterna_thread_name(const sterna_thread* thread, char* buffer, size_t bytes) noexcept {
  const RuntimeScope scope;
  const threads::Thread* const named = capi::thread_of(thread);
  if (named == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (buffer == nullptr || bytes == 0) {
    return capi::refuse_argument(__func__);
  }
  char memory[threads::kNameBytes];
  const std::string_view name = threads::display_name(*named, memory);
  const std::size_t stored = std::min(bytes - 1, name.size());
  std::memcpy(buffer, name.data(), stored);
  buffer[stored] = '\0';
  return stored == name.size() ? STERNA_SUCCESS : STERNA_TRUNCATED;
}

sterna_status sterna_thread_park(uint64_t timeout_ns) noexcept {
  const HotScope scope;
  if (threads::self() == nullptr) {
    return capi::refuse(STERNA_UNSUPPORTED,
                        "a kernel thread has no token: it waits for a semaphore or a condition");
  }
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  if (timeout_ns == STERNA_FOREVER) {
    threads::park();
    return STERNA_SUCCESS;
  }
  return threads::park_until(capi::deadline_of(timeout_ns)) ? STERNA_SUCCESS : STERNA_TIMED_OUT;
}

sterna_status sterna_thread_unpark(sterna_thread* thread) noexcept {
  const HotScope scope;
  threads::Thread* const parked = capi::thread_of(thread);
  if (parked == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  threads::unpark(*parked);
  return STERNA_SUCCESS;
}
