// Sets of workers of threads in bubbles. Internal to the C API.
#pragma once

#include <cstdint>
#include <span>

#include <sterna/thread.h>

#include "threads/queues/worker_set.h"

namespace sterna::runtime::capi {

/// sterna_thread_set_workers for a thread of a bubble. The set was checked: it has an enabled
/// worker, and none that there is not; no words: all.
sterna_status set_workers_held(sterna_thread* thread,
                               std::span<const std::uint64_t> words) noexcept;
/// Of such a thread: where it may run. Of any other one `words` stays as it is.
void put_workers_held(sterna_thread* thread, threads::WorkerSet::Words& words) noexcept;

}  // namespace sterna::runtime::capi
