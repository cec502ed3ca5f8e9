// What threads tell the trace (base/trace.h). Threads that are born while a trace is recorded carry
// ThreadFlag::traced, which takes them onto slow paths that are there for others: so a trace that
// is off costs a switch and a wake-up nothing.
#pragma once

#include "base/trace.h"
#include "threads/thread.h"

namespace sterna::threads {

/// Who the records of a thread are about: a rank, if it is the main thread of one, which keeps its
/// name wherever it goes.
[[nodiscard]] std::uint64_t trace_key(const Thread& thread) noexcept;
/// The caller; kNobody on a kernel thread.
[[nodiscard]] std::uint64_t trace_caller() noexcept;
/// Worker of the caller, for records; trace::kNoWorker on a foreign kernel thread.
[[nodiscard]] std::uint16_t trace_worker() noexcept;

/// Sets the flag, and says that it is there.
void trace_born(Thread& thread) noexcept;
void trace_ended(const Thread& thread) noexcept;
/// The worker of `to` leaves `from` for it.
void trace_runs(const Worker& worker, const Thread& from, const Thread& to) noexcept;
void trace_wakes(const Thread& thread) noexcept;
/// queued, taken, stolen: see trace::Kind.
void trace_queue(trace::Kind kind, const Thread& thread, std::uint64_t where) noexcept;

/// Anything else that the caller's worker does.
inline void trace_event(trace::Kind kind, std::uint64_t subject, std::uint64_t value = 0,
                        std::uint32_t extra = 0) noexcept {
  if (trace::is_on()) [[unlikely]] {
    trace::record(kind, trace_worker(), subject, value, extra);
  }
}

}  // namespace sterna::threads
