// MPI_Reduce: a binomial tree that keeps the order of ranks, so that it serves every operation and
// gives the same bits for every root.
#include <utility>

#include "mpi/coll/collectives.h"

namespace sterna::mpi {

// The tree stands on rank 0 whatever the root: the order of operations is then the same for all.
// The value of [rank, rank + 2^k) is at `rank` after k rounds: its own part, then op, then the
// upper one.
void build_reduce_tree(Builder& b, const Reduction& r, int root) noexcept {
  const int rank = b.rank();
  const int size = b.size();
  if (r.count == 0) {
    return;
  }
  const void* value = r.source();
  // Two buffers in turn: the value so far is the left operand, and the result replaces the right
  // one.
  std::byte* spare[2] = {nullptr, nullptr};
  int turn = 0;
  int distance = 1;
  for (; distance < size && (rank & distance) == 0; distance *= 2) {
    if (rank + distance >= size) {
      continue;
    }
    if (spare[turn] == nullptr) {
      spare[turn] = b.temporary_of(r.count, r.type);
    }
    b.receive(spare[turn], r.count, r.type, rank + distance);
    b.reduce(value, spare[turn], r.count, r.type, r.op);
    value = spare[turn];
    turn = 1 - turn;
  }
  if (rank != 0) {
    b.send(value, r.count, r.type, rank - distance);
  }
  if (root != 0 && rank == 0) {
    b.send(value, r.count, r.type, root);
  } else if (root != 0 && rank == root) {
    b.fence();
    b.receive(r.into, r.count, r.type, 0);
  } else if (rank == root && value != r.into) {
    b.copy(value, r.count, r.type, r.into, r.count, r.type);
  }
}

void build_reduce(Builder& b, const Reduction& r, int root) noexcept {
  if (b.comm().is_inter()) {
    build_inter_reduce(b, r, root);
    return;
  }
  build_reduce_tree(b, r, root);
}

}  // namespace sterna::mpi
