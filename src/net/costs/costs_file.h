// What earlier jobs have measured of the ways of this machine (net/costs/sampler.h), in a file of
// its user: so a job need not begin by measuring. Good for one boot of one machine and one build,
// and for some days; what is else in it, or breaks its format, is as if there were none.
//
//   sterna-costs 2
//   machine <boot> <processors> <build>
//   way <driver> <host or -> <largest packet> <second> <the six figures of WayCosts>
//   end <number of ways>
//
// Words are separated by one space. Written beside the old one, then renamed: a reader sees the one
// or the other, whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/costs/cost.h"

namespace sterna::net {

struct CostsEntry {
  std::string driver;
  std::string host;  // At the other end; empty: this one.
  std::uint32_t packet_bytes_max = 0;
  std::uint64_t at_s = 0;  // When it was measured: seconds of the clock of this boot.
  WayCosts costs;

  [[nodiscard]] bool is_same_way(const CostsEntry& other) const noexcept {
    return driver == other.driver && host == other.host &&
           packet_bytes_max == other.packet_bytes_max;
  }
};

inline constexpr std::size_t kCostsEntriesMax = 256;
inline constexpr std::size_t kCostsFileBytesMax = 64 << 10;
inline constexpr std::uint64_t kCostsFreshSeconds = 7 * 24 * 3600;
/// A job begins with older ones, too, and measures them again: they may be those of a loaded
/// machine.
inline constexpr std::uint64_t kCostsRestSeconds = 60;

/// This boot of this machine, and this build.
[[nodiscard]] std::string costs_machine();
/// $XDG_CACHE_HOME/sterna/costs-<name of the machine>, or in ~/.cache; empty: there is no such
/// folder.
[[nodiscard]] std::string costs_path();

/// The ways of `machine` in it that are younger than kCostsFreshSeconds. Fails with malformed, and
/// with refused where the file is another machine's.
[[nodiscard]] Result<std::vector<CostsEntry>> decode_costs_file(std::string_view text,
                                                                std::string_view machine,
                                                                std::uint64_t now_s);
/// Ways that the format cannot hold are left out.
[[nodiscard]] std::string encode_costs_file(std::span<const CostsEntry> entries,
                                            std::string_view machine);

/// What decode_costs_file() gives for the file, if it is a file of this user.
[[nodiscard]] Result<std::vector<CostsEntry>> read_costs(const std::string& path,
                                                         std::string_view machine,
                                                         std::uint64_t now_s);
/// Adds `entries` to what is there, in the place of the same ways; makes the folder.
[[nodiscard]] Result<> add_costs(const std::string& path, std::string_view machine,
                                 std::span<const CostsEntry> entries, std::uint64_t now_s);

}  // namespace sterna::net
