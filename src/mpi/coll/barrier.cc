// MPI_Barrier: dissemination. In round k each rank tells the one 2^k further, and hears from the
// one 2^k before: after ceil(log2(size)) rounds everyone has heard of everyone, for any size.
#include "mpi/coll/collectives.h"

namespace sterna::mpi {

void build_barrier(Builder& b) noexcept {
  if (b.comm().is_inter()) {
    build_inter_barrier(b);
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
