// MPI_Allreduce: recursive doubling in rank order for short vectors and for operations that do not
// commute, or, among crowded ranks, the same operations once instead of everywhere, up a tree;
// Rabenseifner's reduce-scatter and allgather for long ones. Every rank gets the same bits: each
// pair computes lower op upper on both sides, or an element is computed once and copied.
#include <utility>

#include "mpi/coll/collectives.h"
#include "mpi/coll/cost.h"
#include "mpi/op/op.h"

namespace sterna::mpi {
namespace {

// Sizes that are no power of two: of the first 2 * extra ranks, the even ones give their value to
// the odd ones and get the result at the end. The others are numbered anew, in order.
struct Fold {
  int extra;  // Ranks too many.
  int power;  // The largest power of two that is not above the size.
  int self;   // New number, -1: folded away.

  Fold(int rank, int size) noexcept : extra{0}, power{1 << (rounds_of(size + 1) - 1)}, self{0} {
    while (power > size) {
      power /= 2;
    }
    while (power * 2 <= size) {
      power *= 2;
    }
    extra = size - power;
    self = rank >= 2 * extra ? rank - extra : (rank % 2 != 0 ? rank / 2 : -1);
  }
  [[nodiscard]] int rank(int number) const noexcept {
    return number < extra ? 2 * number + 1 : number + extra;
  }
};

// Leaves the folded value in `value`, for ranks that go on.
void fold_in(Builder& b, const Fold& fold, const Reduction& r, std::byte*& value,
             std::byte*& spare) noexcept {
  if (b.rank() >= 2 * fold.extra) {
    return;
  }
  if (fold.self < 0) {
    b.send(value, r.count, r.type, b.rank() + 1);
    b.fence();
    return;
  }
  b.receive(spare, r.count, r.type, b.rank() - 1);
  b.reduce(spare, value, r.count, r.type, r.op);
}

void fold_out(Builder& b, const Fold& fold, const Reduction& r, std::byte* value) noexcept {
  if (b.rank() >= 2 * fold.extra) {
    return;
  }
  if (fold.self < 0) {
    b.receive(value, r.count, r.type, b.rank() + 1);
    b.fence();
  } else {
    b.fence();
    b.send(value, r.count, r.type, b.rank() - 1);
  }
}

void build_doubling(Builder& b, const Reduction& r) noexcept {
  const Fold fold{b.rank(), b.size()};
  auto* value = static_cast<std::byte*>(r.into);
  std::byte* spare = b.temporary_of(r.count, r.type);
  if (!r.is_in_place()) {
    b.copy(r.from, r.count, r.type, r.into, r.count, r.type);
  }
  fold_in(b, fold, r, value, spare);
  for (int mask = 1; fold.self >= 0 && mask < fold.power; mask *= 2) {
    const int other = fold.self ^ mask;
    b.receive(spare, r.count, r.type, fold.rank(other));
    b.send(value, r.count, r.type, fold.rank(other));
    b.fence();
    if (other < fold.self) {
      b.reduce(spare, value, r.count, r.type, r.op);
    } else {
      b.reduce(value, spare, r.count, r.type, r.op);
      std::swap(value, spare);
    }
  }
  // The folded ranks receive where they keep the result.
  fold_out(b, fold, r, fold.self < 0 ? static_cast<std::byte*>(r.into) : value);
  if (value != r.into && fold.self >= 0) {
    b.copy(value, r.count, r.type, r.into, r.count, r.type);
  }
}

// The operations of build_doubling(), each in one rank only: the value of numbers [n, n + 2^k) is
// at n after k rounds. The result goes down the same tree. 2 (size - 1) messages instead of size *
// log2(size), and of neighbours that share a node few leave it.
void build_pair_tree(Builder& b, const Reduction& r) noexcept {
  const Fold fold{b.rank(), b.size()};
  auto* value = static_cast<std::byte*>(r.into);
  std::byte* spare = b.temporary_of(r.count, r.type);
  if (!r.is_in_place()) {
    b.copy(r.from, r.count, r.type, r.into, r.count, r.type);
  }
  fold_in(b, fold, r, value, spare);
  int reach = 1;
  for (; fold.self >= 0 && reach < fold.power && (fold.self & reach) == 0; reach *= 2) {
    b.receive(spare, r.count, r.type, fold.rank(fold.self + reach));
    b.reduce(value, spare, r.count, r.type, r.op);
    std::swap(value, spare);
  }
  if (fold.self > 0) {
    const int parent = fold.rank(fold.self - reach);
    b.send(value, r.count, r.type, parent);
    b.fence();
    b.receive(value, r.count, r.type, parent);
    b.fence();
  }
  for (int distance = reach / 2; fold.self >= 0 && distance > 0; distance /= 2) {
    b.send(value, r.count, r.type, fold.rank(fold.self + distance));
  }
  fold_out(b, fold, r, fold.self < 0 ? static_cast<std::byte*>(r.into) : value);
  if (value != r.into && fold.self >= 0) {
    b.copy(value, r.count, r.type, r.into, r.count, r.type);
  }
}

// Elements [first, last) of the vector.
struct Range {
  MPI_Count first;
  MPI_Count last;
  [[nodiscard]] MPI_Count count() const noexcept { return last - first; }
  [[nodiscard]] MPI_Count middle() const noexcept { return first + (last - first) / 2; }
};

void build_rabenseifner(Builder& b, const Reduction& r) noexcept {
  const Fold fold{b.rank(), b.size()};
  auto* value = static_cast<std::byte*>(r.into);
  std::byte* spare = b.temporary_of(r.count, r.type);
  const MPI_Aint extent = extent_of(r.type);
  if (!r.is_in_place()) {
    b.copy(r.from, r.count, r.type, r.into, r.count, r.type);
  }
  fold_in(b, fold, r, value, spare);
  if (fold.self >= 0) {
    Range ranges[32];
    int level = 0;
    ranges[0] = {0, r.count};
    // Halving: the partner with the lower number keeps the lower half.
    for (int mask = fold.power / 2; mask > 0; mask /= 2, ++level) {
      const Range all = ranges[level];
      const Range low{all.first, all.middle()};
      const Range high{all.middle(), all.last};
      const bool keeps_low = (fold.self & mask) == 0;
      const Range kept = keeps_low ? low : high;
      const Range given = keeps_low ? high : low;
      const int peer = fold.rank(fold.self ^ mask);
      b.receive(at(spare, kept.first, extent), kept.count(), r.type, peer);
      b.send(at(value, given.first, extent), given.count(), r.type, peer);
      b.fence();
      b.reduce(at(spare, kept.first, extent), at(value, kept.first, extent), kept.count(), r.type,
               r.op);
      ranges[level + 1] = kept;
    }
    for (int mask = 1; mask < fold.power; mask *= 2, --level) {
      const Range all = ranges[level - 1];
      const Range kept = ranges[level];
      const Range other =
          (fold.self & mask) == 0 ? Range{kept.last, all.last} : Range{all.first, kept.first};
      const int peer = fold.rank(fold.self ^ mask);
      b.receive(at(value, other.first, extent), other.count(), r.type, peer);
      b.send(at(value, kept.first, extent), kept.count(), r.type, peer);
      b.fence();
    }
  }
  fold_out(b, fold, r, value);
}

constexpr Algorithm<void (*)(Builder&, const Reduction&) noexcept> kAlgorithms[] = {
    {"recursive doubling",
     [](int size, double bytes) {
       const int rounds = rounds_of(size);
       return cost_ns({1.0 * rounds, rounds * bytes, rounds * bytes});
     },
     build_doubling},
    {"reduce-scatter and allgather (Rabenseifner)",
     [](int size, double bytes) {
       return cost_ns({2.0 * rounds_of(size), 2 * bytes, bytes});
     },
     build_rabenseifner},
};

using Build = void (*)(Builder&, const Reduction&) noexcept;

Build choose(int size, const Reduction& r) noexcept {
  return !is_commutative(r.op) || r.count < size
             ? build_doubling
             : cheapest(kAlgorithms, size, static_cast<double>(bytes_of(r.count, r.type))).build;
}

}  // namespace

void build_allreduce(Builder& b, const Reduction& r) noexcept {
  if (b.comm().is_inter()) {
    build_inter_allreduce(b, r);
    return;
  }
  if (r.count == 0) {
    return;
  }
  if (b.size() == 1) {
    if (!r.is_in_place()) {
      b.copy(r.from, r.count, r.type, r.into, r.count, r.type);
    }
    return;
  }
  const Build build = choose(b.size(), r);
  (build == build_doubling && is_crowded(b) ? build_pair_tree : build)(b, r);
}

bool uses_doubling(int size, const Reduction& r) noexcept {
  return choose(size, r) == build_doubling;
}

}  // namespace sterna::mpi
