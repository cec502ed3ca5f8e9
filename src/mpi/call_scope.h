// The scope of an entry point of MPI. All its waits are progress', so whoever calls may be the only
// caller of the process until another thread calls (progress/one_caller.h).
#pragma once

#include "runtime/scope.h"

namespace sterna::mpi {

class CallScope : public runtime::RuntimeScope {
 public:
  explicit CallScope(runtime::Callers callers = runtime::Callers::one) noexcept
      : RuntimeScope{callers} {}
};

}  // namespace sterna::mpi
