// The answer to `sterna info --why`: the cost model of each way to the peer, the strategy's reason,
// and the link that a job would make of its drivers, with how its rails would share the bytes.
#include "tools/cli/why.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "net/costs/costs_file.h"
#include "net/driver.h"
#include "net/drivers/choice.h"
#include "net/packets/strategy.h"
#include "net/rails/plan.h"
#include "net/transport.h"
#include "runtime/settings.h"

namespace sterna::cli {
namespace {

using nlohmann::json;

struct Way {
  std::string driver;
  std::string to;    // A host, or "any": nothing was measured.
  std::string from;  // Where the figures come from.
  net::CostModel model;
  std::uint32_t packet_bytes_max;
};

std::string age_of(std::uint64_t seconds) {
  return seconds < 120 ? fmt::format("measured {} s ago", seconds)
                       : fmt::format("measured {} min ago", seconds / 60);
}

Result<std::vector<Way>> known_ways(const Settings& settings) {
  const std::uint64_t now_s = now_ns() / 1'000'000'000;
  Result<std::vector<net::CostsEntry>> known =
      net::read_costs(net::costs_path(), net::costs_machine(), now_s);
  std::vector<Way> ways;
  for (const net::DriverEntry* const driver : net::builtin_drivers()) {
    Result<net::CostModel> profile = net::profile_model(*driver, settings);
    if (!profile) {
      return profile.error();
    }
    ways.push_back({std::string{driver->name}, "any", "profile of the driver", profile.value(),
                    driver->profile.packet_bytes_max});
    if (!known) {
      continue;
    }
    for (const net::CostsEntry& entry : known.value()) {
      if (entry.driver.substr(0, entry.driver.find('@')) == driver->name) {
        net::CostModel model = profile.value();
        model.take(entry.costs, net::CostOrigin::cached);
        ways.push_back({entry.driver, entry.host.empty() ? "this host" : entry.host,
                        age_of(now_s - entry.at_s), model, entry.packet_bytes_max});
      }
    }
  }
  return ways;
}

/// Who is asked about.
struct Peer {
  bool is_here = false;  // On this host, as far as the question says.
  std::uint64_t now_s = 0;
  std::vector<net::CostsEntry> known;  // Of ways to it.
};

const net::CostsEntry* find_known(const Peer& peer, const std::string& way) {
  const auto found = std::ranges::find(peer.known, way, &net::CostsEntry::driver);
  return found != peer.known.end() ? &*found : nullptr;
}

/// A rail as a link begins with it (Link::choose): sampled by an earlier job, each packet then
/// costs what a small one does, too; or as its driver's profile says.
net::RailView view_of(const net::WayDriver& driver, const Peer& peer, std::uint32_t packet_bytes,
                      std::string& figures) {
  const net::CostsEntry* const known = find_known(peer, fmt::format("link({})", driver.name));
  figures = known != nullptr ? age_of(peer.now_s - known->at_s) : "profile of the driver";
  const std::uint64_t ps_per_byte =
      known != nullptr
          ? known->costs.packet_ps_per_byte + known->costs.packet_ns * 1000ULL / packet_bytes
          : 1'000'000 / std::max(driver.capabilities.bandwidth_mb_per_s, 1U);
  return {.has_room = true,
          .latency_ns = known != nullptr ? known->costs.latency_ns : driver.capabilities.latency_ns,
          .profile_ps_per_byte = std::max<std::uint64_t>(ps_per_byte, 1)};
}

/// How the link cuts messages, as Bond::cut() says.
net::Cut cut_of(const std::vector<net::WayDriver>& ways, const net::WayPlan& plan,
                const Peer& peer) {
  std::vector<std::uint64_t> ps_per_byte;
  std::uint64_t packet_ns = 0;
  for (const std::uint16_t i : plan.rails) {
    const net::Capabilities& profile = ways[i].capabilities;
    const net::CostsEntry* const known = find_known(peer, fmt::format("link({})", ways[i].name));
    ps_per_byte.push_back(known != nullptr ? std::max(known->costs.packet_ps_per_byte, 1U)
                                           : 1'000'000 / std::max(profile.bandwidth_mb_per_s, 1U));
    packet_ns = std::max<std::uint64_t>(
        packet_ns, known != nullptr ? known->costs.packet_ns : profile.packet_ns);
  }
  return net::plan_cut(ps_per_byte, packet_ns);
}

/// What is known of a driver of a list without opening it.
net::WayDriver way_driver(const net::DriverChoice& choice, const Peer& peer,
                          const Settings& settings) {
  net::WayDriver driver{std::string{choice.text()}, choice.entry->profile, true};
  for (const Tunable& tunable : choice.entry->tunables) {
    if (tunable.name == fmt::format("{}_packet_bytes", choice.entry->name)) {
      driver.capabilities.packet_bytes_max = static_cast<std::uint32_t>(settings.number(tunable));
    }
  }
  const bool is_of_one_host =
      driver.capabilities.direct_mb_per_s != 0 || choice.entry->name == "unix";
  driver.reaches = peer.is_here || !is_of_one_host;
  for (const net::DriverChoice::Around& around : choice.around) {
    const std::string_view name = around.entry->name;
    const bool loses = name == "drop" || name == "corrupt" || name == "cut";
    driver.capabilities.is_reliable = driver.capabilities.is_reliable && !loses;
    if (name != "trace" && name != "count") {  // All the others want to see each byte.
      driver.capabilities.direct_latency_ns = driver.capabilities.direct_mb_per_s = 0;
    }
  }
  return driver;
}

json shares_of(const std::vector<net::RailView>& rails, std::uint32_t packet_bytes,
               const net::Strategy& strategy, std::uint64_t bytes) {
  const std::vector<std::uint64_t> parts = net::share_out(rails, packet_bytes, strategy, bytes);
  json shares = json::array();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const net::RailView& rail = rails[i];
    shares.push_back(
        {{"bytes", parts[i]},
         {"latency_ns", rail.latency_ns},
         {"ps_per_byte", rail.ps_per_byte()},
         {"ns", parts[i] == 0 ? 0 : rail.latency_ns + parts[i] * rail.ps_per_byte() / 1000}});
  }
  return shares;
}

/// What a job with these drivers would make of its way to the peer: a link of some rails, or none.
Result<json> explain_link(const std::vector<net::DriverChoice>& drivers, const Peer& peer,
                          const net::Strategy& strategy, std::uint64_t bytes,
                          const Settings& settings) {
  Result<net::LinkWishes> wishes = net::read_link_wishes(settings);
  if (!wishes) {
    return wishes.error();
  }
  std::vector<net::WayDriver> ways;
  std::string names;
  for (const net::DriverChoice& driver : drivers) {
    ways.push_back(way_driver(driver, peer, settings));
    names += (names.empty() ? "" : "+") + ways.back().name;
  }
  const net::WayPlan plan = net::plan_way(ways, wishes.value());
  json link = {{"drivers", names}, {"is_link", plan.is_link}, {"why", plan.why}};
  if (!plan.is_link) {
    return link;
  }
  std::vector<net::Capabilities> each;
  for (const std::uint16_t i : plan.rails) {
    each.push_back(ways[i].capabilities);
  }
  net::DriverEntry whole = *drivers[plan.rails.front()].entry;
  whole.profile = net::link_capabilities(each);
  Result<net::CostModel> model = net::profile_model(whole, settings);
  if (!model) {
    return model.error();
  }
  if (const net::CostsEntry* const known = find_known(peer, fmt::format("link({})", names))) {
    model.value().take(known->costs, net::CostOrigin::cached);
  }
  const std::uint32_t packet_bytes =
      cut_of(ways, plan, peer).packet_bytes(bytes, whole.profile.packet_bytes_max);
  std::vector<net::RailView> rails;
  std::vector<std::string> figures(plan.rails.size());
  for (std::size_t i = 0; i < plan.rails.size(); ++i) {
    rails.push_back(view_of(ways[plan.rails[i]], peer, packet_bytes, figures[i]));
  }
  link["protocol"] = model.value().explain(bytes);
  link["choice"] = strategy.explain_rail(
      rails, static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, packet_bytes)));
  link["rails"] = shares_of(rails, packet_bytes, strategy, bytes);
  for (std::size_t i = 0; i < plan.rails.size(); ++i) {
    link["rails"][i]["driver"] = ways[plan.rails[i]].name;
    link["rails"][i]["figures"] = figures[i];
  }
  return link;
}

/// Those that the question names, else those of the setting; as often as a job opens them.
Result<std::vector<net::DriverChoice>> drivers_of(const std::string& asked,
                                                  const Settings& settings) {
  const bool is_list = net::verify_drivers(asked).has_value();
  Result<std::vector<net::DriverChoice>> chosen =
      net::choose_drivers(is_list ? std::string_view{asked} : settings.text(runtime::kDrivers));
  return chosen ? net::repeat_by_connections(chosen.value(), &settings) : chosen;
}

bool is_asked(const Way& way, const std::string& asked) {
  return asked == way.to || asked == way.driver ||
         asked == way.driver.substr(0, way.driver.find('@'));
}

/// A host, whose ways earlier jobs have measured; or a driver or a list of them, to whatever host;
/// or "any".
Result<Peer> find_peer(const std::string& asked, const std::vector<Way>& ways) {
  Peer peer;
  peer.now_s = now_ns() / 1'000'000'000;
  std::string names;
  bool is_known = net::verify_drivers(asked).has_value();
  for (const Way& way : ways) {
    is_known = is_known || is_asked(way, asked);
    for (const std::string& name : {way.to, way.driver}) {
      if (fmt::format(", {},", names).find(fmt::format(", {},", name)) == std::string::npos) {
        names += names.empty() ? name : ", " + name;
      }
    }
  }
  const bool is_host =
      std::ranges::any_of(ways, [&](const Way& way) { return way.to == asked && asked != "any"; });
  Result<std::vector<net::CostsEntry>> entries =
      net::read_costs(net::costs_path(), net::costs_machine(), peer.now_s);
  for (const net::CostsEntry& entry : entries ? entries.value() : std::vector<net::CostsEntry>{}) {
    const std::string to = entry.host.empty() ? "this host" : entry.host;
    is_known = is_known || to == asked;
    if (to == asked || (!is_host && asked != "this host")) {
      peer.known.push_back(entry);
    }
  }
  peer.is_here = !is_host || asked == "this host";
  if (!is_known) {
    return Error{Errc::invalid_argument,
                 fmt::format("no way to '{}' is known; --why net takes one of: {}; or a list of "
                             "drivers as --drivers takes (hosts are known once a job has run to "
                             "them, see sterna info --costs)",
                             asked, names)};
  }
  return peer;
}

}  // namespace

Result<std::uint64_t> read_size(const std::string& text) {
  static constexpr Tunable kSize[] = {
      {.name = "size", .kind = TunableKind::bytes, .fallback = "0"}};
  Settings one{kSize};
  if (Result<> set = one.set("size", text, SettingSource::command_line, "--why"); !set) {
    return set.error();
  }
  return static_cast<std::uint64_t>(one.number(kSize[0]));
}

Result<json> explain_way(const std::vector<std::string>& question, const Settings& settings) {
  if (question.size() != 3 || question[0] != "net") {
    return Error{Errc::invalid_argument, "--why takes: net PEER SIZE, as in --why net tcp 64K"};
  }
  Result<std::uint64_t> bytes = read_size(question[2]);
  if (!bytes) {
    return bytes.error();
  }
  Result<std::vector<Way>> all = known_ways(settings);
  if (!all) {
    return all.error();
  }
  const std::string& asked = question[1];
  Result<Peer> peer = find_peer(asked, all.value());
  if (!peer) {
    return peer.error();
  }
  const auto tunables = net::transport_tunables();
  const auto chosen = std::ranges::find(tunables, "net_strategy", &Tunable::name);
  const std::string name{settings.text(*chosen)};
  Result<const net::Strategy*> strategy = net::find_strategy(name);
  if (!strategy) {
    return strategy.error();
  }
  json answer = {{"peer", asked}, {"bytes", bytes.value()}, {"strategy", name}};
  answer["ways"] = json::array();
  for (const Way& way : all.value()) {
    if (is_asked(way, asked)) {
      answer["ways"].push_back({{"driver", way.driver},
                                {"to", way.to},
                                {"figures", way.from},
                                {"protocol", way.model.explain(bytes.value())},
                                {"forming", strategy.value()->explain(
                                                {way.packet_bytes_max, way.model.share_bytes()})}});
    }
  }
  Result<std::vector<net::DriverChoice>> drivers = drivers_of(asked, settings);
  if (!drivers) {
    return drivers.error();
  }
  Result<json> link =
      explain_link(drivers.value(), peer.value(), *strategy.value(), bytes.value(), settings);
  if (!link) {
    return link.error();
  }
  answer["link"] = link.value();
  return answer;
}

void print_why(const json& why) {
  const auto text = [](const json& of, const char* key) { return of[key].get<std::string>(); };
  fmt::print("{} bytes to {}, strategy {}\n", why["bytes"].get<std::uint64_t>(), text(why, "peer"),
             text(why, "strategy"));
  for (const json& way : why["ways"]) {
    fmt::print("\n{} to {} ({})\n  {}\n  {}\n", text(way, "driver"), text(way, "to"),
               text(way, "figures"), text(way, "protocol"), text(way, "forming"));
  }
  const json& link = why["link"];
  if (!link["is_link"].get<bool>()) {
    fmt::print("\nNo link ({}: {})\n", text(link, "drivers"), text(link, "why"));
    return;
  }
  fmt::print("\nA link ({}: {})\n  {}\n  {}\n", text(link, "drivers"), text(link, "why"),
             text(link, "protocol"), text(link, "choice"));
  for (const json& rail : link["rails"]) {
    fmt::print("  {:<16} {:>12} bytes, done after {} ns ({} ns and {} ps/byte, {})\n",
               text(rail, "driver"), rail["bytes"].get<std::uint64_t>(),
               rail["ns"].get<std::uint64_t>(), rail["latency_ns"].get<std::uint64_t>(),
               rail["ps_per_byte"].get<std::uint64_t>(), text(rail, "figures"));
  }
}

}  // namespace sterna::cli
