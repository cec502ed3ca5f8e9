// The job of a process-mode program, which MPI_Init and sterna_start share.
//
// Whoever is first opens it, the last to leave closes it. A process has one: it cannot be opened
// again.
#pragma once

#include "base/result.h"
#include "runtime/runtime.h"

namespace sterna::runtime {

/// Opens or joins; the runtime is there until the same number of leave_process_job(). Fails with
/// `refused` after the job was closed. By the initial kernel thread.
[[nodiscard]] Result<Runtime*> join_process_job();

/// By the initial kernel thread, after a join that succeeded.
void leave_process_job() noexcept;

}  // namespace sterna::runtime
