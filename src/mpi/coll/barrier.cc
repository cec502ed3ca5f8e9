// MPI_Barrier: dissemination. In round k each rank tells the one 2^k further, and hears from the
// one 2^k before: after ceil(log2(size)) rounds everyone has heard of everyone, for any size. Among
// crowded ranks a binomial tree, up and down: fewer messages, of which few leave a node.
#include "mpi/coll/collectives.h"

namespace sterna::mpi {

namespace {

void build_tree_barrier(Builder& b) noexcept {
  const int rank = b.rank();
  const int size = b.size();
  int reach = 1;
  for (; reach < size && (rank & reach) == 0; reach *= 2) {
    if (rank + reach < size) {
      b.await_signal(rank + reach);
    }
  }
  b.fence();
  if (rank != 0) {
    b.signal(rank - reach);
    b.await_signal(rank - reach);
    b.fence();
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (rank + distance < size) {
      b.signal(rank + distance);
    }
  }
}

}  // namespace

void build_barrier(Builder& b) noexcept {
  if (b.comm().is_inter()) {
    build_inter_barrier(b);
    return;
  }
  if (is_crowded(b)) {
    build_tree_barrier(b);
    return;
  }
  const int size = b.size();
  for (int distance = 1; distance < size; distance *= 2) {
    b.await_signal((b.rank() - distance + size) % size);
    b.signal((b.rank() + distance) % size);
    b.fence();
  }
}

}  // namespace sterna::mpi
