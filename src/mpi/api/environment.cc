// Start and end of MPI, and what a program asks about where it runs.
#include <cstdio>
#include <cstring>

#include <mpi.h>

#include "base/clock.h"
#include "base/thread_pointer.h"
#include "base/trace.h"
#include "mpi/api/process_life.h"
#include "mpi/call_scope.h"
#include "mpi/coll/enter.h"
#include "mpi/coll/schedule.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/create.h"
#include "mpi/p2p/buffered.h"
#include "mpi/p2p/direct.h"
#include "mpi/p2p/short.h"
#include "mpi/request/request.h"
#include "net/transport.h"
#include "runtime/background/background.h"
#include "runtime/runtime.h"
#include "runtime/settings.h"
#include "threads/this_thread.h"

namespace sterna::mpi {
namespace {

// Which thread calls, also across moves: a rank's threads are found by their descriptors.
std::uintptr_t caller_identity() noexcept {
  threads::Thread* self = threads::self();
  return self != nullptr ? reinterpret_cast<std::uintptr_t>(self) : thread_pointer();
}

/// The process has come to a second thread that calls: nobody else is inside.
void share_state(void* argument) noexcept {
  static_cast<RankState*>(argument)->is_multiple = true;
}

/// `opens_job`: nobody has called before. Else threads may be in calls of sterna.h by now.
void begin_process(RankState& state, bool opens_job) noexcept {
  runtime::Runtime& runtime = *state.context->runtime;
  if (state.thread_level != MPI_THREAD_MULTIPLE) {
    runtime.serve_one_caller();
  } else if (opens_job && runtime.serve_one_caller_until_shared(share_state, &state)) {
    state.is_multiple = false;
    short_way_caller = progress::process_caller.load(std::memory_order_relaxed);
  }
  short_way_state.store(&state, std::memory_order_relaxed);
  runtime.progress_in_background(state.is_multiple);
  if (runtime::Background* const background = runtime.background()) {
    background->serve_also({.advance =
                                [](void* argument) noexcept {
                                  advance_active(*static_cast<RankState*>(argument),
                                                 Runner::background);
                                },
                            .argument = &state});
  }
}

int start(int required, int* provided, const char* function) noexcept {
  RankState* old = find_state();
  const Phase phase =
      old == nullptr ? Phase::before_init : old->phase.load(std::memory_order_relaxed);
  if (is_process_finalized() || phase == Phase::finalized) {
    fail_outside_job(function);
  }
  if (phase != Phase::before_init) {
    return Call{*old, function}.fail(MPI_ERR_OTHER, "MPI has been initialized before");
  }
  runtime::RankContext* rank = runtime::find_current_rank();
  const bool opens_job = rank == nullptr;
  if (rank == nullptr || rank->slot == nullptr) {
    open_process_job(function);
  }
  runtime::RankContext& context = runtime::current_rank();
  const int level = required < MPI_THREAD_SINGLE     ? MPI_THREAD_SINGLE
                    : required > MPI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE
                                                     : required;
  const int error = open_state(context, level);
  if (error != MPI_SUCCESS) {
    context.runtime->abort_job(context.rank, 1, "MPI_Init: no memory for the state of the rank");
  }
  RankState& state = *find_state();
  if (context.slot == nullptr) {
    begin_process(state, opens_job);
  }
  // A job is recorded from its begin on, or never.
  if (context.slot != nullptr && level != MPI_THREAD_MULTIPLE && !trace::is_on() &&
      context.runtime->settings().text(runtime::kDirectMessages) == "on") {
    set_direct(*context.slot, &state);
  }
  state.main_thread = caller_identity();
  context.has_initialized_mpi = true;
  context.runtime->control().report_initialized(context.rank);
  if (provided != nullptr) {
    *provided = level;
  }
  return MPI_SUCCESS;
}

void finish(RankState& state) noexcept {
  if (short_way_state.load(std::memory_order_relaxed) == &state) {
    short_way_state.store(nullptr, std::memory_order_relaxed);
  }
  if (state.context->slot != nullptr) {
    set_direct(*state.context->slot, nullptr);
  }
  state.phase.store(Phase::finalizing, std::memory_order_relaxed);
  (void)delete_all_attributes(state, MPI_COMM_SELF, state.self->attributes);
  drain_orphans(state);
  if (state.buffers != nullptr) {
    flush_buffer(state, *state.buffers);
  }
  Call call{state, "MPI_Finalize", state.world};
  (void)run_collective(call, {call.function}, [](Builder& b) { build_barrier(b); });
  if (runtime::RankContext& context = *state.context; context.slot != nullptr) {
    context.has_finalized_mpi = true;
    context.runtime->control().report_finalized(context.rank);  // A process: close_process_job().
  }
  if (runtime::Background* const background = state.context->runtime->background()) {
    background->serve_also({});
  }
  close_state(state);
}

}  // namespace

extern "C" {

int PMPI_Init(int*, char***) {
  const CallScope scope;
  return start(MPI_THREAD_SINGLE, nullptr, "MPI_Init");
}

int PMPI_Init_thread(int*, char***, int required, int* provided) {
  const CallScope scope;
  return start(required, provided, "MPI_Init_thread");
}

int PMPI_Finalize(void) {
  const CallScope scope;
  RankState& state = state_of_caller("MPI_Finalize");
  const bool is_process = state.context->slot == nullptr;
  finish(state);
  if (is_process) {
    close_process_job(state);
  }
  return MPI_SUCCESS;
}

int PMPI_Initialized(int* flag) {
  const RankState* state = find_state();
  *flag =
      (state != nullptr && state->phase.load(std::memory_order_relaxed) != Phase::before_init) ||
              is_process_finalized()
          ? 1
          : 0;
  return MPI_SUCCESS;
}

int PMPI_Finalized(int* flag) {
  const RankState* state = find_state();
  *flag = (state != nullptr && state->phase.load(std::memory_order_relaxed) == Phase::finalized) ||
                  is_process_finalized()
              ? 1
              : 0;
  return MPI_SUCCESS;
}

int PMPI_Query_thread(int* provided) {
  *provided = state_of_caller("MPI_Query_thread").thread_level;
  return MPI_SUCCESS;
}

int PMPI_Is_thread_main(int* flag) {
  const CallScope scope{runtime::Callers::any};
  *flag = state_of_caller("MPI_Is_thread_main").main_thread == caller_identity() ? 1 : 0;
  return MPI_SUCCESS;
}

int PMPI_Abort(MPI_Comm, int errorcode) {
  const CallScope scope;
  RankState& state = state_of_caller("MPI_Abort");
  abort_job(state, errorcode, "");  // Who, what and with which code is said there.
}

double PMPI_Wtime(void) {
  return static_cast<double>(now_ns()) * 1e-9;
}

double PMPI_Wtick(void) {
  return 1e-9;
}

int PMPI_Get_processor_name(char* name, int* resultlen) {
  const CallScope scope;
  const RankState& state = state_of_caller("MPI_Get_processor_name");
  const net::JobMap& job = state.context->transport->job();
  char text[MPI_MAX_PROCESSOR_NAME] = "localhost";
  if (job.node_index < job.host_of_node.size() && !job.host_of_node[job.node_index].empty()) {
    std::snprintf(text, sizeof text, "%s", job.host_of_node[job.node_index].c_str());
  }
  *resultlen = static_cast<int>(std::strlen(text));
  std::memcpy(name, text, static_cast<std::size_t>(*resultlen) + 1);
  return MPI_SUCCESS;
}

int PMPI_Get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
  return MPI_SUCCESS;
}

int PMPI_Get_library_version(char* version, int* resultlen) {
  constexpr char kText[] = "Sterna 0.1.0 (MPI 5.0, standard ABI): ranks are threads that can move";
  std::memcpy(version, kText, sizeof kText);
  *resultlen = static_cast<int>(sizeof kText) - 1;
  return MPI_SUCCESS;
}

int PMPI_Pcontrol(const int, ...) {
  return MPI_SUCCESS;
}

int PMPI_Alloc_mem(MPI_Aint size, MPI_Info, void* baseptr) {
  const CallScope scope;
  RankState& state = state_of_caller("MPI_Alloc_mem");
  if (size < 0) {
    return Call{state, "MPI_Alloc_mem"}.fail(MPI_ERR_ARG, "the size is %lld",
                                             static_cast<long long>(size));
  }
  void* block = state.heap().allocate(static_cast<std::size_t>(size) + (size == 0 ? 1 : 0), 64);
  if (block == nullptr) {
    return Call{state, "MPI_Alloc_mem"}.fail(MPI_ERR_NO_MEM, "no room for %lld bytes",
                                             static_cast<long long>(size));
  }
  std::memcpy(baseptr, &block, sizeof block);
  return MPI_SUCCESS;
}

int PMPI_Free_mem(void* base) {
  const CallScope scope;
  state_of_caller("MPI_Free_mem").deallocate(base);
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace sterna::mpi
