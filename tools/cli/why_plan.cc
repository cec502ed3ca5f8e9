// The plan of a way: link or one rail, their cost models, and how rails would share the bytes.
#include "tools/cli/why_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "net/transfer/lending.h"
#include "net/transport.h"

namespace sterna::cli {
namespace {

using nlohmann::json;

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
  std::vector<net::RailCosts> rails;
  for (const std::uint16_t i : plan.rails) {
    const net::Capabilities& profile = ways[i].capabilities;
    const net::CostsEntry* const known = find_known(peer, fmt::format("link({})", ways[i].name));
    net::RailCosts costs{.ps_per_byte = 1'000'000 / std::max(profile.bandwidth_mb_per_s, 1U),
                         .packet_ns = profile.packet_ns,
                         .latency_ns = profile.latency_ns};
    if (known != nullptr) {
      costs = {.ps_per_byte = std::max(known->costs.packet_ps_per_byte, 1U),
               .packet_ns = known->costs.packet_ns,
               .latency_ns = known->costs.latency_ns};
    }
    rails.push_back(costs);
  }
  return net::plan_cut(rails);
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

std::string tell_protocol(const net::CostModel& model, bool can_lend, std::uint64_t bytes) {
  return model.explain(bytes, can_lend ? net::lent_from_bytes(model) : net::CostModel::kNever);
}

/// Adds what only links have.
Result<> explain_link(const std::vector<net::WayDriver>& ways, const net::WayPlan& plan,
                      const std::string& names, const WhyQuestion& question, json& link) {
  const auto& [peer, strategy, bytes, settings] = question;
  std::vector<net::Capabilities> each;
  std::vector<net::WayDriver> its;
  for (const std::uint16_t i : plan.rails) {
    each.push_back(ways[i].capabilities);
    its.push_back(ways[i]);
  }
  net::Capabilities whole = net::link_capabilities(each);
  Result<net::LinkWishes> wishes = net::read_link_wishes(settings);
  whole.can_lend = whole.can_lend && wishes && !wishes.value().has_sums;
  Result<net::CostModel> model = net::profile_model(whole, settings, plan.rails.size());
  if (!model) {
    return model.error();
  }
  if (const net::CostsEntry* const known = find_known(peer, fmt::format("link({})", names))) {
    model.value().take(known->costs, net::CostOrigin::cached);
  }
  const std::uint32_t packet_bytes =
      cut_of(ways, plan, peer).packet_bytes(bytes, whole.packet_bytes_max);
  std::vector<net::RailView> rails;
  std::vector<std::string> figures(plan.rails.size());
  for (std::size_t i = 0; i < plan.rails.size(); ++i) {
    rails.push_back(view_of(ways[plan.rails[i]], peer, packet_bytes, figures[i]));
  }
  link["protocol"] = tell_protocol(model.value(), whole.can_lend, bytes);
  link["forming"] = strategy.explain({whole.packet_bytes_max, model.value().share_bytes()});
  link["choice"] = strategy.explain_rail(
      rails, static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, packet_bytes)));
  link["copies"] = net::tell_link_copies(its, whole.can_lend);
  link["rails"] = shares_of(rails, packet_bytes, strategy, bytes);
  for (std::size_t i = 0; i < plan.rails.size(); ++i) {
    link["rails"][i]["driver"] = ways[plan.rails[i]].name;
    link["rails"][i]["figures"] = figures[i];
  }
  return Done{};
}

}  // namespace

std::string age_of(std::uint64_t seconds) {
  return seconds < 120 ? fmt::format("measured {} s ago", seconds)
                       : fmt::format("measured {} min ago", seconds / 60);
}

KnownDriver know_driver(const net::DriverChoice& choice, const WhyQuestion& question) {
  net::ProbedDriver probed = net::probe_driver(choice, {.settings = &question.settings});
  const net::Capabilities& profile = choice.entry->profile;
  const bool is_of_one_host = profile.direct_mb_per_s != 0 || choice.entry->name == "unix";
  return {.way = {.name = std::string{choice.full_text()},
                  .capabilities = probed.capabilities,
                  .reaches = question.peer.is_here || !is_of_one_host},
          .absent = std::move(probed.absent)};
}

Result<json> describe_way(const net::WayDriver& driver, const net::CostsEntry* known,
                          const WhyQuestion& question) {
  Result<net::CostModel> model = net::profile_model(driver.capabilities, question.settings);
  if (!model) {
    return model.error();
  }
  json way = {{"driver", driver.name}, {"to", "any"}, {"figures", "profile of the driver"}};
  std::uint32_t packet_bytes_max = driver.capabilities.packet_bytes_max;
  if (known != nullptr) {
    model.value().take(known->costs, net::CostOrigin::cached);
    packet_bytes_max = known->packet_bytes_max;
    way["to"] = known->host.empty() ? "this host" : known->host;
    way["figures"] = age_of(question.peer.now_s - known->at_s);
  }
  way["protocol"] = tell_protocol(model.value(), driver.capabilities.can_lend, question.bytes);
  way["forming"] = question.strategy.explain({packet_bytes_max, model.value().share_bytes()});
  return way;
}

Result<Plan> explain_plan(const std::vector<net::DriverChoice>& drivers,
                          const WhyQuestion& question) {
  Result<net::LinkWishes> wishes = net::read_link_wishes(question.settings);
  if (!wishes) {
    return wishes.error();
  }
  std::vector<net::WayDriver> ways;
  std::string names;
  json absent = json::array();
  for (const net::DriverChoice& choice : drivers) {
    const KnownDriver driver = know_driver(choice, question);
    if (!driver.absent.empty()) {
      absent.push_back(driver.absent);
    }
    ways.push_back(driver.way);
    names += (names.empty() ? "" : "+") + driver.way.name;
  }
  const net::WayPlan plan = net::plan_way(ways, wishes.value());
  Plan told{.link = {{"drivers", names},
                     {"is_link", plan.is_link},
                     {"why", plan.why},
                     {"absent", std::move(absent)}},
            .way = nullptr};
  if (plan.is_link) {
    Result<> explained = explain_link(ways, plan, names, question, told.link);
    return explained ? Result<Plan>{std::move(told)} : explained.error();
  }
  if (plan.rails.empty()) {
    return told;
  }
  const net::WayDriver& rail = ways[plan.rails.front()];
  Result<json> way = describe_way(rail, find_known(question.peer, rail.name), question);
  if (!way) {
    return way.error();
  }
  told.link["rail"] = rail.name;
  told.way = std::move(way.value());
  return told;
}

}  // namespace sterna::cli
