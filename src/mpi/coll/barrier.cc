// MPI_Barrier. Dissemination: in round k each rank tells the one 2^k further, and hears from the
// one 2^k before: after ceil(log2(size)) rounds everyone has heard of everyone, for any size. Where
// ranks crowd on few processors, a binomial tree towards rank 0 and back: twice the rounds, but
// 2 * (size - 1) messages instead of size * rounds.
#include "mpi/coll/collectives.h"
#include "mpi/coll/crowd.h"

namespace sterna::mpi {
namespace {

void build_tree_barrier(Builder& b) noexcept {
  int mask = 1;
  for (; mask < b.size() && (b.rank() & mask) == 0; mask *= 2) {
    if (b.rank() + mask < b.size()) {
      b.receive_bytes(nullptr, 0, b.rank() + mask);
    }
  }
  b.fence();
  if (b.rank() != 0) {
    b.receive_bytes(nullptr, 0, b.rank() - mask);
    b.send_bytes(nullptr, 0, b.rank() - mask);
    b.fence();
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (b.rank() + mask < b.size()) {
      b.send_bytes(nullptr, 0, b.rank() + mask);
    }
  }
  b.fence();
}

}  // namespace

void build_barrier(Builder& b) noexcept {
  if (b.comm().is_inter()) {
    build_inter_barrier(b);
    return;
  }
  if (is_crowded(b.state())) {
    build_tree_barrier(b);
    return;
  }
  const int size = b.size();
  for (int distance = 1; distance < size; distance *= 2) {
    b.receive_bytes(nullptr, 0, (b.rank() - distance + size) % size);
    b.send_bytes(nullptr, 0, (b.rank() + distance) % size);
    b.fence();
  }
}

}  // namespace sterna::mpi
