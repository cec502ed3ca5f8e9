// What MPI lets every thread use at any time.
#include "mpi/any_time.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "mpi/api/process_life.h"
#include "mpi/errors/error.h"
#include "runtime/runtime.h"

namespace sterna::mpi {
namespace {

constexpr std::size_t kTextBytes = 512;

AnyTime& of_process() noexcept {
  static AnyTime its{*memory::Heap::process()};  // Nothing to destroy.
  return its;
}

/// The rank's threads may come here at once: one is the first. Release: who reads the address
/// (acquire) sees what was made there.
AnyTime* of_rank(runtime::RankContext& rank) noexcept {
  if (void* const known = rank.mpi_any_time.load(std::memory_order_acquire)) {
    return static_cast<AnyTime*>(known);
  }
  HeapUser heap{*rank.heap};
  auto* const made = heap.create<AnyTime>(*rank.heap);
  void* first = nullptr;
  if (made == nullptr ||
      rank.mpi_any_time.compare_exchange_strong(first, made, std::memory_order_acq_rel)) {
    return made;
  }
  heap.destroy(made);
  return static_cast<AnyTime*>(first);
}

/// As fail_outside_job(): no handler is there to ask.
[[noreturn, gnu::cold]] void end_program(const char* line) noexcept {
  const runtime::RankContext* const rank = runtime::find_current_rank();
  if (rank != nullptr && rank->runtime != nullptr) {
    rank->runtime->abort_job(rank->rank, 1, line);
  }
  std::fprintf(stderr, "%s\n", line);
  std::_Exit(1);
}

int report(const char* function, int code, const char* text) noexcept {
  RankState* const state = find_state();
  const Phase phase =
      state == nullptr ? Phase::before_init : state->phase.load(std::memory_order_relaxed);
  if (phase == Phase::running || phase == Phase::finalizing) {
    return call_handler(*state, nullptr, code, function, text);
  }
  const bool is_over = is_process_finalized() || phase == Phase::finalized;
  const char* const name = name_of_class(class_of_code(code));
  char line[2 * kTextBytes];
  std::snprintf(line, sizeof line, "%s failed %s MPI_%s: %s (%d): %s", function,
                is_over ? "after" : "before", is_over ? "Finalize" : "Init",
                name == nullptr ? "error code" : name, code, text);
  end_program(line);
}

}  // namespace

AnyTime& any_time() noexcept {
  runtime::RankContext* const rank = runtime::find_current_rank();
  if (rank == nullptr || rank->slot == nullptr) {
    return of_process();
  }
  AnyTime* const its = of_rank(*rank);
  if (its == nullptr) {
    end_program("MPI: no memory for what a rank keeps before MPI_Init");
  }
  return *its;
}

int AnyCall::fail(int error_class, const char* format, ...) const noexcept {
  char text[kTextBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return report(function, error_class, text);
}

int AnyCall::fail_plain(int error_code) const noexcept {
  char text[MPI_MAX_ERROR_STRING];
  return report(function, error_code, text_of_code(error_code, text) ? text : "unknown");
}

}  // namespace sterna::mpi
