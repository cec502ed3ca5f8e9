// Reduction operations: predefined ones by table, those of the program as objects.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "memory/heap.h"
#include "mpi/datatype/datatype.h"
#include "mpi/object.h"

namespace sterna::mpi {

/// What MPI_Op_create makes. Lies in the system heap of the rank.
struct Op final : Object {
  Op() noexcept : Object{ObjectKind::op} {}

  bool is_commutative = false;
  bool is_large = false;                  // Made by MPI_Op_create_c.
  MPI_User_function* function = nullptr;  // One of the two.
  MPI_User_function_c* large_function = nullptr;
};

/// Reduction of `count` adjacent elements: inout[i] = in[i] op inout[i]. The ranges are equal or do
/// not overlap.
using Kernel = void (*)(const void* in, void* inout, std::uint64_t count) noexcept;

[[nodiscard]] inline bool is_predefined(MPI_Op handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) <= kPredefinedHandleMax;
}
/// Whether the handle is an operation (MPI_OP_NULL is none).
[[nodiscard]] bool is_op(MPI_Op handle) noexcept;
[[nodiscard]] bool is_commutative(MPI_Op handle) noexcept;

/// MPI_SUCCESS, MPI_ERR_OP (no operation, or not defined for this type), MPI_ERR_TYPE (no
/// datatype). An operation of the program is legal on all types. MPI_REPLACE and MPI_NO_OP are
/// legal on all predefined types; where they may be used at all is the caller's rule.
[[nodiscard]] int check_reduction(MPI_Op op, MPI_Datatype type) noexcept;

/// inout[i] = in[i] op inout[i] for `count` instances of `type`, which check_reduction allows.
/// Buffers as MPI gives them (the type's lb is not added). An operation of the program runs in a
/// UserScope: may switch then.
void reduce(MPI_Op op, MPI_Datatype type, const void* in, void* inout, MPI_Count count) noexcept;

void retain_op(MPI_Op handle) noexcept;
void release_op(memory::Heap& heap, MPI_Op handle) noexcept;

}  // namespace sterna::mpi
