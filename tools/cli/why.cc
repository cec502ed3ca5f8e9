// The answer to `sterna info --why`: the cost model of each way to the peer, the strategy's reason,
// and where there are several ways how they would share the bytes as rails.
#include "tools/cli/why.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "net/costs/costs_file.h"
#include "net/driver.h"
#include "net/packets/strategy.h"
#include "net/transport.h"

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

double figure_of(const net::CostModel& model, std::string_view name) {
  for (const net::CostModel::Row& row : model.figures()) {
    if (row.name == name) {
      return row.figure.value;
    }
  }
  return 0;
}

/// The ways as rails of one link: the strategy is asked for each packet of the message in turn.
json share_out(const std::vector<Way>& ways, const net::Strategy& strategy, std::uint64_t bytes) {
  std::vector<net::RailView> rails;
  std::uint32_t packet_bytes = ~std::uint32_t{0};
  for (const Way& way : ways) {
    rails.push_back(
        {.has_room = true,
         .latency_ns = static_cast<std::uint64_t>(figure_of(way.model, "latency_ns")),
         .profile_ps_per_byte = std::max<std::uint64_t>(
             static_cast<std::uint64_t>(figure_of(way.model, "packet_ps_per_byte")), 1)});
    packet_bytes = std::min(packet_bytes, way.packet_bytes_max);
  }
  for (std::uint64_t left = bytes; left != 0;) {
    const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, packet_bytes));
    const std::uint32_t rail = strategy.choose_rail(rails, part);
    if (rail >= rails.size()) {
      break;
    }
    rails[rail].sent_bytes += part;
    rails[rail].in_flight_bytes += part;
    left -= part;
  }
  json shares = json::array();
  for (std::size_t i = 0; i < rails.size(); ++i) {
    shares.push_back({{"driver", ways[i].driver},
                      {"bytes", rails[i].sent_bytes},
                      {"ns", rails[i].sent_bytes == 0
                                 ? 0
                                 : rails[i].latency_ns +
                                       rails[i].sent_bytes * rails[i].profile_ps_per_byte / 1000}});
  }
  return shares;
}

Result<std::uint64_t> read_size(const std::string& text) {
  static constexpr Tunable kSize[] = {
      {.name = "size", .kind = TunableKind::bytes, .fallback = "0"}};
  Settings one{kSize};
  if (Result<> set = one.set("size", text, SettingSource::command_line, "--why"); !set) {
    return set.error();
  }
  return static_cast<std::uint64_t>(one.number(kSize[0]));
}

}  // namespace

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
  const std::string& peer = question[1];
  std::vector<Way> ways;
  std::string names;
  for (const Way& way : all.value()) {
    if (peer == way.to || peer == way.driver ||
        peer == way.driver.substr(0, way.driver.find('@'))) {
      ways.push_back(way);
    }
    for (const std::string& name : {way.to, way.driver}) {
      if (fmt::format(", {},", names).find(fmt::format(", {},", name)) == std::string::npos) {
        names += names.empty() ? name : ", " + name;
      }
    }
  }
  if (ways.empty()) {
    return Error{Errc::invalid_argument,
                 fmt::format("no way to '{}' is known; --why net takes one of: {} (hosts are known "
                             "once a job has run to them, see sterna info --costs)",
                             peer, names)};
  }
  const auto tunables = net::transport_tunables();
  const auto chosen = std::ranges::find(tunables, "net_strategy", &Tunable::name);
  const std::string name{settings.text(*chosen)};
  Result<const net::Strategy*> strategy = net::find_strategy(name);
  if (!strategy) {
    return strategy.error();
  }
  json answer = {{"peer", peer}, {"bytes", bytes.value()}, {"strategy", name}};
  answer["ways"] = json::array();
  for (const Way& way : ways) {
    answer["ways"].push_back(
        {{"driver", way.driver},
         {"to", way.to},
         {"figures", way.from},
         {"protocol", way.model.explain(bytes.value())},
         {"forming", strategy.value()->explain({way.packet_bytes_max, way.model.share_bytes()})}});
  }
  std::erase_if(ways, [](const Way& way) { return way.to == "any"; });
  if (ways.size() > 1 && bytes.value() != 0) {
    answer["as_rails"] = share_out(ways, *strategy.value(), bytes.value());
  }
  return answer;
}

void print_why(const json& why) {
  fmt::print("{} bytes to {}, strategy {}\n", why["bytes"].get<std::uint64_t>(),
             why["peer"].get<std::string>(), why["strategy"].get<std::string>());
  for (const json& way : why["ways"]) {
    fmt::print("\n{} to {} ({})\n  {}\n  {}\n", way["driver"].get<std::string>(),
               way["to"].get<std::string>(), way["figures"].get<std::string>(),
               way["protocol"].get<std::string>(), way["forming"].get<std::string>());
  }
  if (why.contains("as_rails")) {
    fmt::print("\nas rails of one link (--drivers with all of them, net_rails=any)\n");
    for (const json& rail : why["as_rails"]) {
      fmt::print("  {:<12} {:>12} bytes, done after {} ns\n", rail["driver"].get<std::string>(),
                 rail["bytes"].get<std::uint64_t>(), rail["ns"].get<std::uint64_t>());
    }
  }
}

}  // namespace sterna::cli
