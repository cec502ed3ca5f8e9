// MPI_Gather and MPI_Gatherv: a binomial tree for short blocks, straight to the root for long ones
// and for blocks of different lengths (which only the root knows).
#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"

namespace sterna::mpi {
namespace {

constexpr std::uint64_t kTreeBytesMax = 8192;  // Of a block: above, copies on the way cost more.

void build_linear(Builder& b, const Data& from, const Parts& into, int root) noexcept {
  if (b.rank() != root) {
    b.send(from.buffer, from.count, from.type, root);
    return;
  }
  for (int i = 0; i < b.size(); ++i) {
    if (i != root) {
      b.receive(into.place(i), into.count(i), into.type_of(i), i);
    }
  }
  if (!from.is_in_place()) {
    b.copy(from.buffer, from.count, from.type, into.place(root), into.count(root),
           into.type_of(root));
  }
}

// Blocks are kept in the order of ranks relative to the root.
void build_tree(Builder& b, const Data& from, const Data& into, int root) noexcept {
  const int size = b.size();
  const int self = (b.rank() - root + size) % size;
  const bool is_root = self == 0;
  const Data own =
      is_root && from.is_in_place()
          ? Data{at(into.buffer, into.count * root, extent_of(into.type)), into.count, into.type}
          : from;
  const std::uint64_t block = bytes_of(own.count, own.type);
  const int reach = is_root ? size : self & -self;
  const int held = self + reach <= size ? reach : size - self;
  std::byte* packed = b.temporary(block * static_cast<unsigned>(held));
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  b.pack_bytes(own.buffer, own.count, own.type, packed);
  for (int distance = 1; distance < reach; distance *= 2) {
    const int child = self + distance;
    if (child < size) {
      const int count = child + distance <= size ? distance : size - child;
      b.receive_bytes(packed + block * static_cast<unsigned>(distance),
                      block * static_cast<unsigned>(count), (child + root) % size);
    }
  }
  b.fence();
  if (!is_root) {
    b.send_bytes(packed, block * static_cast<unsigned>(held), (self - reach + root) % size);
    return;
  }
  const MPI_Aint extent = extent_of(into.type);
  b.unpack_bytes(packed, at(into.buffer, into.count * root, extent), into.count * (size - root),
                 into.type);
  b.unpack_bytes(packed + block * static_cast<unsigned>(size - root), into.buffer,
                 into.count * root, into.type);
}

}  // namespace

void build_gather(Builder& b, const Data& from, const Data& into, int root) noexcept {
  if (b.comm().is_inter()) {
    build_inter_gatherv(b, from, Parts::equal(into), root);
    return;
  }
  const Data& known = b.rank() == root ? into : from;
  const std::uint64_t block = bytes_of(known.count, known.type);
  if (block == 0) {
    return;
  }
  if (block <= kTreeBytesMax && b.size() > 2) {
    build_tree(b, from, into, root);
  } else {
    build_linear(b, from, Parts::equal(into), root);
  }
}

void build_gatherv(Builder& b, const Data& from, const Parts& into, int root) noexcept {
  if (b.comm().is_inter()) {
    build_inter_gatherv(b, from, into, root);
    return;
  }
  build_linear(b, from, into, root);
}

}  // namespace sterna::mpi
