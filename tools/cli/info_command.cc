// `sterna info`: what this installation is, what it can do, and every setting with its origin.
#include <array>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "balance/policy.h"
#include "base/clock.h"
#include "base/tunable.h"
#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/run.h"
#include "launch/way_report.h"
#include "mpi/api/implemented.h"
#include "net/driver.h"
#include "net/drivers/choice.h"
#include "net/opening/poll_place.h"
#include "net/packets/strategy.h"
#include "net/transport.h"
#include "runtime/settings.h"
#include "sched/loop_chunks.h"
#include "sched/policy.h"
#include "tools/cli/command.h"
#include "tools/cli/why.h"

namespace sterna::cli {
namespace {

using nlohmann::json;

template <typename Entries>
json names_of(const Entries& entries) {
  json list = json::array();
  for (const auto* entry : entries) {
    list.push_back({{"name", entry->name}, {"summary", entry->summary}});
  }
  return list;
}

/// An empty list of drivers leaves out what is to be named.
json list_drivers() {
  json list = names_of(net::builtin_drivers());
  std::size_t i = 0;
  for (const net::DriverEntry* const driver : net::builtin_drivers()) {
    list[i++]["on_request"] = driver->is_on_request;
  }
  return list;
}

json list_loops() {
  json list = json::array();
  for (std::uint32_t i = 0; i < sched::kLoopSchemeCount; ++i) {
    const auto scheme = static_cast<sched::LoopScheme>(i);
    list.push_back({{"name", to_string(scheme)}, {"summary", summary_of(scheme)}});
  }
  return list;
}

json build_facts() {
  return {{"version", STERNA_VERSION},
          {"build_type", STERNA_BUILD_TYPE},
#if defined(__clang__)
          {"compiler", "clang " __clang_version__},
#else
          {"compiler", "g++ " __VERSION__},
#endif
#if defined(__x86_64__)
          {"processor", "x86-64"},
#elif defined(__aarch64__)
          {"processor", "aarch64"},
#else
          {"processor", "other"},
#endif
          {"drivers", list_drivers()},
          {"decorators", names_of(net::builtin_decorators())},
          {"strategies", names_of(net::builtin_strategies())},
          {"policies", names_of(sched::builtin_policies())},
          {"loops", list_loops()},
          {"balancers", names_of(balance::builtin_policies())}};
}

json list_settings(const Settings& settings) {
  json list = json::array();
  settings.for_each([&](const SettingRow& row) {
    list.push_back({{"name", row.tunable->name},
                    {"value", row.value},
                    {"source", to_string(row.source)},
                    {"place", row.place},
                    {"default", row.tunable->fallback},
                    {"allowed", allowed_values(*row.tunable)},
                    {"help", row.tunable->help}});
  });
  return list;
}

json list_functions() {
  json implemented = json::array();
  json unsupported = json::array();
  for (const mpi::FunctionEntry& function : mpi::functions()) {
    (function.is_implemented ? implemented : unsupported).push_back(function.name);
  }
  return {{"implemented", implemented}, {"unsupported", unsupported}};
}

/// Each network that a job would open here, by itself: how many of them it needs its hosts say.
json list_polling(const Settings& settings) {
  const std::string_view wanted = settings.text(net::kPollAt);
  json list = json::array();
  auto choices = net::choose_drivers(settings.text(runtime::kDrivers));
  if (!choices) {
    return list;  // The settings are wrong: loading them has said so.
  }
  const net::PollMachine machine =
      net::this_machine(net::wants_numa_nodes(wanted, choices.value()));
  for (const net::DriverChoice& choice : choices.value()) {
    const net::PollPlace place =
        net::find_poll_place(net::poll_at(wanted, choice), choice,
                             {.settings = &settings, .instance = choice.instance}, machine);
    list.push_back({{"name", choice.text()}, {"summary", place.text}});
  }
  return list;
}

json describe_way(const net::CostModel& model) {
  json figures = json::object();
  for (const net::CostModel::Row& row : model.figures()) {
    if (model.is_direct() || !std::string_view{row.name}.starts_with("direct")) {
      figures[row.name] = {{"value", row.figure.value}, {"from", to_string(row.figure.origin)}};
    }
  }
  json way = {{"figures", figures},
              {"eager_bytes", model.eager_bytes()},
              {"share_bytes", model.share_bytes()},
              {"summary", model.describe()}};
  way["direct_from_bytes"] = model.direct_from_bytes() == net::CostModel::kNever
                                 ? json{}
                                 : json{model.direct_from_bytes()};
  return way;
}

/// Each driver as its profile has it, then the ways that earlier jobs have measured.
json list_costs(const Settings& settings) {
  const std::string path = net::costs_path();
  const std::string machine = net::costs_machine();
  const std::uint64_t now_s = now_ns() / 1'000'000'000;
  json list = json::array();
  Result<std::vector<net::CostsEntry>> known = net::read_costs(path, machine, now_s);
  for (const net::DriverEntry* const driver : net::builtin_drivers()) {
    Result<net::CostModel> profile = net::profile_model(driver->profile, settings);
    if (!profile) {
      continue;  // The settings are wrong: loading them has said so.
    }
    json row = describe_way(profile.value());
    row["driver"] = driver->name;
    row["way"] = "any";
    list.push_back(std::move(row));
    if (!known) {
      continue;
    }
    for (const net::CostsEntry& entry : known.value()) {
      if (entry.driver == driver->name) {
        net::CostModel model = profile.value();
        model.take(entry.costs, net::CostOrigin::cached);
        json way = describe_way(model);
        way["driver"] = entry.driver;
        way["way"] = entry.host.empty() ? "this host" : entry.host;
        way["packet_bytes_max"] = entry.packet_bytes_max;
        way["seconds_ago"] = now_s - entry.at_s;
        list.push_back(std::move(way));
      }
    }
  }
  return {{"file", path},
          {"machine", machine},
          {"state", known ? "read" : known.error().text},
          {"ways", std::move(list)}};
}

void print_costs(const json& costs) {
  for (const json& way : costs["ways"]) {
    fmt::print("{:<6} {:<12} {}\n", way["driver"].get<std::string>(), way["way"].get<std::string>(),
               way["summary"].get<std::string>());
  }
  fmt::print("{}: {}\n", costs["file"].get<std::string>(), costs["state"].get<std::string>());
}

void print_name(const char* before, const json& entry) {
  fmt::print("{}{:<12} {}{}\n", before, entry["name"].get<std::string>(),
             entry["summary"].get<std::string>(),
             entry.value("on_request", false) ? " (on request)" : "");
}

void print_names(const char* title, const json& list) {
  fmt::print("\n{}\n", title);
  for (const json& entry : list) {
    print_name("  ", entry);
  }
}

void print_info(const json& info) {
  fmt::print("Sterna {} ({}, {}, {})\n", info["version"].get<std::string>(),
             info["build_type"].get<std::string>(), info["compiler"].get<std::string>(),
             info["processor"].get<std::string>());
  print_names("Networks (--drivers; on request: only those that it names)", info["drivers"]);
  print_names("What can be put around a network, as drop(tcp)", info["decorators"]);
  print_names("Where they are polled (net_poll_at)", info["polling"]);
  print_names("Strategies of sending", info["strategies"]);
  print_names("Scheduling policies", info["policies"]);
  print_names("Schemes of parallel loops (loop.h)", info["loops"]);
  print_names("Balancers (--balance)", info["balancers"]);
  fmt::print("\nSettings (environment STERNA_<NAME>, sterna run --set name=value)\n");
  for (const json& row : info["settings"]) {
    fmt::print("  {:<26} {:<12} from {}\n      {}: {}\n", row["name"].get<std::string>(),
               row["value"].get<std::string>().empty() ? "\"\"" : row["value"].get<std::string>(),
               row["place"].get<std::string>(), row["allowed"].get<std::string>(),
               row["help"].get<std::string>());
  }
}

void print_functions(const json& functions) {
  for (const char* kind : {"implemented", "unsupported"}) {
    fmt::print("{}: {} functions\n", kind, functions[kind].size());
    for (const json& name : functions[kind]) {
      fmt::print("  {}\n", name.get<std::string>());
    }
  }
}

/// A part of what there is, that an option asks for alone.
struct Section {
  const char* option;
  const char* key;  // In the JSON.
  const char* help;
};
constexpr Section kSections[] = {
    {"--drivers", "drivers", "Only the networks, and which are used on request only"},
    {"--decorators", "decorators", "Only what can be put around a network, as drop(tcp)"},
    {"--polling", "polling", "Only where the networks are polled (net_poll_at)"},
    {"--strategies", "strategies", "Only the strategies of sending"},
    {"--policies", "policies", "Only the scheduling policies"},
    {"--loops", "loops", "Only the schemes of parallel loops"},
    {"--balancers", "balancers", "Only the balancers"},
    {"--options", "settings", "Only the settings, with their values"},
    {"--costs", "costs",
     "What the networks are taken to cost (profiles, and what jobs have measured here), and what "
     "follows"},
    {"--mpi", "mpi", "The functions of MPI: implemented, and not yet"},
};

json section_of(std::string_view key, const Settings& settings) {
  if (key == "mpi") {
    return list_functions();
  }
  if (key == "costs") {
    return list_costs(settings);
  }
  if (key == "polling") {
    return list_polling(settings);
  }
  return key == "settings" ? list_settings(settings) : build_facts().at(std::string{key});
}

/// One line an entry, without titles: for people, and for scripts.
void print_section(std::string_view key, const json& section) {
  if (key == "mpi") {
    print_functions(section);
    return;
  }
  if (key == "costs") {
    print_costs(section);
    return;
  }
  for (const json& entry : section) {
    if (key == "settings") {
      fmt::print("{:<22} {} ({}; {})\n", entry["name"].get<std::string>(),
                 entry["help"].get<std::string>(), entry["allowed"].get<std::string>(),
                 entry["value"].get<std::string>().empty()
                     ? "empty"
                     : "now " + entry["value"].get<std::string>());
    } else {
      print_name("", entry);
    }
  }
}

int print_all(bool as_json, const Settings& settings) {
  json info = build_facts();
  info["polling"] = list_polling(settings);
  info["settings"] = list_settings(settings);
  if (as_json) {
    fmt::print("{}\n", launch::json_text(info, 1));
  } else {
    print_info(info);
  }
  return 0;
}

/// One section: its value alone. Several: an object with their keys, or one text after the other.
int print_sections(const std::vector<const Section*>& wanted, bool as_json,
                   const Settings& settings) {
  json all = json::object();
  for (const Section* const section : wanted) {
    all[section->key] = section_of(section->key, settings);
  }
  if (as_json) {
    fmt::print("{}\n", launch::json_text(wanted.size() == 1 ? all[wanted.front()->key] : all, 1));
    return 0;
  }
  for (const Section* const section : wanted) {
    if (wanted.size() > 1) {
      fmt::print("{}{}:\n", section == wanted.front() ? "" : "\n", section->key);
    }
    print_section(section->key, all[section->key]);
  }
  return 0;
}

struct Why {
  std::vector<std::string> question;
  std::optional<unsigned> job;  // Which is asked; none: what is known without one.
  std::optional<std::uint32_t> from;
};

int answer_why(const Why& asked, bool as_json, const Settings& settings) {
  Result<json> why = asked.job ? explain_running(asked.question, *asked.job, asked.from)
                                     : explain_way(asked.question, settings);
  if (!why) {
    launch::print_error("sterna info", why.error().text);
    return why.error().code == Errc::unreachable ? 1 : launch::kUsageExitCode;
  }
  if (as_json) {
    fmt::print("{}\n", launch::json_text(why.value(), 1));
  } else if (asked.job) {
    fmt::print("{}", launch::way_text(why.value()));
  } else {
    print_why(why.value());
  }
  return 0;
}

}  // namespace

int info_command(std::span<char* const> arguments) {
  bool as_json = false;
  std::array<bool, std::size(kSections)> is_wanted{};
  Why why;
  CLI::App app{
      "Prints the version, what is built in, and every setting with its value and where it\n"
      "comes from; or some of that only.",
      "sterna info"};
  app.add_flag("--json", as_json, "As JSON");
  for (std::size_t i = 0; i < is_wanted.size(); ++i) {
    app.add_flag(kSections[i].option, is_wanted[i], kSections[i].help);
  }
  CLI::Option* const question =
      app.add_option("--why", why.question,
                     "How a message would go, and why: net, a driver or a host (as --costs names "
                     "them), a size: --why net tcp 64K; with --job: net, a rank, a size")
          ->type_name("net PEER SIZE")
          ->expected(3);
  CLI::Option* const job =
      app.add_option("--job", why.job,
                     "Number of a running job, as sterna ps prints it: what it would do now, by "
                     "what it has learnt: --why net 1 64K --job 4242")
          ->needs(question);
  app.add_option("--from", why.from, "The rank that would send; else 0, or 1 to rank 0")
      ->needs(job);
  if (const std::optional<int> exit_code = launch::parse(app, arguments)) {
    return *exit_code;
  }
  Settings settings{runtime::all_tunables()};
  if (Result<> loaded = settings.load(environ); !loaded) {
    launch::print_error("sterna info", loaded.error().text);
    return launch::kUsageExitCode;
  }
  if (!why.question.empty()) {
    return answer_why(why, as_json, settings);
  }
  std::vector<const Section*> wanted;
  for (std::size_t i = 0; i < is_wanted.size(); ++i) {
    if (is_wanted[i]) {
      wanted.push_back(&kSections[i]);
    }
  }
  return wanted.empty() ? print_all(as_json, settings) : print_sections(wanted, as_json, settings);
}

}  // namespace sterna::cli
