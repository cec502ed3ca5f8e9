// Records about threads. Called with the biased lock of a worker held, or with none.
#include "threads/observation/traced.h"

#include "memory/rank_slot.h"
#include "threads/scheduler.h"

namespace sterna::threads {

using trace::Kind;

std::uint64_t trace_key(const Thread& thread) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(&thread);
  if (memory::is_rank_address(address)) {
    return trace::key_of(trace::KeyClass::rank, memory::slot_at(address).number);
  }
  return trace::key_of(trace::KeyClass::thread, thread.id);
}

std::uint64_t trace_caller() noexcept {
  const Thread* const me = self();
  return me != nullptr ? trace_key(*me) : trace::kNobody;
}

std::uint16_t trace_worker() noexcept {
  const Worker* const worker = current_worker();
  return worker != nullptr ? static_cast<std::uint16_t>(worker->index) : trace::kNoWorker;
}

void trace_born(Thread& thread) noexcept {
  thread.flags |= ThreadFlag::traced;
  const std::uint64_t key = trace_key(thread);
  if (thread.name[0] != '\0') {
    trace::name(key, thread.name);
  }
  trace::record(Kind::born, trace_worker(), key, trace_caller());
}

void trace_ended(const Thread& thread) noexcept {
  trace_event(Kind::ended, trace_key(thread));
}

void trace_runs(const Worker& worker, const Thread& from, const Thread& to) noexcept {
  if (!trace::is_on()) {
    return;
  }
  const auto key = [&](const Thread& thread) {
    return &thread == worker.idle ? trace::kNobody : trace_key(thread);
  };
  trace::record(Kind::runs, static_cast<std::uint16_t>(worker.index), key(to), key(from));
}

void trace_wakes(const Thread& thread) noexcept {
  trace_event(Kind::wakes, trace_key(thread), trace_caller());
}

void trace_queue(Kind kind, const Thread& thread, std::uint64_t where) noexcept {
  trace_event(kind, trace_key(thread), where);
}

}  // namespace sterna::threads
