// MPI_Reduce_scatter and _block: for operations that commute and long vectors every pair exchanges
// the part that the other one wants; else a reduction to rank 0, and a scatter.
#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"
#include "mpi/op/op.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kPairsBytesMin = 32768;  // Of the whole vector.

void build_tree(Builder& b, const Reduction& r, const Parts& counts) noexcept {
  std::byte* whole = b.rank() == 0 ? b.temporary_of(r.count, r.type) : nullptr;
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  build_reduce_tree(b, {r.source(), whole, r.count, r.type, r.op}, 0);
  b.fence();
  if (b.rank() != 0) {
    b.receive(r.into, counts.count(b.rank()), r.type, 0);
    return;
  }
  MPI_Count place = counts.count(0);
  for (int i = 1; i < b.size(); ++i) {
    b.send(at(whole, place, extent_of(r.type)), counts.count(i), r.type, i);
    place += counts.count(i);
  }
  b.copy(whole, counts.count(0), r.type, r.into, counts.count(0), r.type);
}

// The order of operations for an element follows the numbers of ranks: own, rank - 1, rank - 2, ...
void build_pairs(Builder& b, const Reduction& r, const Parts& counts) noexcept {
  const int size = b.size();
  const int rank = b.rank();
  const MPI_Aint extent = extent_of(r.type);
  auto* starts = reinterpret_cast<MPI_Count*>(
      b.temporary((static_cast<unsigned>(size) + 1) * sizeof(MPI_Count)));
  const MPI_Count own = counts.count(rank);
  std::byte* value = b.temporary_of(own, r.type);
  std::byte* arrived = b.temporary_of(own, r.type);
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  starts[0] = 0;
  for (int i = 0; i < size; ++i) {
    starts[i + 1] = starts[i] + counts.count(i);
  }
  b.copy(at(r.source(), starts[rank], extent), own, r.type, value, own, r.type);
  for (int i = 1; i < size; ++i) {
    const int from = (rank - i + size) % size;
    const int to = (rank + i) % size;
    b.receive(arrived, own, r.type, from);
    b.send(at(r.source(), starts[to], extent), counts.count(to), r.type, to);
    b.fence();
    b.reduce(arrived, value, own, r.type, r.op);
  }
  b.copy(value, own, r.type, r.into, own, r.type);
}

}  // namespace

void build_reduce_scatter(Builder& b, const Reduction& r, const Parts& counts) noexcept {
  if (b.comm().is_inter()) {
    build_inter_reduce_scatter(b, r, counts);
    return;
  }
  if (r.count == 0) {
    return;
  }
  if (is_commutative(r.op) && bytes_of(r.count, r.type) >= kPairsBytesMin) {
    build_pairs(b, r, counts);
  } else {
    build_tree(b, r, counts);
  }
}

}  // namespace sterna::mpi
