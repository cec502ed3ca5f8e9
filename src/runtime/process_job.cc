// How many interfaces of the program use the job of the process.
#include "runtime/process_job.h"

#include "base/check.h"

namespace sterna::runtime {
namespace {

// The one job of the process, owned. All three are the initial kernel thread's.
constinit Runtime* process_runtime = nullptr;
constinit int user_count = 0;
constinit bool has_ended = false;

}  // namespace

Result<Runtime*> join_process_job() {
  if (has_ended) {
    return Error{Errc::refused,
                 "the job of this process has ended, and a process has only one: open it once, and "
                 "close it when the program needs it no more"};
  }
  if (process_runtime == nullptr) {
    Result<std::unique_ptr<Runtime>> opened = Runtime::open_process();
    if (!opened) {
      return opened.error();
    }
    process_runtime = opened.value().release();
    process_runtime->control().report_initialized(process_runtime->job().node_index);
  }
  ++user_count;
  return process_runtime;
}

void leave_process_job() noexcept {
  check(user_count > 0, "who leaves the job of the process has joined it");
  if (--user_count != 0) {
    return;
  }
  has_ended = true;
  process_runtime->control().report_finalized(process_runtime->job().node_index);
  delete process_runtime;
  process_runtime = nullptr;
}

}  // namespace sterna::runtime
