// Process mode: the job of the process, which MPI_Init opens and MPI_Finalize closes.
#pragma once

namespace sterna::mpi {

struct RankState;

/// Connects to the launcher and opens the network; ends the process with a message when it cannot.
void open_process_job(const char* function) noexcept;
void close_process_job(RankState& state) noexcept;  // Frees the state.
/// MPI_Finalize has been called in this process mode.
[[nodiscard]] bool is_process_finalized() noexcept;

}  // namespace sterna::mpi
