// Errors: how an entry point reports one (through the handler of the object it concerns), handlers,
// and the codes that programs add.
#pragma once

#include <mpi.h>

#include "mpi/rank_state.h"

namespace sterna::mpi {

enum class HandlerOwner : std::uint8_t { communicator, file, window, session };

/// What MPI_Comm_create_errhandler makes.
struct ErrorHandler final : Object {
  ErrorHandler() noexcept : Object{ObjectKind::error_handler} {}

  HandlerOwner owner = HandlerOwner::communicator;
  void (*function)(void* handle, int* code, ...) = nullptr;
};

/// Where an error happened: the entry point makes one and passes it down.
struct Call {
  RankState& state;
  const char* function;  // "MPI_Send"
  Comm* comm = nullptr;  // Whose handler is called; null: that of MPI_COMM_SELF.

  /// Reports the error and returns what the entry point returns: the class, when the handler
  /// returns. The text is formatted as by printf and says what was wrong. Prints and ends the job
  /// when the handler is fatal. May switch (the handler is the program's).
  [[gnu::cold, gnu::format(printf, 3, 4)]] int fail(int error_class, const char* format,
                                                    ...) const noexcept;
  /// The same for an error whose text is that of its class; MPI_SUCCESS passes through.
  int pass(int error_code) const noexcept {
    return error_code == MPI_SUCCESS ? MPI_SUCCESS : fail_plain(error_code);
  }
  [[gnu::cold]] int fail_plain(int error_code) const noexcept;
};

/// Calls the handler of the communicator (or, null, of MPI_COMM_SELF) with a code.
int call_handler(RankState& state, Comm* comm, int code, const char* function,
                 const char* text) noexcept;

[[nodiscard]] bool is_handler(MPI_Errhandler handle) noexcept;
void retain_handler(MPI_Errhandler handle) noexcept;
void release_handler(HeapUser& heap, MPI_Errhandler handle) noexcept;

/// The class of a code, predefined or added; -1: not a code.
[[nodiscard]] int class_of_code(int code) noexcept;
/// The text of a code, as long as MPI_MAX_ERROR_STRING at most. False: not a code.
[[nodiscard]] bool text_of_code(int code, char* text) noexcept;
/// "MPI_ERR_COMM", or null.
[[nodiscard]] const char* name_of_class(int error_class) noexcept;

/// Ends the job with a message: rank, communicator, function, class, text.
[[noreturn]] void abort_job(RankState& state, int exit_code, const char* text) noexcept;

}  // namespace sterna::mpi
