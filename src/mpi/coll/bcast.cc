// MPI_Bcast: a binomial tree for short messages; for long ones the root scatters pieces down that
// tree and a ring gathers them everywhere, so that each rank sends about twice the bytes and not
// log2(size) times.
#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"

namespace sterna::mpi {
namespace {

// Ranks relative to the root: 0 is the root. The parent of v is v without its lowest set bit.
struct Tree {
  int size;
  int root;
  int self;  // Relative.

  Tree(const Builder& b, int root_rank) noexcept
      : size{b.size()}, root{root_rank}, self{(b.rank() - root_rank + b.size()) % b.size()} {}
  [[nodiscard]] int rank(int relative) const noexcept { return (relative + root) % size; }
  // Distance to the parent; for the root the first power of two that is not below the size.
  [[nodiscard]] int reach() const noexcept {
    return self != 0 ? self & -self : 1 << rounds_of(size);
  }
};

void build_binomial(Builder& b, std::byte* data, std::uint64_t bytes, int root) noexcept {
  const Tree tree{b, root};
  const int reach = tree.reach();
  if (tree.self != 0) {
    b.receive_bytes(data, bytes, tree.rank(tree.self - reach));
    b.fence();
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (tree.self + distance < tree.size) {
      b.send_bytes(data, bytes, tree.rank(tree.self + distance));
    }
  }
}

void build_scatter_ring(Builder& b, std::byte* data, std::uint64_t bytes, int root) noexcept {
  const Tree tree{b, root};
  const int size = tree.size;
  const std::uint64_t piece =
      (bytes + static_cast<unsigned>(size) - 1) / static_cast<unsigned>(size);
  const auto start = [&](int relative) {
    const std::uint64_t offset = piece * static_cast<unsigned>(relative < size ? relative : size);
    return offset < bytes ? offset : bytes;
  };
  // Each holds the pieces [self, self + reach) for a moment.
  const int reach = tree.reach();
  const auto exchange = [&](int relative, int count, bool is_send, int peer) {
    const std::uint64_t from = start(relative);
    const std::uint64_t length = start(relative + count) - from;
    if (length == 0) {
      return;
    }
    if (is_send) {
      b.send_bytes(data + from, length, tree.rank(peer));
    } else {
      b.receive_bytes(data + from, length, tree.rank(peer));
    }
  };
  if (tree.self != 0) {
    exchange(tree.self, reach, false, tree.self - reach);
    b.fence();
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (tree.self + distance < size) {
      exchange(tree.self + distance, distance, true, tree.self + distance);
    }
  }
  b.fence();
  const int left = (tree.self - 1 + size) % size;
  const int right = (tree.self + 1) % size;
  for (int step = 0; step < size - 1; ++step) {
    exchange((tree.self - step - 1 + size) % size, 1, false, left);
    exchange((tree.self - step + size) % size, 1, true, right);
    b.fence();
  }
}

constexpr Algorithm<void (*)(Builder&, std::byte*, std::uint64_t, int) noexcept> kAlgorithms[] = {
    {"binomial tree",
     [](int size, double bytes) {
       return cost_ns({1.0 * rounds_of(size), rounds_of(size) * bytes, 0});
     },
     build_binomial},
    {"scatter and ring",
     [](int size, double bytes) {
       return cost_ns({rounds_of(size) + size - 1.0, 2 * bytes * (size - 1) / size, 0});
     },
     build_scatter_ring},
};

}  // namespace

void build_bcast_tree(Builder& b, std::byte* data, std::uint64_t bytes, int root) noexcept {
  build_binomial(b, data, bytes, root);
}

void build_bcast_bytes(Builder& b, std::byte* data, std::uint64_t bytes, int root) noexcept {
  if (b.size() > 1 && bytes > 0) {
    cheapest(kAlgorithms, b.size(), static_cast<double>(bytes)).build(b, data, bytes, root);
  }
}

void build_bcast(Builder& b, const Data& data, int root) noexcept {
  if (b.comm().is_inter()) {
    build_inter_bcast(b, data, root);
    return;
  }
  const TypedBuffer typed = TypedBuffer::of(data.buffer, data.count, *find_datatype(data.type));
  if (typed.is_one_run()) {
    build_bcast_bytes(b, typed.first_byte(), typed.bytes(), root);
    return;
  }
  std::byte* packed = b.temporary(typed.bytes());
  if (b.rank() == root) {
    b.pack_bytes(data.buffer, data.count, data.type, packed);
  }
  build_bcast_bytes(b, packed, typed.bytes(), root);
  if (b.rank() != root) {
    b.unpack_bytes(packed, data.buffer, data.count, data.type);
  }
}

}  // namespace sterna::mpi
