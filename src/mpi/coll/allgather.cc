// MPI_Allgather and MPI_Allgatherv: Bruck's doubling for short totals, a ring for long ones. Blocks
// may have different lengths, which all ranks know.
#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"

namespace sterna::mpi {
namespace {

// Blocks that go around: `count` of them from `first` on, over the end too; at most two pieces.
template <typename Function>
void for_each_piece(const Blocks& blocks, int first, int count, int size, Function&& piece) {
  first %= size;
  const int before_end = first + count <= size ? count : size - first;
  const auto one = [&](int from, int number) {
    const std::uint64_t bytes = blocks.offsets[from + number] - blocks.offsets[from];
    if (bytes != 0) {
      piece(blocks.data + blocks.offsets[from], bytes);
    }
  };
  one(first, before_end);
  if (before_end < count) {
    one(0, count - before_end);
  }
}

// After each round a rank holds twice as many blocks, from its own on. Each message is sent as the
// one or two pieces of memory where its blocks are, so nothing is turned around at the end.
void build_bruck(Builder& b, const Blocks& blocks) noexcept {
  const int size = b.size();
  const int rank = b.rank();
  for (int held = 1; held < size; held *= 2) {
    const int count = held < size - held ? held : size - held;
    const int from = (rank + held) % size;
    const int to = (rank - held + size) % size;
    for_each_piece(blocks, rank + held, count, size, [&](std::byte* data, std::uint64_t bytes) {
      b.receive_bytes(data, bytes, from);
    });
    for_each_piece(blocks, rank, count, size,
                   [&](std::byte* data, std::uint64_t bytes) { b.send_bytes(data, bytes, to); });
    b.fence();
  }
}

void build_ring(Builder& b, const Blocks& blocks) noexcept {
  const int size = b.size();
  const int left = (b.rank() - 1 + size) % size;
  const int right = (b.rank() + 1) % size;
  for (int step = 0; step < size - 1; ++step) {
    for_each_piece(
        blocks, b.rank() - step - 1 + size, 1, size,
        [&](std::byte* data, std::uint64_t bytes) { b.receive_bytes(data, bytes, left); });
    for_each_piece(blocks, b.rank() - step + size, 1, size,
                   [&](std::byte* data, std::uint64_t bytes) { b.send_bytes(data, bytes, right); });
    b.fence();
  }
}

// By the bytes of all blocks together. The ring's neighbours are close when ranks lie in order, so
// its messages are counted at half the price.
constexpr Algorithm<void (*)(Builder&, const Blocks&) noexcept> kAlgorithms[] = {
    {"doubling (Bruck)",
     [](int size, double bytes) {
       return cost_ns({2.0 * rounds_of(size), 1.25 * bytes, 0});
     },
     build_bruck},
    {"ring",
     [](int size, double bytes) {
       return cost_ns({0.5 * (size - 1), bytes, 0});
     },
     build_ring},
};

}  // namespace

void build_allgather_blocks(Builder& b, const Blocks& blocks) noexcept {
  if (b.size() > 1) {
    cheapest(kAlgorithms, b.size(), static_cast<double>(blocks.offsets[b.size()])).build(b, blocks);
  }
}

void build_allgather(Builder& b, const Data& from, const Parts& into) noexcept {
  if (b.comm().is_inter()) {
    build_inter_allgather(b, from, into);
    return;
  }
  const int size = b.size();
  const int rank = b.rank();
  auto* offsets = reinterpret_cast<std::uint64_t*>(
      b.temporary((static_cast<unsigned>(size) + 1) * sizeof(std::uint64_t)));
  if (offsets == nullptr) {
    return;
  }
  offsets[0] = 0;
  for (int i = 0; i < size; ++i) {
    offsets[i + 1] = offsets[i] + bytes_of(into.count(i), into.type);
  }
  const bool is_adjacent = into.is_equal && find_datatype(into.type)->is_dense;
  Blocks blocks{nullptr, offsets};
  if (is_adjacent) {
    blocks.data = static_cast<std::byte*>(into.buffer) + find_datatype(into.type)->true_lb;
    if (!from.is_in_place()) {
      b.copy(from.buffer, from.count, from.type, into.place(rank), into.count(rank), into.type);
    }
    build_allgather_blocks(b, blocks);
    return;
  }
  blocks.data = b.temporary(offsets[size]);
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  if (from.is_in_place()) {
    b.pack_bytes(into.place(rank), into.count(rank), into.type, blocks.data + offsets[rank]);
  } else {
    b.pack_bytes(from.buffer, from.count, from.type, blocks.data + offsets[rank]);
  }
  build_allgather_blocks(b, blocks);
  for (int i = 0; i < size; ++i) {
    if (blocks.bytes(i) != 0 && (i != rank || !from.is_in_place())) {
      b.unpack_bytes(blocks.data + offsets[i], into.place(i), into.count(i), into.type);
    }
  }
}

}  // namespace sterna::mpi
