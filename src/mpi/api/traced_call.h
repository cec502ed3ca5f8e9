// Calls of MPI in the trace: made by generate.py into the MPI_ names, so that only what the program
// itself calls is recorded.
#pragma once

#include <cstdint>

#include "base/trace.h"

namespace sterna::mpi {

/// From its birth to its end the caller is inside of a function, by its index in functions(). On
/// the program's thread pointer.
class TracedCall {
 public:
  explicit TracedCall(std::uint32_t function) noexcept;
  ~TracedCall();
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

 private:
  const std::uint32_t function_;
};

}  // namespace sterna::mpi
