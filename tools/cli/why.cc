// The answer to `sterna info --why`: each way that is asked about, with its cost model and the
// strategy's reason, and what a job would make of its drivers.
#include "tools/cli/why.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/clock.h"
#include "net/costs/costs_file.h"
#include "net/driver.h"
#include "net/transport.h"
#include "runtime/settings.h"
#include "tools/cli/why_plan.h"

namespace sterna::cli {
namespace {

using nlohmann::json;

struct Way {
  net::DriverChoice choice;
  std::string driver;
  std::string to;                         // A host, or "any": nothing was measured.
  std::optional<net::CostsEntry> known{};  // As it was measured.
};

std::vector<Way> known_ways() {
  const std::uint64_t now_s = now_ns() / 1'000'000'000;
  Result<std::vector<net::CostsEntry>> known =
      net::read_costs(net::costs_path(), net::costs_machine(), now_s);
  std::vector<Way> ways;
  for (const net::DriverEntry* const driver : net::builtin_drivers()) {
    ways.push_back({{.entry = driver}, std::string{driver->name}, "any"});
    if (!known) {
      continue;
    }
    for (const net::CostsEntry& entry : known.value()) {
      Result<std::vector<net::DriverChoice>> choice = net::choose_drivers(entry.driver);
      if (choice && choice.value().size() == 1 && choice.value().front().entry == driver) {
        ways.push_back({choice.value().front(), entry.driver,
                        entry.host.empty() ? "this host" : entry.host, entry});
      }
    }
  }
  return ways;
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

/// What is known of a way without opening its driver. One that merely might be used is not even
/// looked for: libraries that it needs stay where they are.
net::WayDriver driver_of(const Way& way, const WhyQuestion& question) {
  if (way.to != "any") {
    return know_driver(way.choice, question).way;
  }
  return {way.driver, way.choice.entry->profile, true};
}

/// That which the plan uses, and the others that are asked about.
Result<json> explain_ways(const std::vector<Way>& all, const std::string& asked,
                          const json& used, const WhyQuestion& question) {
  json ways = json::array();
  if (!used.is_null()) {
    ways.push_back(used);
  }
  for (const Way& way : all) {
    const bool is_used =
        !used.is_null() && used["driver"] == way.driver && used["to"] == way.to;
    if (!is_asked(way, asked) || is_used) {
      continue;
    }
    Result<json> described = describe_way(driver_of(way, question),
                                          way.known ? &*way.known : nullptr, question);
    if (!described) {
      return described;
    }
    ways.push_back(std::move(described.value()));
  }
  return ways;
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
  const std::vector<Way> all = known_ways();
  const std::string& asked = question[1];
  Result<Peer> peer = find_peer(asked, all);
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
  Result<std::vector<net::DriverChoice>> drivers = drivers_of(asked, settings);
  if (!drivers) {
    return drivers.error();
  }
  const WhyQuestion why{peer.value(), *strategy.value(), bytes.value(), settings};
  Result<Plan> plan = explain_plan(drivers.value(), why);
  if (!plan) {
    return plan.error();
  }
  Result<json> ways = explain_ways(all, asked, plan.value().way, why);
  if (!ways) {
    return ways.error();
  }
  return json{{"peer", asked},
              {"bytes", bytes.value()},
              {"strategy", name},
              {"ways", std::move(ways.value())},
              {"link", std::move(plan.value().link)}};
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
  if (link["is_link"].get<bool>()) {
    fmt::print("\nA link ({}: {})\n  {}\n  {}\n  {}\n  {}\n", text(link, "drivers"),
               text(link, "why"), text(link, "protocol"), text(link, "forming"),
               text(link, "choice"), text(link, "copies"));
    for (const json& rail : link["rails"]) {
      fmt::print("  {:<16} {:>12} bytes, done after {} ns ({} ns and {} ps/byte, {})\n",
                 text(rail, "driver"), rail["bytes"].get<std::uint64_t>(),
                 rail["ns"].get<std::uint64_t>(), rail["latency_ns"].get<std::uint64_t>(),
                 rail["ps_per_byte"].get<std::uint64_t>(), text(rail, "figures"));
    }
  } else {
    fmt::print("\nNo link ({}: {}){}\n", text(link, "drivers"), text(link, "why"),
               link.contains("rail") ? ": a job takes " + text(link, "rail") : "");
  }
  for (const json& absent : link["absent"]) {
    fmt::print("  not on this host: {}\n", absent.get<std::string>());
  }
}

}  // namespace sterna::cli
