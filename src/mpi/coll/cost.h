// The cost of a collective's algorithm, for choosing among them.
//
// All ranks of a communicator must choose the same one, and a reduction must give the same bits
// wherever its ranks live and however fast the network is today: so the figures are those of a
// nominal network, equal everywhere, and not the measured ones of net/costs/cost.h.
#pragma once

#include <bit>
#include <cstdint>

namespace sterna::mpi {

inline constexpr double kLatencyNs = 1500;  // Of one message between two processes of a host.
inline constexpr double kNsPerByte = 0.25;  // 4 GB/s.
inline constexpr double kReduceNsPerByte = 0.1;

/// Rounds of a binary tree or of a doubling over `size` ranks: ceil(log2(size)).
[[nodiscard]] constexpr int rounds_of(int size) noexcept {
  return size <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<unsigned>(size - 1)));
}

/// Messages one after the other, and bytes through one rank.
struct Effort {
  double messages = 0;
  double bytes = 0;
  double reduced_bytes = 0;
};
[[nodiscard]] constexpr double cost_ns(const Effort& effort) noexcept {
  return effort.messages * kLatencyNs + effort.bytes * kNsPerByte +
         effort.reduced_bytes * kReduceNsPerByte;
}

/// One row of a table of algorithms.
template <typename Function>
struct Algorithm {
  const char* name;
  double (*cost)(int size, double bytes);  // Bytes: what the operation's own measure is.
  Function build;
};

/// The cheapest row; the first of equals.
template <typename Row, std::size_t kCount>
[[nodiscard]] constexpr const Row& cheapest(const Row (&rows)[kCount], int size,
                                            double bytes) noexcept {
  const Row* best = &rows[0];
  for (const Row& row : rows) {
    if (row.cost(size, bytes) < best->cost(size, bytes)) {
      best = &row;
    }
  }
  return *best;
}

}  // namespace sterna::mpi
