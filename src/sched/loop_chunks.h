// Self-scheduling of loops: which iterations a party takes next (paper 003 §2.3). Pure: no thread
// here; loop.h runs it.
//
// Iterations are numbered from 0. Schemes, for N iterations, P parties, R iterations left:
//   block         party p has the p-th of P equal parts
//   cyclic        chunks of `chunk` (1), in turn
//   dynamic       chunks of `chunk` (1) to whoever asks (Tang, Yew 1986)
//   guided        ceil(R / P), `chunk` (1) at least (Polychronopoulos, Kuck 1987)
//   trapezoid     from `first` (ceil(N / 2P)) down to `chunk` (1), linearly (Tzen, Ni 1993)
//   factoring     batches of P chunks of ceil(R / 2P) (Hummel, Schonberg, Flynn 1992)
//   affinity      of its own block ceil(own R / P); then of the one with most left ceil(its R / P),
//                 from its end (Markatos, LeBlanc 1994)
//   clustered     the same, but it takes from others of its group only (Wang 1997, CAFS)
//   hierarchical  the same, and of the group with most left when its own is empty (Wang 2000, HAFS)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/cpu.h"
#include "base/spin_lock.h"

namespace sterna::sched {

enum class LoopScheme : std::uint8_t {
  block,
  cyclic,
  dynamic,
  guided,
  trapezoid,
  factoring,
  affinity,
  clustered,
  hierarchical,
};
inline constexpr std::uint32_t kLoopSchemeCount = 9;

[[nodiscard]] std::string_view to_string(LoopScheme scheme) noexcept;
/// One line, for `sterna info`.
[[nodiscard]] std::string_view summary_of(LoopScheme scheme) noexcept;
[[nodiscard]] std::optional<LoopScheme> to_loop_scheme(std::string_view name) noexcept;

struct LoopPlan {
  std::uint64_t count = 0;    // Iterations; below 2^62.
  std::uint32_t parties = 1;  // At least 1.
  LoopScheme scheme = LoopScheme::guided;
  std::uint64_t chunk = 0;  // Of cyclic and dynamic; least of guided, trapezoid. 0: 1.
  std::uint64_t first = 0;  // Of trapezoid. 0: as above.
  std::uint32_t group = 0;  // Parties of a group, in order. 0: the root of their number, upwards.
};

struct LoopRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
};

/// Hands out each iteration once. next() from anywhere, for each party by one thread at a time.
class LoopChunks {
 public:
  /// Null: no memory.
  static std::unique_ptr<LoopChunks> make(const LoopPlan& plan) noexcept;

  /// The next iterations for a party; empty: it is done.
  [[nodiscard]] LoopRange next(std::uint32_t party) noexcept;

 private:
  /// What is left of the block of a party.
  struct alignas(kCacheLineBytes) Block {
    SpinLock lock;
    LoopRange left;                       // Guard: lock.
    std::atomic<std::uint64_t> count{0};  // Its size. Written under lock; relaxed: for thieves.
    std::uint64_t turn = 0;               // Chunks taken, of block and cyclic. Its party's own.
  };

  explicit LoopChunks(const LoopPlan& plan) noexcept;

  LoopRange next_cyclic(std::uint32_t party) noexcept;
  /// Of equal chunks; empty after the last.
  [[nodiscard]] LoopRange chunk_at(std::uint64_t number) const noexcept;
  LoopRange next_guided() noexcept;
  LoopRange next_trapezoid() noexcept;
  LoopRange next_factoring() noexcept;
  LoopRange next_affinity(std::uint32_t party) noexcept;
  LoopRange take_part(Block& block, bool from_end) noexcept;
  /// The block with most left of parties [first, last).
  [[nodiscard]] Block* fullest(std::uint32_t first, std::uint32_t last) noexcept;
  [[nodiscard]] LoopRange group_range(std::uint32_t group) const noexcept;
  [[nodiscard]] Block* victim_of(std::uint32_t party) noexcept;

  LoopPlan plan_;                  // With all numbers filled in.
  std::uint64_t chunk_count_ = 0;  // Of equal chunks (cyclic, dynamic).
  // Of the central schemes: the next iteration (guided) or chunk (dynamic, trapezoid, factoring).
  // Relaxed: it orders nothing but itself; what bodies write is ordered by the join of the loop.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> next_{0};
  std::unique_ptr<Block[]> blocks_;  // By party.
};

}  // namespace sterna::sched
