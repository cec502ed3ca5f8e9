// Which operation is legal on which type, and running it.
#include "mpi/op/op.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "mpi/op/kernels.h"
#include "runtime/scope.h"

namespace sterna::mpi {
namespace {

bool is_predefined_op(MPI_Op op) noexcept {
  return op == MPI_REPLACE || op == MPI_NO_OP || find_kernel(op, Basic::int32) != nullptr ||
         find_kernel(op, Basic::pair_int_int) != nullptr;
}

/// The program's function: its own code, so on its own thread pointer.
void run_user(const Op& op, MPI_Datatype type, const void* in, void* inout,
              MPI_Count count) noexcept {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(in));
  auto* const into = static_cast<std::byte*>(inout);
  if (op.is_large) {
    const runtime::UserScope scope;
    op.large_function(from, into, &count, &type);
    return;
  }
  // The old form counts with an int: more elements than that are several calls.
  const std::int64_t extent = find_datatype(type)->extent;
  for (MPI_Count done = 0; done < count;) {
    int part = static_cast<int>(std::min<MPI_Count>(count - done, INT_MAX));
    const runtime::UserScope scope;
    op.function(from + done * extent, into + done * extent, &part, &type);
    done += std::min<MPI_Count>(count - done, INT_MAX);  // The program may have changed `part`.
  }
}

}  // namespace

bool is_op(MPI_Op handle) noexcept {
  return is_predefined(handle) ? is_predefined_op(handle) : is_object(handle, ObjectKind::op);
}

bool is_commutative(MPI_Op handle) noexcept {
  return is_predefined(handle) ? handle != MPI_REPLACE && handle != MPI_NO_OP
                               : reinterpret_cast<const Op*>(handle)->is_commutative;
}

int check_reduction(MPI_Op op, MPI_Datatype type) noexcept {
  const Datatype* datatype = find_datatype(type);
  if (datatype == nullptr || !datatype->is_committed) {
    return MPI_ERR_TYPE;
  }
  if (!is_predefined(op)) {
    return is_object(op, ObjectKind::op) ? MPI_SUCCESS : MPI_ERR_OP;
  }
  if (op == MPI_REPLACE || op == MPI_NO_OP) {
    return datatype->is_predefined ? MPI_SUCCESS : MPI_ERR_OP;
  }
  const bool may_be = datatype->is_predefined || datatype->is_reducible;
  return may_be && find_kernel(op, datatype->basic) != nullptr ? MPI_SUCCESS : MPI_ERR_OP;
}

void reduce(MPI_Op op, MPI_Datatype type, const void* in, void* inout, MPI_Count count) noexcept {
  if (count == 0 || op == MPI_NO_OP) {
    return;
  }
  if (!is_predefined(op)) {
    run_user(*reinterpret_cast<const Op*>(op), type, in, inout, count);
    return;
  }
  const Datatype& datatype = *find_datatype(type);
  if (op == MPI_REPLACE) {
    std::memmove(inout, in, static_cast<std::size_t>(count * datatype.extent));
    return;
  }
  find_kernel(op, datatype.basic)(in, inout, static_cast<std::uint64_t>(count));
}

void retain_op(MPI_Op handle) noexcept {
  if (!is_predefined(handle)) {
    reinterpret_cast<Op*>(handle)->retain();
  }
}

void release_op(memory::Heap& heap, MPI_Op handle) noexcept {
  if (is_predefined(handle)) {
    return;
  }
  auto* op = reinterpret_cast<Op*>(handle);
  if (op->release()) {
    op->kind = ObjectKind::freed;
    op->~Op();
    heap.deallocate(op);
  }
}

}  // namespace sterna::mpi
