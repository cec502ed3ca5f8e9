// The collective operations: each appends the steps of the calling rank to a schedule. Arguments
// have been checked, and the communicator has more than zero members; it may be an
// intercommunicator (inter.cc), but for scans.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "mpi/coll/schedule.h"

namespace sterna::mpi {

/// Counts or displacements of a v or w form: int in the short one, 64 bits in the large one.
struct Counts {
  const void* values = nullptr;
  bool is_large = false;

  static Counts of(const int* values) noexcept { return {values, false}; }
  static Counts of(const MPI_Count* values) noexcept { return {values, true}; }
  [[nodiscard]] MPI_Count operator[](int index) const noexcept {
    return is_large ? static_cast<const std::int64_t*>(values)[index]
                    : static_cast<const int*>(values)[index];
  }
};
static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count));

/// `count` instances of a type at an address, for each rank the same.
struct Data {
  void* buffer = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  static Data of(const void* buffer, MPI_Count count, MPI_Datatype type) noexcept {
    return {const_cast<void*>(buffer), count, type};
  }
  [[nodiscard]] bool is_in_place() const noexcept { return buffer == MPI_IN_PLACE; }
};

/// Another count and place for each rank; `types` (w forms) or one type.
struct Parts {
  void* buffer = nullptr;
  Counts counts;
  Counts displacements;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const MPI_Datatype* types = nullptr;
  bool is_equal = false;  // All parts have same_count instances and are adjacent.
  MPI_Count same_count = 0;

  template <typename Count, typename Displacement>
  static Parts of(const void* buffer, const Count* counts, const Displacement* displacements,
                  MPI_Datatype type) noexcept {
    return {const_cast<void*>(buffer), Counts::of(counts), Counts::of(displacements), type};
  }
  template <typename Count, typename Displacement>
  static Parts of(const void* buffer, const Count* counts, const Displacement* displacements,
                  const MPI_Datatype* types) noexcept {
    return {const_cast<void*>(buffer), Counts::of(counts), Counts::of(displacements),
            MPI_DATATYPE_NULL, types};
  }
  static Parts equal(const Data& data) noexcept {
    return {data.buffer, {}, {}, data.type, nullptr, true, data.count};
  }
  [[nodiscard]] bool is_in_place() const noexcept { return buffer == MPI_IN_PLACE; }
  [[nodiscard]] MPI_Count count(int i) const noexcept { return is_equal ? same_count : counts[i]; }
  [[nodiscard]] MPI_Datatype type_of(int i) const noexcept {
    return types == nullptr ? type : types[i];
  }
  [[nodiscard]] std::byte* place(int i) const noexcept {
    if (is_equal) {
      return at(buffer, same_count * i, extent_of(type));
    }
    return types == nullptr ? at(buffer, displacements[i], extent_of(type))
                            : at(buffer, displacements[i], 1);
  }
};

/// A reduction: IN_PLACE has been resolved where it stands for the receive buffer.
struct Reduction {
  const void* from = nullptr;
  void* into = nullptr;
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  [[nodiscard]] bool is_in_place() const noexcept { return from == MPI_IN_PLACE; }
  [[nodiscard]] const void* source() const noexcept { return is_in_place() ? into : from; }
};

void build_barrier(Builder& b) noexcept;
void build_bcast(Builder& b, const Data& data, int root) noexcept;
void build_gather(Builder& b, const Data& from, const Data& into, int root) noexcept;
void build_gatherv(Builder& b, const Data& from, const Parts& into, int root) noexcept;
void build_scatter(Builder& b, const Data& from, const Data& into, int root) noexcept;
void build_scatterv(Builder& b, const Parts& from, const Data& into, int root) noexcept;
void build_allgather(Builder& b, const Data& from, const Parts& into) noexcept;
/// Also the v and w forms.
void build_alltoall(Builder& b, const Parts& from, const Parts& into) noexcept;
void build_reduce(Builder& b, const Reduction& r, int root) noexcept;
void build_allreduce(Builder& b, const Reduction& r) noexcept;
/// The ranks share few processors: what counts is the number of messages in all, and not how many
/// follow each other. The same answer for all members, wherever they are now.
[[nodiscard]] bool is_crowded(Builder& b) noexcept;
/// Whether build_allreduce takes recursive doubling, or the same operations up a tree: their order
/// is that of local.cc.
[[nodiscard]] bool uses_doubling(int size, const Reduction& r) noexcept;
/// `counts`: how much of the result each rank gets; r.count is their sum.
void build_reduce_scatter(Builder& b, const Reduction& r, const Parts& counts) noexcept;
void build_scan(Builder& b, const Reduction& r) noexcept;
void build_exscan(Builder& b, const Reduction& r) noexcept;
void build_neighbor_allgather(Builder& b, const Data& from, const Parts& into) noexcept;
void build_neighbor_alltoall(Builder& b, const Parts& from, const Parts& into) noexcept;

/// The same on an intercommunicator (root: MPI_ROOT, MPI_PROC_NULL or a rank of the other group).
void build_inter_barrier(Builder& b) noexcept;
void build_inter_bcast(Builder& b, const Data& data, int root) noexcept;
void build_inter_gatherv(Builder& b, const Data& from, const Parts& into, int root) noexcept;
void build_inter_scatterv(Builder& b, const Parts& from, const Data& into, int root) noexcept;
void build_inter_allgather(Builder& b, const Data& from, const Parts& into) noexcept;
void build_inter_alltoall(Builder& b, const Parts& from, const Parts& into) noexcept;
void build_inter_reduce(Builder& b, const Reduction& r, int root) noexcept;
void build_inter_allreduce(Builder& b, const Reduction& r) noexcept;
void build_inter_reduce_scatter(Builder& b, const Reduction& r, const Parts& counts) noexcept;

// Parts that others are made of; all on `bytes` bytes that need no datatype.
void build_bcast_bytes(Builder& b, std::byte* data, std::uint64_t bytes, int root) noexcept;
/// The same by the binomial tree: who tells whom depends on ranks only, not on `bytes`.
void build_bcast_tree(Builder& b, std::byte* data, std::uint64_t bytes, int root) noexcept;
/// Block i is `bytes_of_block(context, i)` bytes; all lie adjacent in `data`, where the own one is.
struct Blocks {
  std::byte* data = nullptr;
  const std::uint64_t* offsets = nullptr;  // size + 1 of them.
  [[nodiscard]] std::uint64_t bytes(int i) const noexcept { return offsets[i + 1] - offsets[i]; }
};
void build_allgather_blocks(Builder& b, const Blocks& blocks) noexcept;
/// The reduction of all ranks, in rank order; the result is at rank `root` in r.into.
void build_reduce_tree(Builder& b, const Reduction& r, int root) noexcept;

}  // namespace sterna::mpi
