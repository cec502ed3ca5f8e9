// MPI's part in the job of a process-mode program. MPI has one life in a process, so this is
// global.
#include "mpi/api/process_life.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "mpi/rank_state.h"
#include "runtime/process_job.h"

namespace sterna::mpi {
namespace {

constinit std::atomic<bool> process_finalized{false};

}  // namespace

void open_process_job(const char* function) noexcept {
  auto opened = runtime::join_process_job();
  if (!opened) {
    std::fprintf(stderr, "%s: the job cannot start: %s\n", function, opened.error().text.c_str());
    std::_Exit(1);
  }
}

void close_process_job(RankState& state) noexcept {
  process_finalized.store(true, std::memory_order_relaxed);
  state.context->mpi = nullptr;
  memory::Heap& heap = state.heap();
  state.~RankState();
  heap.deallocate(&state);
  runtime::leave_process_job();
}

bool is_process_finalized() noexcept {
  return process_finalized.load(std::memory_order_relaxed);
}

}  // namespace sterna::mpi
