// What sterna_start opened, for the other entry points of the C API.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include <sterna/status.h>
#include <sterna/thread.h>

#include "base/function_ref.h"
#include "base/tunable.h"
#include "memory/iso_space.h"
#include "progress/poll_tasks.h"
#include "progress/readiness.h"
#include "rpc/rpc.h"
#include "runtime/capi/bubbles/place_memory.h"
#include "runtime/capi/leaving.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/lone_status.h"
#include "runtime/node_load.h"
#include "runtime/rank_context.h"
#include "runtime/runtime.h"
#include "runtime/session_numbers.h"
#include "sched/scheduler.h"
#include "threads/sync/alarm.h"
#include "threads/sync/once.h"
#include "threads/team.h"
#include "topology/topology.h"

namespace sterna::runtime::capi {

// Contexts of net::Transport that MPI, which counts from 0, does not reach.
inline constexpr std::uint32_t kMessageContext = 0xffff'fff0;
inline constexpr std::uint32_t kStartContext = 0xffff'fff1;
inline constexpr std::uint32_t kJobBarrierContext = 0xffff'fff6;
inline constexpr std::uint32_t kRpcPartContext = 0xffff'fff4;  // And the next one.

/// Of a process that is no sterna-node. Made and ended by the initial kernel thread.
struct Program {
  RankContext* rank = nullptr;
  std::unique_ptr<topology::Topology> topology;
  std::unique_ptr<memory::IsoSpace> space;
  std::unique_ptr<sched::Scheduler> scheduler;
  std::unique_ptr<threads::Team> team;
  std::vector<const topology::Place*> worker_places;  // The processor of each worker.
  bool has_auto_bubbles = false;  // Threads that kernel threads create make bubbles: filiation.
  bool has_own_locals =
      false;  // Threads do, whatever their options say: threads/carriers/locals.h.
  // Calls that are joining a bubble, and those of kernel threads that are joining a thread.
  std::atomic<std::uint32_t> joins{0};
  std::unique_ptr<threads::Alarms> alarms;
  SpinLock workers_lock;        // One at a time changes which workers are enabled.
  threads::Alarm follow_alarm;  // Of the setting follow_processors.
  std::unique_ptr<NodeLoadSource> load_source;
  SessionNumbers session_numbers;
  threads::Once readiness_once;  // Guard of the making of the next one, which then is constant.
  std::unique_ptr<progress::Readiness> readiness;  // Null: no thread has waited for a descriptor.
  // Both constant from the start to the stop: nobody waits for their making, as that may be asked
  // for inside a poll.
  std::unique_ptr<progress::PollTasks> poll_tasks;
  std::unique_ptr<MessageCallbacks> message_callbacks;
  // Null: nobody has asked for it. Owned; made by whoever asks first, who may be in the poll, and
  // would not wait for another one: if two make it one of them does it in vain.
  std::atomic<PlaceMemory*> place_memory{nullptr};
  std::unique_ptr<rpc::Rpc> rpc;
  std::unique_ptr<Leaving> leaving;
  std::unique_ptr<LoneStatus> lone_status;  // With the setting visible, if there is no launcher.
};

// Owned; written by the initial kernel thread while there are no others of ours. Declared for what
// costs next to nothing, else program().
[[gnu::visibility("hidden")]] extern constinit Program* the_program;
/// Null before sterna_start, after sterna_stop and in mobile ranks.
[[nodiscard]] Program* program() noexcept;

/// A join whose end sterna_stop waits for: in the end it looks at what that frees. One that begins
/// before what it joins has ended is seen, since the stop looks for joins after it has seen that.
class JoinScope {
 public:
  explicit JoinScope(Program& program) noexcept : joins_{program.joins} {
    joins_.fetch_add(1, std::memory_order_seq_cst);
  }
  /// Release: who sees that there is none sees what it has done. The last look at the program.
  ~JoinScope() { joins_.fetch_sub(1, std::memory_order_release); }
  JoinScope(const JoinScope&) = delete;
  JoinScope& operator=(const JoinScope&) = delete;

 private:
  std::atomic<std::uint32_t>& joins_;
};

/// Whether the caller is the code of a mobile rank.
[[nodiscard]] bool is_mobile() noexcept;

/// The text of the policy of a program whose options say `wanted`, which may be null.
[[nodiscard]] std::string_view policy_to_begin_with(const Settings& settings,
                                                    const char* wanted) noexcept;

/// What is said by `settings` of the job, or by those that sterna_start would find.
sterna_status with_settings(FunctionRef<sterna_status(const Settings& settings)> use) noexcept;

/// Why there is no program(): UNSUPPORTED in a mobile rank, else NOT_STARTED.
[[nodiscard]] sterna_status why_no_program() noexcept;

[[nodiscard]] sterna_status to_status(Errc code) noexcept;

/// Threads that a thread with these options creates, now and by the caller, belong to a bubble of
/// their own.
[[nodiscard]] bool makes_bubbles(const Program& program,
                                 const sterna_thread_options& options) noexcept;

/// If the setting wants it: looks now and then which processors the process may use.
void follow_processors(Program& program) noexcept;

/// Adds what the program has registered; before the other nodes can call.
void add_services(rpc::Rpc& rpc);
/// From now on registrations are refused.
void lock_services() noexcept;

/// What `call` returns; OUT_OF_MEMORY when its containers find no memory: it leaves nothing half
/// done then.
template <typename Call>
sterna_status guarded(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return STERNA_OUT_OF_MEMORY;
  }
}

/// From now on sterna ps, top and doctor see its threads, bubbles, and what is wrong with them:
/// through the launcher or, if there is none and the setting `visible` wants it, by themselves.
void become_visible(Program& program);
/// Nobody looks any more, when this returns.
void become_invisible(Program& program) noexcept;

/// now + timeout; kNever for STERNA_FOREVER.
[[nodiscard]] std::uint64_t deadline_of(std::uint64_t timeout_ns) noexcept;

/// Messages in any context: for message.h and the start.
sterna_status send_message(std::uint32_t rank, std::uint32_t context, std::int32_t tag,
                           const void* data, std::size_t bytes) noexcept;
sterna_status receive_message(std::uint32_t rank, std::uint32_t context, std::int32_t tag,
                              void* buffer, std::size_t bytes, net::Envelope& envelope) noexcept;

/// Returns when all ranks have called it with this context and tag, or one is gone (CLOSED, for
/// all).
sterna_status meet_all(const RankContext& rank, std::uint32_t context, std::int32_t tag) noexcept;

}  // namespace sterna::runtime::capi
