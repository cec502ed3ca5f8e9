// Where a status keeps what its three public fields do not: the count of bytes and "was cancelled".
// The only place that knows: MPI_Get_count and its family read through here.
#pragma once

#include <cstdint>

#include <mpi.h>

namespace sterna::mpi {

// MPI_internal[0], [1]: low and high half of the byte count; [2]: 1 if cancelled. [3], [4]: zero.
[[nodiscard]] inline std::uint64_t bytes_of_status(const MPI_Status& status) noexcept {
  return static_cast<std::uint32_t>(status.MPI_internal[0]) |
         std::uint64_t{static_cast<std::uint32_t>(status.MPI_internal[1])} << 32;
}
inline void set_status_bytes(MPI_Status& status, std::uint64_t bytes) noexcept {
  status.MPI_internal[0] = static_cast<int>(static_cast<std::uint32_t>(bytes));
  status.MPI_internal[1] = static_cast<int>(static_cast<std::uint32_t>(bytes >> 32));
}
[[nodiscard]] inline bool is_status_cancelled(const MPI_Status& status) noexcept {
  return status.MPI_internal[2] != 0;
}
inline void set_status_cancelled(MPI_Status& status, bool is_cancelled) noexcept {
  status.MPI_internal[2] = is_cancelled ? 1 : 0;
}

/// All but MPI_ERROR, which belongs to the functions that complete several requests.
inline void set_status(MPI_Status& status, int source, int tag, std::uint64_t bytes) noexcept {
  status.MPI_SOURCE = source;
  status.MPI_TAG = tag;
  set_status_bytes(status, bytes);
  status.MPI_internal[2] = 0;
  status.MPI_internal[3] = 0;
  status.MPI_internal[4] = 0;
}
/// "Empty status" of the standard.
inline void set_empty(MPI_Status& status) noexcept {
  set_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
}
/// The same for a handle without an operation, where MPI_ERROR is part of it; may be
/// MPI_STATUS_IGNORE.
inline void give_empty(MPI_Status* status) noexcept {
  if (status != MPI_STATUS_IGNORE) {
    set_empty(*status);
    status->MPI_ERROR = MPI_SUCCESS;
  }
}
/// Of an operation with MPI_PROC_NULL.
inline void set_proc_null(MPI_Status& status) noexcept {
  set_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

}  // namespace sterna::mpi
