// The wire format of measures and orders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "balance/policy.h"
#include "base/result.h"
#include "base/wire.h"

namespace sterna::balance {

inline constexpr std::size_t kReportBytesMax = std::size_t{16} << 20;

/// What one node says of its ranks and of itself.
struct Report {
  double speed = 1.0;
  std::vector<RankLoad> ranks;
};

[[nodiscard]] std::vector<std::byte> encode(const Report& report);
/// malformed when it cannot be read, or a load is not a number that makes sense. `node` is filled
/// in as the node of all its ranks.
[[nodiscard]] Result<Report> decode_report(std::span<const std::byte> bytes, std::uint32_t node,
                                           std::uint32_t rank_count);

[[nodiscard]] std::vector<std::byte> encode(const Plan& plan);
[[nodiscard]] Result<Plan> decode_plan(std::span<const std::byte> bytes);

/// ARRIVED: the rank is at a point, or has ended.
struct Arrived {
  std::uint32_t rank = 0;
  std::uint64_t number = 0;  // Of those at points that the node tells of, from 1; else 0.
  bool has_ended = false;

  bool operator==(const Arrived&) const = default;
};

[[nodiscard]] std::vector<std::byte> encode(const Arrived& arrived);
[[nodiscard]] Result<Arrived> decode_arrived(std::span<const std::byte> bytes,
                                             std::uint32_t rank_count);

/// RELEASE: of the ranks that the node has told of, up to this number.
[[nodiscard]] std::vector<std::byte> encode_release(std::uint64_t number);
[[nodiscard]] Result<std::uint64_t> decode_release(std::span<const std::byte> bytes);

}  // namespace sterna::balance
