// Reporting errors: the handler of the communicator decides, fatal ones end the job.
#include "mpi/errors/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "mpi/api/process_life.h"
#include "mpi/comm/comm.h"
#include "mpi/errors/table.h"
#include "runtime/runtime.h"
#include "runtime/scope.h"

namespace sterna::mpi {
namespace {

constexpr std::size_t kTextBytes = 512;

const char* name_of(const Comm* comm) noexcept {
  if (comm == nullptr) {
    return "no communicator";
  }
  return comm->name[0] == '\0' ? "an unnamed communicator" : comm->name;
}

[[noreturn]] void end_fatally(RankState& state, const Comm* comm, int code, const char* function,
                              const char* text) noexcept {
  const int error_class = class_of_code(code);
  const char* name = name_of_class(error_class);
  char line[2 * kTextBytes];
  std::snprintf(line, sizeof line, "%s failed on rank %u, %s: %s (%d): %s", function,
                state.context->rank, name_of(comm), name == nullptr ? "error code" : name, code,
                text);
  abort_job(state, error_class > 0 && error_class < 256 ? error_class : 1, line);
}

}  // namespace

void abort_job(RankState& state, int exit_code, const char* text) noexcept {
  if (state.context->slot == nullptr) {
    // What the program has said of its reasons. Not all files: one may be locked by a thread that
    // waits for input.
    std::fflush(stdout);
  }
  state.context->runtime->abort_job(state.context->rank, exit_code, text);
}

void fail_outside_job(const char* function) noexcept {
  char line[kTextBytes];
  const RankState* state = find_state();
  const bool is_over =
      is_process_finalized() ||
      (state != nullptr && state->phase.load(std::memory_order_relaxed) == Phase::finalized);
  std::snprintf(line, sizeof line, "%s was called %s", function,
                is_over ? "after MPI_Finalize" : "before MPI_Init");
  runtime::RankContext* context = runtime::find_current_rank();
  if (context != nullptr && context->runtime != nullptr) {
    context->runtime->abort_job(context->rank, 1, line);
  }
  std::fprintf(stderr, "%s\n", line);
  std::_Exit(1);
}

bool is_handler(MPI_Errhandler handle) noexcept {
  return handle == MPI_ERRORS_ARE_FATAL || handle == MPI_ERRORS_ABORT ||
         handle == MPI_ERRORS_RETURN || is_object(handle, ObjectKind::error_handler);
}

void retain_handler(MPI_Errhandler handle) noexcept {
  if (is_object(handle, ObjectKind::error_handler)) {
    reinterpret_cast<ErrorHandler*>(handle)->retain();
  }
}

void release_handler(HeapUser& heap, MPI_Errhandler handle) noexcept {
  if (!is_object(handle, ObjectKind::error_handler)) {
    return;
  }
  auto* handler = reinterpret_cast<ErrorHandler*>(handle);
  if (handler->release()) {
    handler->kind = ObjectKind::freed;
    heap.destroy(handler);
  }
}

int call_handler(RankState& state, Comm* comm, int code, const char* function,
                 const char* text) noexcept {
  if (comm == nullptr) {
    comm = state.self;
  }
  const MPI_Errhandler handle = comm == nullptr ? state.self_errhandler : comm->errhandler;
  if (handle == MPI_ERRORS_RETURN) {
    return code;
  }
  if (!is_object(handle, ObjectKind::error_handler)) {
    end_fatally(state, comm, code, function, text);
  }
  auto* handler = reinterpret_cast<ErrorHandler*>(handle);
  handler->retain();  // The function may free it.
  MPI_Comm comm_handle = comm == nullptr ? MPI_COMM_SELF : handle_of(state, comm);
  int code_copy = code;
  {
    runtime::UserScope user;
    handler->function(&comm_handle, &code_copy, function, nullptr);
  }
  release_handler(state, handle);
  return code;
}

int Call::fail(int error_class, const char* format, ...) const noexcept {
  char text[kTextBytes];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return call_handler(state, comm, error_class, function, text);
}

int Call::fail_plain(int error_code) const noexcept {
  char text[MPI_MAX_ERROR_STRING];
  return call_handler(state, comm, error_code, function,
                      text_of_code(error_code, text) ? text : "unknown");
}

}  // namespace sterna::mpi
