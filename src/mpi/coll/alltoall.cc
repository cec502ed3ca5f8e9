// MPI_Alltoall, v and w: Bruck's algorithm for short equal blocks among many ranks, else every pair
// directly, some at a time and each rank starting with its neighbours so that none is everybody's
// target at once.
#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"

namespace sterna::mpi {
namespace {

constexpr int kPairsAtOnce = 32;

void build_pairs(Builder& b, const Parts& from, const Parts& into) noexcept {
  const int size = b.size();
  const int rank = b.rank();
  b.copy(from.place(rank), from.count(rank), from.type_of(rank), into.place(rank), into.count(rank),
         into.type_of(rank));
  for (int first = 1; first < size; first += kPairsAtOnce) {
    const int last = first + kPairsAtOnce < size ? first + kPairsAtOnce : size;
    for (int i = first; i < last; ++i) {
      const int peer = (rank - i + size) % size;
      b.receive(into.place(peer), into.count(peer), into.type_of(peer), peer);
    }
    for (int i = first; i < last; ++i) {
      const int peer = (rank + i) % size;
      b.send(from.place(peer), from.count(peer), from.type_of(peer), peer);
    }
    b.fence();
  }
}

// Block i (for rank + i) travels the ones of i's binary digits. ceil(log2(size)) messages of half
// of all blocks.
void build_bruck(Builder& b, const Parts& from, const Parts& into) noexcept {
  const int size = b.size();
  const int rank = b.rank();
  const std::uint64_t block = bytes_of(into.count(0), into.type);
  const auto blocks = static_cast<unsigned>(size);
  std::byte* turned = b.temporary(block * blocks);
  std::byte* outgoing = b.temporary(block * blocks);
  std::byte* incoming = b.temporary(block * blocks);
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  const auto place = [&](std::byte* base, int i) {
    return base + block * static_cast<unsigned>(i);
  };
  for (int i = 0; i < size; ++i) {
    const int peer = (rank + i) % size;
    b.pack_bytes(from.place(peer), from.count(peer), from.type, place(turned, i));
  }
  for (int distance = 1; distance < size; distance *= 2) {
    int count = 0;
    for (int i = distance; i < size; ++i) {
      if ((i & distance) != 0) {
        b.move(place(turned, i), place(outgoing, count++), block);
      }
    }
    b.receive_bytes(incoming, block * static_cast<unsigned>(count),
                    (rank - distance + size) % size);
    b.send_bytes(outgoing, block * static_cast<unsigned>(count), (rank + distance) % size);
    b.fence();
    count = 0;
    for (int i = distance; i < size; ++i) {
      if ((i & distance) != 0) {
        b.move(place(incoming, count++), place(turned, i), block);
      }
    }
  }
  for (int i = 0; i < size; ++i) {
    const int peer = (rank - i + size) % size;
    b.unpack_bytes(place(turned, i), into.place(peer), into.count(peer), into.type);
  }
}

// By the bytes of one block.
constexpr Algorithm<void (*)(Builder&, const Parts&, const Parts&) noexcept> kAlgorithms[] = {
    {"every pair",
     [](int size, double bytes) {
       return cost_ns({0.5 * (size - 1), bytes * (size - 1), 0});  // Many are under way at once.
     },
     build_pairs},
    {"Bruck",
     [](int size, double bytes) {
       const int rounds = rounds_of(size);
       return cost_ns({2.0 * rounds, 3 * rounds * bytes * size / 2, 0});
     },
     build_bruck},
};

// MPI_IN_PLACE: what is sent is saved first, from where the results will be.
Parts save(Builder& b, const Parts& into) noexcept {
  const auto size = static_cast<unsigned>(b.size());
  auto* numbers = reinterpret_cast<MPI_Count*>(b.temporary(2 * size * sizeof(MPI_Count)));
  std::uint64_t total = 0;
  for (int i = 0; numbers != nullptr && i < b.size(); ++i) {
    numbers[i] = static_cast<MPI_Count>(bytes_of(into.count(i), into.type_of(i)));
    numbers[size + static_cast<unsigned>(i)] = static_cast<MPI_Count>(total);
    total += static_cast<std::uint64_t>(numbers[i]);
  }
  std::byte* saved = b.temporary(total);
  for (int i = 0; saved != nullptr && i < b.size(); ++i) {
    b.pack_bytes(into.place(i), into.count(i), into.type_of(i),
                 saved + numbers[size + static_cast<unsigned>(i)]);
  }
  return {saved, Counts::of(numbers), Counts::of(numbers + size), MPI_BYTE, nullptr, false, 0};
}

}  // namespace

void build_alltoall(Builder& b, const Parts& from, const Parts& into) noexcept {
  if (b.comm().is_inter()) {
    build_inter_alltoall(b, from, into);
    return;
  }
  const Parts source = from.is_in_place() ? save(b, into) : from;
  if (b.error() != MPI_SUCCESS) {
    return;
  }
  if (!into.is_equal) {
    build_pairs(b, source, into);  // Only in the equal form all ranks know all lengths.
    return;
  }
  const auto block = static_cast<double>(bytes_of(into.same_count, into.type));
  if (block > 0) {
    cheapest(kAlgorithms, b.size(), block).build(b, source, into);
  }
}

}  // namespace sterna::mpi
