// Where ranks are.
#include "net/nodes/rank_table.h"

#include "base/check.h"

namespace sterna::net {

RankTable::RankTable(std::uint32_t node_index, std::span<const std::uint32_t> node_of_rank)
    : rank_count_{static_cast<std::uint32_t>(node_of_rank.size())},
      entries_{std::make_unique<RankEntry[]>(node_of_rank.size())} {
  for (std::uint32_t rank = 0; rank < rank_count_; ++rank) {
    RankEntry& entry = entries_[rank];
    const threads::OwnedGuard guard{
        entry.lock};  // Nobody else is here yet; it satisfies the checker.
    entry.node = node_of_rank[rank];
    entry.state = entry.node == node_index ? RankState::expected : RankState::elsewhere;
    entry.tell_route();
  }
}

std::uint32_t RankTable::node_of(std::uint32_t rank) noexcept {
  check(rank < rank_count_, "a rank is less than the number of ranks");
  RankEntry& entry = entries_[rank];
  const threads::OwnedGuard guard{entry.lock};
  return entry.node;
}

bool RankTable::learn(std::uint32_t rank, std::uint32_t node, std::uint32_t epoch) noexcept {
  RankEntry& entry = entries_[rank];
  const threads::OwnedGuard guard{entry.lock};
  // Epochs wrap after 2^32 moves; the difference says which is later.
  if (entry.state != RankState::elsewhere || static_cast<std::int32_t>(epoch - entry.epoch) <= 0) {
    return false;
  }
  const bool is_elsewhere = entry.node != node;
  entry.node = node;
  entry.epoch = epoch;
  entry.tell_route();
  return is_elsewhere;
}

bool RankTable::retire(std::uint32_t rank, std::uint32_t from_node, std::uint32_t node,
                       std::uint32_t epoch) noexcept {
  const bool is_learnt = learn(rank, node, epoch);
  RankEntry& entry = entries_[rank];
  const threads::OwnedGuard guard{entry.lock};
  if (entry.state != RankState::elsewhere || entry.node != from_node) {
    return is_learnt;
  }
  entry.node = node;
  entry.tell_route();
  return true;
}

}  // namespace sterna::net
