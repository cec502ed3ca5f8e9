// Which drivers become the rails of a way, and whether it is a link: pure, so that whoever explains
// a job (`sterna info --why`) says what the job would do.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tunable.h"
#include "net/driver.h"
#include "net/packets/strategy.h"

namespace sterna::net {

enum class LinkUse : std::uint8_t {
  automatic,  // Where there are several rails, or the one may lose packets.
  always,     // Also over one rail that loses none, so that it may break and come back.
};

/// What the settings say of links.
struct LinkWishes {
  LinkUse use = LinkUse::automatic;
  bool are_all_rails = false;  // Several networks to one node: all of them.
  bool has_sums = false;       // Packets carry sums, which only links put.
};
/// As `settings` have them (net_links, net_rails, net_checksums).
[[nodiscard]] Result<LinkWishes> read_link_wishes(const Settings& settings);

/// A driver that may be a rail of the way.
struct WayDriver {
  std::string name;  // As in a list of drivers, with its instance.
  Capabilities capabilities;
  bool reaches = false;  // The node.
};

struct WayPlan {
  std::vector<std::uint16_t> rails;  // Indices of drivers; without a link only the first is used.
  bool is_link = false;
  const char* why = "";  // One sentence part.
};

/// The rails of one way, as indices of drivers: the first that reaches the node, and the others of
/// the same network (the name before '@') or, with `all`, of any.
[[nodiscard]] std::vector<std::uint16_t> choose_rails(std::span<const std::string> names,
                                                      const std::vector<bool>& reaches, bool all);

/// A way has a link where it has several rails, or one that may lose packets, or where one is asked
/// for. Memory of another process can be written over one rail only, and the gate's: so a way that
/// can be copied over directly has no link unless it may lose packets, or sums are asked for, which
/// direct copies would go around.
[[nodiscard]] WayPlan plan_way(std::span<const WayDriver> drivers, const LinkWishes& wishes);

/// Of a link over such rails, as its gate's cost model begins with them: of its packets, whose
/// header comes off, and of the rails together.
[[nodiscard]] Capabilities link_capabilities(std::span<const Capabilities> rails) noexcept;

/// Whether long messages over a link are copied, and which of its rails would spare that if it were
/// alone: one sentence. `does_lend`: the link itself lends them (Channel::try_lend).
[[nodiscard]] std::string tell_link_copies(std::span<const WayDriver> rails, bool does_lend);

/// How a message is cut for the rails of a link, whose packets take what Link::choose() says.
struct Cut {
  static constexpr std::uint32_t kWhole = 1024;

  std::uint32_t parts = 1;              // Equal ones, or a multiple of so many.
  std::uint32_t part_bytes_min = 8192;  // Less is not worth a packet of its own.
  // More gains nothing: packets cost little beside that, and the last one is handled after all.
  std::uint32_t part_bytes_max = ~std::uint32_t{0};
  // Two rails: of what goes in one packet of each, so many of kWhole and so many bytes more by the
  // one that takes the larger part, which is where that arrives first. 0: they are more.
  std::uint32_t first_share = 0;
  std::int32_t first_more_bytes = 0;
  bool operator==(const Cut&) const = default;

  /// Of a message of so many bytes, how many go in one packet, which holds `most`.
  [[nodiscard]] std::uint32_t packet_bytes(std::uint64_t bytes, std::uint32_t most) const noexcept {
    if (parts < 2 || bytes < 2 * std::uint64_t{part_bytes_min}) {
      return most;
    }
    most = std::min(most, part_bytes_max);
    if (const std::uint64_t first = first_bytes(bytes); first != 0 && first <= most) {
      return bytes < first + part_bytes_min ? most : static_cast<std::uint32_t>(first);
    }
    // A multiple of the parts, so that the last ones, too, end at about the same time.
    const std::uint64_t whole = std::uint64_t{parts} * most;
    const std::uint64_t count = parts * ((bytes + whole - 1) / whole);
    const auto part = static_cast<std::uint32_t>((bytes + count - 1) / count);
    return std::min(std::max(part, part_bytes_min), most);
  }

 private:
  /// By the rail that takes the larger part: no less than half.
  [[nodiscard]] std::uint64_t first_bytes(std::uint64_t bytes) const noexcept {
    if (first_share == 0) {
      return 0;
    }
    const auto share = static_cast<std::int64_t>((bytes * first_share + kWhole - 1) / kWhole);
    const auto half = static_cast<std::int64_t>((bytes + 1) / 2);
    return static_cast<std::uint64_t>(std::max(share + first_more_bytes, half));
  }
};

/// One that changes while others read it. Relaxed: thresholds order nothing.
class SharedCut {
 public:
  void store(const Cut& cut) noexcept {
    parts_.store(cut.parts, std::memory_order_relaxed);
    part_bytes_min_.store(cut.part_bytes_min, std::memory_order_relaxed);
    part_bytes_max_.store(cut.part_bytes_max, std::memory_order_relaxed);
    first_share_.store(cut.first_share, std::memory_order_relaxed);
    first_more_bytes_.store(cut.first_more_bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Cut load() const noexcept {
    return {.parts = parts_.load(std::memory_order_relaxed),
            .part_bytes_min = part_bytes_min_.load(std::memory_order_relaxed),
            .part_bytes_max = part_bytes_max_.load(std::memory_order_relaxed),
            .first_share = first_share_.load(std::memory_order_relaxed),
            .first_more_bytes = first_more_bytes_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::uint32_t> parts_{Cut{}.parts}, part_bytes_min_{Cut{}.part_bytes_min},
      part_bytes_max_{Cut{}.part_bytes_max}, first_share_{Cut{}.first_share};
  std::atomic<std::int32_t> first_more_bytes_{Cut{}.first_more_bytes};
};

struct RailCosts {
  std::uint64_t ps_per_byte = 0;  // Of a packet.
  std::uint64_t packet_ns = 0;    // Of each packet beside its bytes.
  std::uint64_t latency_ns = 0;
};
/// For such rails: as few parts as let all of them end at about the same time.
[[nodiscard]] Cut plan_cut(std::span<const RailCosts> rails);

/// How the strategy would share so many bytes over rails that have this on their way: bytes of
/// each. It is asked for each packet in turn, none of which has come yet; for parts of several
/// packets where there would be more than some thousands. Less than all of them: the rest had to
/// wait.
[[nodiscard]] std::vector<std::uint64_t> share_out(std::vector<RailView> rails,
                                                   std::uint32_t packet_bytes,
                                                   const Strategy& strategy, std::uint64_t bytes);

}  // namespace sterna::net
