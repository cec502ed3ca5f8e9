// Operations of the program, and reduction without communication.
#include "mpi/op/op.h"

#include <mpi.h>

#include "mpi/api/entry.h"

namespace {

using namespace sterna::mpi;

int create_op(const char* function, const Op& what, MPI_Op* op) noexcept {
  return enter(function, [&](const Call& call) {
    if (what.function == nullptr && what.large_function == nullptr) {
      return call.fail(MPI_ERR_ARG, "the function is a null pointer");
    }
    Op* made = call.state.create<Op>();
    if (made == nullptr) {
      return call.fail_plain(MPI_ERR_NO_MEM);
    }
    made->is_commutative = what.is_commutative;
    made->is_large = what.is_large;
    made->function = what.function;
    made->large_function = what.large_function;
    *op = reinterpret_cast<MPI_Op>(made);
    return int{MPI_SUCCESS};
  });
}

}  // namespace

int PMPI_Op_create(MPI_User_function* user_fn, int commute, MPI_Op* op) {
  Op what;
  what.is_commutative = commute != 0;
  what.function = user_fn;
  return create_op("MPI_Op_create", what, op);
}
int PMPI_Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op) {
  Op what;
  what.is_commutative = commute != 0;
  what.is_large = true;
  what.large_function = user_fn;
  return create_op("MPI_Op_create_c", what, op);
}

int PMPI_Op_free(MPI_Op* op) {
  return enter("MPI_Op_free", [&](const Call& call) {
    if (is_predefined(*op) || !is_op(*op)) {
      return call.fail(MPI_ERR_OP, "only an operation made by MPI_Op_create can be freed");
    }
    release_op(call.state.heap(), *op);
    *op = MPI_OP_NULL;
    return int{MPI_SUCCESS};
  });
}

int PMPI_Op_commutative(MPI_Op op, int* commute) {
  return enter("MPI_Op_commutative", [&](const Call& call) {
    if (!is_op(op)) {
      return call.fail_plain(MPI_ERR_OP);
    }
    *commute = is_commutative(op) ? 1 : 0;
    return int{MPI_SUCCESS};
  });
}

int PMPI_Reduce_local_c(const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype,
                        MPI_Op op) {
  return enter("MPI_Reduce_local", [&](const Call& call) {
    if (count < 0) {
      return call.fail(MPI_ERR_COUNT, "the count is negative");
    }
    if (const int error = check_reduction(op, datatype); error != MPI_SUCCESS) {
      return call.fail_plain(error);
    }
    if (op == MPI_REPLACE || op == MPI_NO_OP) {
      return call.fail(MPI_ERR_OP, "MPI_REPLACE and MPI_NO_OP are for one-sided communication");
    }
    reduce(op, datatype, inbuf, inoutbuf, count);
    return int{MPI_SUCCESS};
  });
}
