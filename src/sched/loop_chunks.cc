// See loop_chunks.h.
#include "sched/loop_chunks.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/check.h"

namespace sterna::sched {
namespace {

constexpr std::array<std::string_view, kLoopSchemeCount> kNames{
    "block",     "cyclic",   "dynamic",   "guided",      "trapezoid",
    "factoring", "affinity", "clustered", "hierarchical"};

constexpr std::array<std::string_view, kLoopSchemeCount> kSummaries{
    "as many equal parts as threads, one each",
    "chunks in turn: part k goes to thread k mod p",
    "chunks to whoever asks",
    "a p-th of what is left, rounded up, to whoever asks",
    "chunks that shrink linearly, to whoever asks",
    "batches of p equal chunks, half of what is left each",
    "of its own part, then of that with most left",
    "as affinity, but from others of its group only",
    "as clustered, and from the group with most left when its own has none"};

std::uint64_t ceil_of(std::uint64_t count, std::uint64_t by) noexcept {
  return count / by + (count % by != 0 ? 1 : 0);
}

/// The p-th of P parts of [0, count), which differ by 1 at most.
LoopRange part(std::uint64_t count, std::uint64_t parts, std::uint64_t p) noexcept {
  const std::uint64_t size = count / parts;
  const std::uint64_t larger = count % parts;
  const std::uint64_t begin = p * size + std::min(p, larger);
  return {begin, begin + size + (p < larger ? 1 : 0)};
}

std::uint32_t root_upwards(std::uint32_t number) noexcept {
  std::uint32_t root = 1;
  while (std::uint64_t{root} * root < number) {
    ++root;
  }
  return root;
}

}  // namespace

std::string_view to_string(LoopScheme scheme) noexcept {
  return kNames[static_cast<std::size_t>(scheme)];
}

std::string_view summary_of(LoopScheme scheme) noexcept {
  return kSummaries[static_cast<std::size_t>(scheme)];
}

std::optional<LoopScheme> to_loop_scheme(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNames, name);
  return found == kNames.end() ? std::nullopt
                               : std::optional{static_cast<LoopScheme>(found - kNames.begin())};
}

std::unique_ptr<LoopChunks> LoopChunks::make(const LoopPlan& plan) noexcept {
  check(plan.parties != 0 && plan.count >> 62 == 0, "a loop has parties, and less than 2^62 turns");
  std::unique_ptr<LoopChunks> chunks{new (std::nothrow) LoopChunks{plan}};
  if (chunks == nullptr) {
    return nullptr;
  }
  chunks->blocks_.reset(new (std::nothrow) Block[plan.parties]);
  if (chunks->blocks_ == nullptr) {
    return nullptr;
  }
  for (std::uint32_t p = 0; p < plan.parties; ++p) {
    Block& block = chunks->blocks_[p];
    block.left = part(plan.count, plan.parties, p);
    block.count.store(block.left.size(), std::memory_order_relaxed);
  }
  return chunks;
}

LoopChunks::LoopChunks(const LoopPlan& plan) noexcept : plan_{plan} {
  // A larger one than the loop is the loop; sums of them stay below 2^64.
  plan_.chunk = std::clamp<std::uint64_t>(plan.chunk, 1, std::max<std::uint64_t>(plan.count, 1));
  if (plan.first == 0) {
    plan_.first = ceil_of(plan.count, 2 * std::uint64_t{plan.parties});
  }
  plan_.first = std::max(std::min(plan_.first, plan_.count), plan_.chunk);
  if (plan.group == 0) {
    plan_.group = root_upwards(plan.parties);
  }
  chunk_count_ = ceil_of(plan_.count, plan_.chunk);
}

LoopRange LoopChunks::next(std::uint32_t party) noexcept {
  switch (plan_.scheme) {
    case LoopScheme::block:
      return blocks_[party].turn++ == 0 ? part(plan_.count, plan_.parties, party) : LoopRange{};
    case LoopScheme::cyclic:
      return next_cyclic(party);
    case LoopScheme::dynamic:
      return chunk_at(next_.fetch_add(1, std::memory_order_relaxed));
    case LoopScheme::guided:
      return next_guided();
    case LoopScheme::trapezoid:
      return next_trapezoid();
    case LoopScheme::factoring:
      return next_factoring();
    case LoopScheme::affinity:
    case LoopScheme::clustered:
    case LoopScheme::hierarchical:
      return next_affinity(party);
  }
  fail("a loop has one of its schemes", __FILE__, __LINE__);
}

LoopRange LoopChunks::next_cyclic(std::uint32_t party) noexcept {
  return chunk_at(blocks_[party].turn++ * plan_.parties + party);
}

LoopRange LoopChunks::chunk_at(std::uint64_t number) const noexcept {
  // Without the product, which may be too large.
  if (number >= chunk_count_) {
    return {};
  }
  const std::uint64_t begin = number * plan_.chunk;
  return {begin, begin + std::min(plan_.chunk, plan_.count - begin)};
}

LoopRange LoopChunks::next_guided() noexcept {
  std::uint64_t begin = next_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t left = plan_.count - begin;
    const std::uint64_t size = std::min(left, std::max(ceil_of(left, plan_.parties), plan_.chunk));
    if (size == 0) {
      return {};
    }
    if (next_.compare_exchange_weak(begin, begin + size, std::memory_order_relaxed)) {
      return {begin, begin + size};
    }
  }
}

LoopRange LoopChunks::next_trapezoid() noexcept {
  const std::uint64_t first = plan_.first;
  const std::uint64_t last = plan_.chunk;
  const std::uint64_t chunks = ceil_of(2 * plan_.count, first + last);
  const std::uint64_t decrement = chunks > 1 ? (first - last) / (chunks - 1) : 0;
  const std::uint64_t i = next_.fetch_add(1, std::memory_order_relaxed);
  if (i >= plan_.count) {
    return {};  // Nor overflows what follows.
  }
  // The first i chunks are first, first - decrement, ... No chunk falls below the last one.
  const std::uint64_t slopes = decrement == 0 ? i + 1 : (first - last) / decrement + 1;
  const std::uint64_t falling = std::min(i, slopes);
  // What falls has half of `first` on average: beyond the end, and perhaps beyond 2^64.
  if (falling / 2 > plan_.count / first || i - falling > plan_.count / last) {
    return {};
  }
  const std::uint64_t before = falling * first -
                               decrement * (falling * (falling - (falling != 0 ? 1 : 0)) / 2) +
                               (i - falling) * last;
  if (before >= plan_.count) {
    return {};
  }
  const std::uint64_t size = i < slopes ? first - decrement * i : last;
  return {before, before + std::min(size, plan_.count - before)};
}

LoopRange LoopChunks::next_factoring() noexcept {
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t parties = plan_.parties;
  std::uint64_t left = plan_.count;
  // Each batch takes at least half of what is left: 63 at most.
  for (std::uint64_t batch = number / parties; batch != 0 && left != 0; --batch) {
    left -= std::min(left, parties * ceil_of(left, 2 * parties));
  }
  const std::uint64_t size = ceil_of(left, 2 * parties);
  const std::uint64_t before = std::min(left, number % parties * size);
  const std::uint64_t begin = plan_.count - left + before;
  return {begin, begin + std::min(size, left - before)};
}

LoopRange LoopChunks::take_part(Block& block, bool from_end) noexcept {
  const SpinGuard guard{block.lock};
  const std::uint64_t size = ceil_of(block.left.size(), plan_.parties);
  LoopRange taken;
  if (from_end) {
    taken = {block.left.end - size, block.left.end};
    block.left.end = taken.begin;
  } else {
    taken = {block.left.begin, block.left.begin + size};
    block.left.begin = taken.end;
  }
  block.count.store(block.left.size(), std::memory_order_relaxed);
  return taken;
}

LoopChunks::Block* LoopChunks::fullest(std::uint32_t first, std::uint32_t last) noexcept {
  Block* most = nullptr;
  std::uint64_t count = 0;
  for (std::uint32_t p = first; p < last; ++p) {
    const std::uint64_t its = blocks_[p].count.load(std::memory_order_relaxed);
    if (its > count) {
      most = &blocks_[p];
      count = its;
    }
  }
  return most;
}

LoopRange LoopChunks::group_range(std::uint32_t group) const noexcept {
  const std::uint64_t begin = std::uint64_t{group} * plan_.group;
  return {begin, std::min<std::uint64_t>(begin + plan_.group, plan_.parties)};
}

LoopChunks::Block* LoopChunks::victim_of(std::uint32_t party) noexcept {
  const auto within = [&](const LoopRange& range) {
    return fullest(static_cast<std::uint32_t>(range.begin), static_cast<std::uint32_t>(range.end));
  };
  if (plan_.scheme == LoopScheme::affinity) {
    return fullest(0, plan_.parties);
  }
  Block* const near = within(group_range(party / plan_.group));
  if (near != nullptr || plan_.scheme == LoopScheme::clustered) {
    return near;
  }
  LoopRange most;
  std::uint64_t count = 0;
  for (std::uint32_t g = 0; std::uint64_t{g} * plan_.group < plan_.parties; ++g) {
    const LoopRange range = group_range(g);
    std::uint64_t sum = 0;
    for (std::uint64_t p = range.begin; p < range.end; ++p) {
      sum += blocks_[p].count.load(std::memory_order_relaxed);
    }
    if (sum > count) {
      most = range;
      count = sum;
    }
  }
  return within(most);
}

LoopRange LoopChunks::next_affinity(std::uint32_t party) noexcept {
  Block& own = blocks_[party];
  if (own.count.load(std::memory_order_relaxed) != 0) {
    if (const LoopRange taken = take_part(own, false); taken.size() != 0) {
      return taken;
    }
  }
  // Ends: each turn without success is one in which somebody else took something.
  while (Block* const victim = victim_of(party)) {
    if (const LoopRange taken = take_part(*victim, true); taken.size() != 0) {
      return taken;
    }
  }
  return {};
}

}  // namespace sterna::sched
