// MPI_Scatter and MPI_Scatterv: as gather, the other way.
#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kTreeBytesMax = 8192;  // Of a block: above, copies on the way cost more.

void build_linear(Builder& b, const Parts& from, const Data& into, int root) noexcept {
  if (b.rank() != root) {
    b.receive(into.buffer, into.count, into.type, root);
    return;
  }
  for (int i = 0; i < b.size(); ++i) {
    if (i != root) {
      b.send(from.place(i), from.count(i), from.type_of(i), i);
    }
  }
  if (!into.is_in_place()) {
    b.copy(from.place(root), from.count(root), from.type_of(root), into.buffer, into.count,
           into.type);
  }
}

// Blocks are kept in the order of ranks relative to the root.
void build_tree(Builder& b, const Data& from, const Data& into, int root) noexcept {
  const int size = b.size();
  const int self = (b.rank() - root + size) % size;
  const bool is_root = self == 0;
  const Data& known = is_root ? from : into;
  const std::uint64_t block = bytes_of(known.count, known.type);
  const int reach = is_root ? 1 << rounds_of(size) : self & -self;
  const int held = self + reach <= size ? reach : size - self;
  std::byte* packed = b.temporary(block * static_cast<unsigned>(held));
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  if (is_root) {
    const MPI_Aint extent = extent_of(from.type);
    b.pack_bytes(at(from.buffer, from.count * root, extent), from.count * (size - root), from.type,
                 packed);
    b.pack_bytes(from.buffer, from.count * root, from.type,
                 packed + block * static_cast<unsigned>(size - root));
  } else {
    b.receive_bytes(packed, block * static_cast<unsigned>(held), (self - reach + root) % size);
    b.fence();
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    const int child = self + distance;
    if (child < size) {
      const int count = child + distance <= size ? distance : size - child;
      b.send_bytes(packed + block * static_cast<unsigned>(distance),
                   block * static_cast<unsigned>(count), (child + root) % size);
    }
  }
  if (!into.is_in_place()) {
    b.unpack_bytes(packed, into.buffer, into.count, into.type);
  }
}

}  // namespace

void build_scatter(Builder& b, const Data& from, const Data& into, int root) noexcept {
  if (b.comm().is_inter()) {
    build_inter_scatterv(b, Parts::equal(from), into, root);
    return;
  }
  const Data& known = b.rank() == root ? from : into;
  const std::uint64_t block = bytes_of(known.count, known.type);
  if (block == 0) {
    return;
  }
  if (block <= kTreeBytesMax && b.size() > 2) {
    build_tree(b, from, into, root);
  } else {
    build_linear(b, Parts::equal(from), into, root);
  }
}

void build_scatterv(Builder& b, const Parts& from, const Data& into, int root) noexcept {
  if (b.comm().is_inter()) {
    build_inter_scatterv(b, from, into, root);
    return;
  }
  build_linear(b, from, into, root);
}

}  // namespace sterna::mpi
