// The answer of a node as JSON and as text.
#include "launch/way_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/json_text.h"
#include "net/costs/cost.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

json describe_link(const net::WayExplanation& way) {
  json rails = json::array();
  for (const net::RailShare& rail : way.rails) {
    rails.push_back({{"driver", rail.name},
                     {"state", rail.state},
                     {"figures", rail.is_measured ? "measured lately" : "profile or sample"},
                     {"latency_ns", rail.latency_ns},
                     {"ps_per_byte", rail.ps_per_byte},
                     {"in_flight_bytes", rail.in_flight_bytes},
                     {"bytes", rail.bytes},
                     {"ns", rail.ns}});
  }
  json link{{"is_link", way.driver.starts_with("link(")}, {"rails", std::move(rails)}};
  if (!way.choice.empty()) {
    link["choice"] = way.choice;
  }
  if (!way.copies.empty()) {
    link["copies"] = way.copies;
  }
  return link;
}

std::string thresholds_text(const json& thresholds) {
  std::string text;
  for (const auto& [name, bytes] : thresholds.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        bytes.is_null() ? "never" : json_text(bytes));
  }
  return text;
}

std::string cost_text(const json& cost) {
  const auto corrections = cost["corrections"].get<std::uint32_t>();
  return fmt::format(
      "  {:<20} {:>12.1f}  {}{}\n", cost["name"].get<std::string>(), cost["value"].get<double>(),
      cost["origin"].get<std::string>(),
      corrections == 0 ? "" : fmt::format(", corrected by {} messages", corrections));
}

std::string rail_text(const json& rail) {
  return fmt::format(
      "  {:<16} {:>12} bytes, done after {} ns ({} ns and {} ps/byte, {}; {}, {} bytes on their "
      "way)\n",
      rail["driver"].get<std::string>(), rail["bytes"].get<std::uint64_t>(),
      rail["ns"].get<std::uint64_t>(), rail["latency_ns"].get<std::uint64_t>(),
      rail["ps_per_byte"].get<std::uint64_t>(), rail["figures"].get<std::string>(),
      rail["state"].get<std::string>(), rail["in_flight_bytes"].get<std::uint64_t>());
}

std::string link_text(const json& link) {
  if (!link["is_link"].get<bool>()) {
    return "No link: one rail\n";
  }
  std::string text = link["rails"].empty()
                         ? "A link, over which nothing was sent yet: its rails are not open\n"
                         : fmt::format("A link: {}\n", link.value("choice", ""));
  for (const json& rail : link["rails"]) {
    text += rail_text(rail);
  }
  if (const std::string copies = link.value("copies", ""); !copies.empty()) {
    text += fmt::format("  {}\n", copies);
  }
  return text;
}

}  // namespace

json describe_way(const net::WayExplanation& way) {
  json described{{"peer_node", way.node},
                 {"bytes", way.bytes},
                 {"is_here", way.is_here},
                 {"is_lost", way.is_lost},
                 {"protocol", way.protocol}};
  if (way.is_here) {
    return described;
  }
  described["driver"] = way.driver;
  described["strategy"] = way.strategy;
  described["forming"] = way.forming;
  described["thresholds"] = json::object();
  for (const net::Threshold& threshold : way.thresholds) {
    described["thresholds"][threshold.name] =
        threshold.bytes == net::CostModel::kNever ? json{} : json(threshold.bytes);
  }
  described["costs"] = json::array();
  for (const net::LearntCost& cost : way.costs) {
    described["costs"].push_back({{"name", cost.name},
                                  {"value", cost.value},
                                  {"origin", cost.origin},
                                  {"corrections", cost.corrections}});
  }
  described["link"] = describe_link(way);
  return described;
}

std::string way_text(const json& way) {
  std::string text =
      fmt::format("{} bytes from rank {} on node {} to rank {} on node {}, now\n",
                  way["bytes"].get<std::uint64_t>(), way["from_rank"].get<std::uint32_t>(),
                  way["from_node"].get<std::uint32_t>(), way["peer_rank"].get<std::uint32_t>(),
                  way["peer_node"].get<std::uint32_t>());
  if (way["is_lost"].get<bool>()) {
    text += "The node is lost: nothing goes there any more; before it was so:\n";
  }
  if (way["is_here"].get<bool>()) {
    return text + fmt::format("  {}\n", way["protocol"].get<std::string>());
  }
  text += fmt::format("\n{}, strategy {}\n  {}\n  {}\n  thresholds: {}\n\nWhat it costs:\n",
                      way["driver"].get<std::string>(), way["strategy"].get<std::string>(),
                      way["protocol"].get<std::string>(), way["forming"].get<std::string>(),
                      thresholds_text(way["thresholds"]));
  for (const json& cost : way["costs"]) {
    text += cost_text(cost);
  }
  return text + "\n" + link_text(way["link"]);
}

}  // namespace sterna::launch
