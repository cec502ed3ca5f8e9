// Rails and links of a way.
#include "net/rails/plan.h"

#include <algorithm>
#include <string_view>

#include "net/rails/choice.h"
#include "net/rails/format.h"

namespace sterna::net {
namespace {

/// "tcp" of "drop(delay(tcp@eth0))*2".
std::string_view network_of(std::string_view name) noexcept {
  const std::size_t inner = name.rfind('(');
  name.remove_prefix(inner == std::string_view::npos ? 0 : inner + 1);
  return name.substr(0, name.find_first_of("@,)*"));
}

}  // namespace

std::vector<std::uint16_t> choose_rails(std::span<const std::string> names,
                                        const std::vector<bool>& reaches, bool all) {
  std::vector<std::uint16_t> rails;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool is_wanted =
        rails.empty() || all || network_of(names[i]) == network_of(names[rails.front()]);
    if (reaches[i] && is_wanted) {
      rails.push_back(static_cast<std::uint16_t>(i));
    }
  }
  return rails;
}

WayPlan plan_way(std::span<const WayDriver> drivers, const LinkWishes& wishes) {
  std::vector<std::string> names;
  std::vector<bool> reaches;
  for (const WayDriver& driver : drivers) {
    names.push_back(driver.name);
    reaches.push_back(driver.reaches);
  }
  WayPlan plan{.rails = choose_rails(names, reaches, wishes.are_all_rails)};
  if (plan.rails.empty()) {
    plan.why = "no driver reaches it";
    return plan;
  }
  const auto any = [&](auto is_so) {
    return std::ranges::any_of(
        plan.rails, [&](std::uint16_t rail) { return is_so(drivers[rail].capabilities); });
  };
  const bool is_lossy = any([](const Capabilities& its) { return !its.is_reliable; });
  const bool is_direct = any([](const Capabilities& its) { return its.direct_mb_per_s != 0; });
  const bool has_several = plan.rails.size() > 1;
  plan.is_link =
      is_lossy || wishes.has_sums || ((has_several || wishes.use == LinkUse::always) && !is_direct);
  if (is_lossy) {
    plan.why = "a rail may lose packets";
  } else if (wishes.has_sums) {
    plan.why = "net_checksums asks for sums, which direct copies would go around";
  } else if (has_several) {
    plan.why =
        plan.is_link ? "several rails reach it" : "what is copied directly takes one rail only";
  } else {
    plan.why = plan.is_link ? "net_links asks for it" : "one rail that loses nothing";
  }
  return plan;
}

Capabilities link_capabilities(std::span<const Capabilities> rails) noexcept {
  Capabilities all;
  all.packet_bytes_max = ~std::uint32_t{0};
  all.is_ordered = false;
  all.latency_ns = ~std::uint32_t{0};
  all.bandwidth_mb_per_s = 0;
  std::uint64_t lending = 0;
  for (const Capabilities& rail : rails) {
    all.packet_bytes_max = std::min(
        all.packet_bytes_max, rail.packet_bytes_max - static_cast<std::uint32_t>(kLinkHeaderBytes));
    all.latency_ns = std::min(all.latency_ns, rail.latency_ns);
    all.packet_ns = std::min(all.packet_ns, rail.packet_ns);
    all.cpu_ps_per_byte = rail.cpu_ps_per_byte;
    all.bandwidth_mb_per_s += rail.bandwidth_mb_per_s;
    lending += rail.can_lend ? rail.bandwidth_mb_per_s : 0;
  }
  all.can_lend = lending != 0 && 2 * lending >= all.bandwidth_mb_per_s;  // As lent_bytes_max().
  return all;
}

std::string tell_link_copies(std::span<const WayDriver> rails, bool does_lend) {
  const auto names_of = [&](auto is_so) {
    std::string names;
    for (const WayDriver& rail : rails) {
      if (is_so(rail.capabilities)) {
        names += (names.empty() ? "" : ", ") + rail.name;
      }
    }
    return names;
  };
  if (does_lend) {
    return "zero copy of messages that are lent; other packets are copied, and kept until they are "
           "known to have come";
  }
  std::string text =
      "no zero copy: packets of messages are copied, and kept until they are known to have come";
  if (const std::string lend = names_of([](const Capabilities& its) { return its.can_lend; });
      !lend.empty()) {
    text += "; without a link long ones would be lent, with no copy, by " + lend;
  }
  if (const std::string direct =
          names_of([](const Capabilities& its) { return its.direct_mb_per_s != 0; });
      !direct.empty()) {
    text += "; without a link long ones would be copied directly, once, by " + direct;
  }
  return text;
}

namespace {

/// How long `count` equal parts of a message take, of which each goes where it ends first: in ps
/// for each byte of the message.
double time_of(std::span<const RailCosts> rails, std::uint32_t count) {
  std::vector<double> busy(rails.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    std::size_t best = 0;
    const auto end = [&](std::size_t rail) {
      return busy[rail] + static_cast<double>(rails[rail].ps_per_byte) / count;
    };
    for (std::size_t rail = 1; rail < busy.size(); ++rail) {
      best = end(rail) < end(best) ? rail : best;
    }
    busy[best] = end(best);
  }
  return *std::ranges::max_element(busy);
}

/// Of two rails: what the one takes that has the larger part of messages of about kShareBytes, so
/// that both parts arrive together. What is longer has more packets soon.
void cut_in_two(const RailCosts& one, const RailCosts& other, Cut& cut) {
  constexpr double kShareBytes = 16 << 10;
  constexpr double kMoreBytesMax = 1 << 20;
  const auto before_bytes_ps = [](const RailCosts& rail) {
    return 1000.0 * static_cast<double>(rail.latency_ns + rail.packet_ns);
  };
  const auto ones = static_cast<double>(std::max<std::uint64_t>(one.ps_per_byte, 1));
  const auto others = static_cast<double>(std::max<std::uint64_t>(other.ps_per_byte, 1));
  const double share = others / (ones + others);
  const double more_bytes = (before_bytes_ps(other) - before_bytes_ps(one)) / (ones + others);
  const bool is_one = kShareBytes * share + more_bytes >= kShareBytes / 2;
  cut.first_share = static_cast<std::uint32_t>(Cut::kWhole * (is_one ? share : 1 - share));
  cut.first_more_bytes = static_cast<std::int32_t>(
      std::clamp(is_one ? more_bytes : -more_bytes, -kMoreBytesMax, kMoreBytesMax));
}

}  // namespace

Cut plan_cut(std::span<const RailCosts> rails) {
  constexpr std::uint32_t kPartsOfRail = 3;  // More parts cost more than they gain.
  constexpr double kWorthIt = 0.9;           // Of the time with fewer.
  constexpr std::uint64_t kPartBytesMin = 2048;
  constexpr std::uint64_t kLongBytesMin = 64 << 10;  // Of networks that nothing is known of, too.
  constexpr std::uint64_t kLongBytesMax = std::uint64_t{1} << 30;
  constexpr std::uint64_t kLongPackets = 128;  // Of a long part: packets are then a hundredth.
  Cut cut;
  const auto count = static_cast<std::uint32_t>(rails.size());
  if (count < 2) {
    return cut;
  }
  double best = time_of(rails, cut.parts = count);
  for (std::uint32_t parts = count + 1; parts <= kPartsOfRail * count; ++parts) {
    if (const double time = time_of(rails, parts); time < best * kWorthIt) {
      best = time;
      cut.parts = parts;
    }
  }
  // A part gains the time of its bytes, and costs both ends a packet.
  const std::uint64_t fastest =
      std::max<std::uint64_t>(std::ranges::min(rails, {}, &RailCosts::ps_per_byte).ps_per_byte, 1);
  const std::uint64_t packet_ns = std::ranges::max(rails, {}, &RailCosts::packet_ns).packet_ns;
  cut.part_bytes_min = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(2 * packet_ns * 1000 / fastest, kPartBytesMin, cut.part_bytes_min));
  if (packet_ns != 0) {  // It is known.
    cut.part_bytes_max = static_cast<std::uint32_t>(
        std::clamp(kLongPackets * packet_ns * 1000 / fastest, kLongBytesMin, kLongBytesMax));
  }
  if (count == 2) {
    cut_in_two(rails[0], rails[1], cut);
  }
  return cut;
}

std::vector<std::uint64_t> share_out(std::vector<RailView> rails, std::uint32_t packet_bytes,
                                     const Strategy& strategy, std::uint64_t bytes) {
  constexpr std::uint64_t kPartsMax = 4096;  // A question must not hold up who answers it.
  std::vector<std::uint64_t> shares(rails.size());
  const std::uint64_t part_bytes = std::max<std::uint64_t>(packet_bytes, bytes / kPartsMax + 1);
  for (std::uint64_t left = bytes; left != 0;) {
    const auto part =
        static_cast<std::uint32_t>(std::min({left, part_bytes, std::uint64_t{~std::uint32_t{0}}}));
    const std::uint32_t rail = checked_rail(strategy, rails, part).rail;
    if (rail >= rails.size()) {
      break;
    }
    shares[rail] += part;
    rails[rail].sent_bytes += part;
    rails[rail].in_flight_bytes += part;
    left -= part;
  }
  return shares;
}

}  // namespace sterna::net
