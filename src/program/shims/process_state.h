// What libc makes for the process when it is first asked, by no function that a shim could be for.
#pragma once

namespace sterna::program {

/// Once a process, before any rank runs, on the thread pointer of a kernel thread: the time zone,
/// and the tables of the locale that is set.
void prepare_process_state() noexcept;

}  // namespace sterna::program
