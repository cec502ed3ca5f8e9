// Checks of the arguments that several collectives share. Each returns MPI_SUCCESS, or what the
// entry point returns.
#pragma once

#include "mpi/coll/collectives.h"
#include "mpi/coll/enter.h"
#include "mpi/op/op.h"
#include "mpi/p2p/entering.h"

namespace sterna::mpi {

/// Finds the communicator of an entry and, in the forms that need one, checks the place for the
/// request.
int check_entry(Call& call, const Entry& entry, MPI_Comm comm) noexcept;
/// As enter(), with these checks.
template <typename Work>
[[gnu::always_inline]] inline int enter_collective(const Entry& entry, MPI_Comm comm,
                                                   Work&& work) noexcept {
  return enter(
      entry.function, [&](Call& call) { return check_entry(call, entry, comm); }, work);
}
int check_root(const Call& call, int root) noexcept;
int check_parts(const Call& call, const Parts& parts, int count) noexcept;
int check_op(const Call& call, const Reduction& r) noexcept;
inline int check(const Call& call, const Data& data) noexcept {
  return check_data(call, data.buffer, data.count, data.type);
}

/// Whether this rank is the root, or MPI_ROOT's rank of an intercommunicator.
[[nodiscard]] inline bool is_root(const Call& call, int root) noexcept {
  return call.comm->is_inter() ? root == MPI_ROOT : call.comm->rank == root;
}
/// Whether this rank takes part as one that is not the root.
[[nodiscard]] inline bool is_leaf(const Call& call, int root) noexcept {
  return call.comm->is_inter() ? root >= 0 : call.comm->rank != root;
}

/// References to what must live until the request ends.
inline void hold(Builder& b, const Entry& entry, MPI_Datatype type) noexcept {
  if (entry.form != Form::blocking && find_datatype(type) != nullptr) {
    b.hold(type);
  }
}
inline void hold(Builder& b, const Entry& entry, const Parts& parts, int count) noexcept {
  if (entry.form == Form::blocking || parts.is_in_place()) {
    return;
  }
  if (parts.types == nullptr) {
    hold(b, entry, parts.type);
  }
  for (int i = 0; parts.types != nullptr && i < count; ++i) {
    hold(b, entry, parts.types[i]);
  }
}

}  // namespace sterna::mpi
