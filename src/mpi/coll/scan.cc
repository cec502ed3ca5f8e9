// MPI_Scan and MPI_Exscan: recursive doubling in rank order. `partial` is the value of all ranks of
// the own block of 2^k; the result takes what comes from lower blocks.
#include <utility>

#include "mpi/coll/collectives.h"

namespace sterna::mpi {
namespace {

void build_prefix(Builder& b, const Reduction& r, bool is_inclusive) noexcept {
  if (r.count == 0) {
    return;
  }
  const int rank = b.rank();
  std::byte* partial = b.temporary_of(r.count, r.type);
  std::byte* arrived = b.temporary_of(r.count, r.type);
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  b.copy(r.source(), r.count, r.type, partial, r.count, r.type);
  if (is_inclusive && !r.is_in_place()) {
    b.copy(r.from, r.count, r.type, r.into, r.count, r.type);
  }
  bool has_result = is_inclusive;
  for (int mask = 1; mask < b.size(); mask *= 2) {
    const int peer = rank ^ mask;
    if (peer >= b.size()) {
      continue;
    }
    b.receive(arrived, r.count, r.type, peer);
    b.send(partial, r.count, r.type, peer);
    b.fence();
    if (peer > rank) {
      b.reduce(partial, arrived, r.count, r.type, r.op);  // Lower op upper.
      std::swap(partial, arrived);
      continue;
    }
    if (has_result) {
      b.reduce(arrived, r.into, r.count, r.type, r.op);
    } else {
      b.copy(arrived, r.count, r.type, r.into, r.count, r.type);
      has_result = true;
    }
    b.reduce(arrived, partial, r.count, r.type, r.op);
  }
}

}  // namespace

void build_scan(Builder& b, const Reduction& r) noexcept {
  build_prefix(b, r, true);
}

void build_exscan(Builder& b, const Reduction& r) noexcept {
  build_prefix(b, r, false);
}

}  // namespace sterna::mpi
