// The one Runtime of a process-mode program. MPI has one life in a process, so this is global.
#include "mpi/api/process_life.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "runtime/runtime.h"

namespace sterna::mpi {
namespace {

// Owned; written by MPI_Init and MPI_Finalize, which the program orders.
constinit runtime::Runtime* process_runtime = nullptr;
constinit std::atomic<bool> process_finalized{false};

}  // namespace

void open_process_job(const char* function) noexcept {
  auto opened = runtime::Runtime::open_process();
  if (!opened) {
    std::fprintf(stderr, "%s: the job cannot start: %s\n", function, opened.error().text.c_str());
    std::_Exit(1);
  }
  process_runtime = opened.value().release();
}

void close_process_job() noexcept {
  process_finalized.store(true, std::memory_order_relaxed);
  delete process_runtime;
  process_runtime = nullptr;
}

bool is_process_finalized() noexcept {
  return process_finalized.load(std::memory_order_relaxed);
}

}  // namespace sterna::mpi
