// What MPI lets every thread use at any time, whatever the level of threads: before MPI_Init and
// after MPI_Finalize (MPI 4.1, 11.4.1). Info objects, error codes of the program, and the integers
// of handles.
//
// Each mobile rank has its own, in its system heap, which is locked; a process has one, which lives
// as long as it does, since there is no rank before MPI_Init and none after MPI_Finalize.
#pragma once

#include <mpi.h>

#include "base/spin_lock.h"
#include "mpi/datatype/handle_numbers.h"
#include "mpi/errors/table.h"
#include "mpi/heap_user.h"

namespace sterna::mpi {

struct Info;

struct AnyTime : HeapUser {
  using HeapUser::HeapUser;

  // Guards what follows, taken at every level of threads. Held for a few instructions, never across
  // a switch.
  SpinLock lock;
  ErrorTable errors;
  HandleNumbers numbers;
  Info* info_env = nullptr;  // MPI_INFO_ENV, made at its first use.
};

/// That of the caller; made by the first who asks. Call it inside a RuntimeScope. Ends the program
/// where there is no memory for it: a kilobyte, before anything else.
[[nodiscard]] AnyTime& any_time() noexcept;

/// Where an error happened in a function that may be called at any time; as Call (errors/error.h),
/// which it becomes between MPI_Init and MPI_Finalize. Outside, errors are fatal: there is no
/// communicator whose handler could be asked.
struct AnyCall {
  AnyTime& its;
  const char* function;

  explicit AnyCall(const char* name) noexcept : its{any_time()}, function{name} {}

  [[gnu::cold, gnu::format(printf, 3, 4)]] int fail(int error_class, const char* format,
                                                    ...) const noexcept;
  int pass(int error_code) const noexcept {
    return error_code == MPI_SUCCESS ? MPI_SUCCESS : fail_plain(error_code);
  }
  [[gnu::cold]] int fail_plain(int error_code) const noexcept;
};

}  // namespace sterna::mpi
