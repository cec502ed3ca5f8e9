// From which length on an announced message is lent to a driver that moves bytes from where they
// are to where they belong (Channel::try_lend), by the cost model of its way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "net/costs/cost.h"

namespace sterna::net {

/// Ends of long messages are not worth a registration and an answer each: no part is shorter.
[[nodiscard]] inline std::uint64_t lent_part_bytes_min(const CostModel& cost) noexcept {
  constexpr std::uint64_t kLeast = 64 << 10;
  const std::uint64_t set = cost.lent_bytes_set();
  return set != 0 ? std::min(set, kLeast) : kLeast;
}

/// Whether messages are lent to a channel that takes so many bytes at once
/// (Channel::lent_bytes_max).
[[nodiscard]] inline bool is_lent_to(const CostModel& cost,
                                     std::uint64_t lent_bytes_max) noexcept {
  return lent_bytes_max >= 2 * lent_part_bytes_min(cost);
}

/// What lending costs more than packets is there once: the news that the bytes may be read, and
/// that they were, and a registration on both sides, taken to cost what two more packets do. What
/// it saves is there for each byte: a copy into packets, and one out of them. Where the two are
/// equal it begins, in whole pages; or where a setting wants it. All figures are those of the
/// model, sampled or of the profile.
[[nodiscard]] inline std::uint64_t lent_from_bytes(const CostModel& cost) noexcept {
  constexpr double kLeast = 16 << 10;  // Shorter ones are copied from cache to cache.
  constexpr double kMost = 512 << 10;  // Copies of more do not stay in the cache.
  constexpr std::uint64_t kPage = 4 << 10;
  if (cost.lent_bytes_set() != 0) {
    return cost.lent_bytes_set();
  }
  double latency_ns = 0;
  double packet_ns = 0;
  double copy_ps_per_byte = 1;
  for (const CostModel::Row& row : cost.figures()) {
    const std::string_view name = row.name;
    latency_ns = name == "latency_ns" ? row.figure.value : latency_ns;
    packet_ns = name == "packet_ns" ? row.figure.value : packet_ns;
    copy_ps_per_byte = name == "copy_ps_per_byte" ? row.figure.value : copy_ps_per_byte;
  }
  const double more_ns = 2 * latency_ns + 2 * packet_ns;
  const double bytes = more_ns * 1000 / std::max(2 * copy_ps_per_byte, 1.0);
  return static_cast<std::uint64_t>(std::clamp(bytes, kLeast, kMost)) / kPage * kPage;
}

}  // namespace sterna::net
