// A rank may move while it is inside of a call: nothing but the function's index is kept, and the
// end is recorded where the rank is then.
#include "mpi/api/traced_call.h"

#include <atomic>

#include "mpi/api/implemented.h"
#include "runtime/rank_context.h"
#include "threads/observation/traced.h"

namespace sterna::mpi {
namespace {

constexpr std::uint32_t kFunctionCountMax = 1024;
// Whether this process has told the function's name. Relaxed: told twice is no harm.
constinit std::atomic<std::uint8_t> is_named[kFunctionCountMax];

[[gnu::noinline]] void record(trace::Kind kind, std::uint32_t function) noexcept {
  const runtime::RankContext* const rank = runtime::find_current_rank();
  const std::uint64_t subject =
      rank != nullptr ? trace::key_of(trace::KeyClass::rank, rank->rank) : threads::trace_caller();
  const std::uint64_t key = trace::key_of(trace::KeyClass::function, function);
  if (function < kFunctionCountMax &&
      is_named[function].exchange(1, std::memory_order_relaxed) == 0) {
    trace::name(key, functions()[function].name);
  }
  threads::trace_event(kind, subject, key);
}

}  // namespace

TracedCall::TracedCall(std::uint32_t function) noexcept : function_{function} {
  record(trace::Kind::calls, function_);
}

TracedCall::~TracedCall() {
  record(trace::Kind::returns, function_);
}

}  // namespace sterna::mpi
