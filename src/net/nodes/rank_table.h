// Where every rank of the job is, as far as this node knows; a lock, and the packets that wait, for
// those that are here or come here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/annotate.h"
#include "base/cpu.h"
#include "threads/queues/owned_lock.h"

namespace sterna::net {

struct Endpoint;
struct HeldPacket;  // packet_pool.h

enum class RankState : std::uint8_t {
  elsewhere,  // On `node`, as far as we know: packets go there, and it forwards if it knows better.
  expected,   // It starts here, or is on its way here: packets are held until install().
  here,       // `endpoint` is its matching state.
  leaving,    // Its state may be copied away at any moment: packets are held until the end of that.
  ended,      // It was here and will not receive any more: packets are dropped.
};

struct alignas(kCacheLineBytes) RankEntry {
  static constexpr std::uint32_t kNoRoute = ~std::uint32_t{0};

  threads::OwnedLock lock;
  // `node` while the rank is elsewhere, else kNoRoute. Written under `lock`, read without it,
  // relaxed: a sender that is behind the news sends to where the rank was, and is forwarded.
  std::atomic<std::uint32_t> route{kNoRoute};
  // All below: guarded by `lock`. It also guards the Endpoint and what hangs from it, and may be
  // held while a request completes (which may take the lock of a run queue), never across a switch.
  // A thread holds the lock of one entry at a time. Owned by the worker that runs the rank while it
  // exchanges short messages there (direct.cc).
  RankState state STERNA_GUARDED_BY(lock) = RankState::elsewhere;
  bool is_moving STERNA_GUARDED_BY(lock) = false;  // Expected from another node, not to start.
  std::uint32_t node STERNA_GUARDED_BY(lock) = 0;
  std::uint32_t epoch STERNA_GUARDED_BY(lock) = 0;  // How often it has moved: later news win.
  std::uint32_t pins STERNA_GUARDED_BY(lock) = 0;   // Copies in progress that need it to stay here.
  Endpoint* endpoint STERNA_GUARDED_BY(lock) = nullptr;
  HeldPacket* held_first STERNA_GUARDED_BY(lock) = nullptr;
  HeldPacket* held_last STERNA_GUARDED_BY(lock) = nullptr;

  /// After each change of state or node.
  void tell_route() noexcept STERNA_REQUIRES(lock) {
    route.store(state == RankState::elsewhere ? node : kNoRoute, std::memory_order_relaxed);
  }
};

/// One entry a rank, constant in number. Entries are used directly, under their lock.
class RankTable {
 public:
  /// Ranks whose place is `node_index` start as expected, the others as elsewhere.
  RankTable(std::uint32_t node_index, std::span<const std::uint32_t> node_of_rank);

  [[nodiscard]] std::uint32_t rank_count() const noexcept { return rank_count_; }
  [[nodiscard]] RankEntry& operator[](std::uint32_t rank) noexcept { return entries_[rank]; }

  /// Where the rank is as far as this node knows.
  [[nodiscard]] std::uint32_t node_of(std::uint32_t rank) noexcept;

  /// Later news than ours are taken over, others ignored; never against what we see ourselves.
  /// True: the rank is on another node than we thought.
  [[nodiscard]] bool learn(std::uint32_t rank, std::uint32_t node, std::uint32_t epoch) noexcept;

  /// `from_node` says that the rank is not there, but went to `node`: we believe that even if we
  /// have later news of its having been there. Who had it forwards. True: as with learn().
  [[nodiscard]] bool retire(std::uint32_t rank, std::uint32_t from_node, std::uint32_t node,
                            std::uint32_t epoch) noexcept;

 private:
  const std::uint32_t rank_count_;
  const std::unique_ptr<RankEntry[]> entries_;
};

}  // namespace sterna::net
