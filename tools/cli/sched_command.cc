// `sterna sched simulate`: what policies make of a workload on a machine that need not exist.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/syscall.h"
#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/run.h"
#include "sched/simulator.h"
#include "tools/cli/command.h"

namespace sterna::cli {
namespace {

constexpr const char* kCommand = "sterna sched";
constexpr std::uint32_t kProcessorsMax = 1024;
constexpr std::uint64_t kThreadsMax = 1'000'000;  // Some hundred bytes each.

struct SimulateOptions {
  std::string topology = "node:4 core:4 pu:1";
  std::string workload = "conduction";
  std::vector<std::string> policies;
  std::vector<std::string> schemes;
  std::uint32_t tasks = 4;
  std::uint32_t threads = 4;
  double quantum_ms = 10;
  std::uint64_t seed = 1;
  bool as_json = false;
};

Result<sched::Workload> find_workload(const SimulateOptions& options, std::uint32_t processors) {
  if (options.workload == "conduction") {
    return sched::conduction(processors, std::min(options.threads, processors), false);
  }
  if (options.workload == "lu-tasks") {
    if (const std::uint64_t threads = std::uint64_t{options.tasks} * options.threads;
        threads > kThreadsMax) {
      return Error{Errc::invalid_argument,
                   fmt::format("--tasks: {} tasks of {} threads are {} threads; {} are the most",
                               options.tasks, options.threads, threads, kThreadsMax)};
    }
    return sched::lu_tasks(options.tasks, options.threads);
  }
  set_last_error_number(0);
  std::ifstream file{options.workload};
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    const int number = last_error_number();
    return Error{
        Errc::invalid_argument,
        fmt::format("no workload is built in or can be read from a file as \"{}\" ({}); "
                    "built in are conduction, lu-tasks and loop, docs/guide/policies.md says "
                    "how to write a file",
                    options.workload,
                    number != 0 ? std::generic_category().message(number) : "it is empty")};
  }
  return sched::parse_workload(text.str(), options.workload);
}

/// Before the first line is printed: what cannot be simulated is refused alone.
Result<> check_policies(const SimulateOptions& options, const topology::Topology& machine) {
  for (const std::string& policy : options.policies) {
    auto made = sched::make_policy(policy);
    if (!made) {
      return made.error();
    }
    if (Result<> prepared = made.value()->prepare(machine); !prepared) {
      return prepared;
    }
  }
  return Done{};
}

/// The workload, or, of a loop, one for each scheme, which the name then says.
Result<std::vector<sched::Workload>> find_workloads(const SimulateOptions& options,
                                                    std::uint32_t processors) {
  if (options.workload != "loop") {
    auto one = find_workload(options, processors);
    return one ? Result<std::vector<sched::Workload>>{{std::move(one.value())}} : one.error();
  }
  std::vector<sched::Workload> loops;
  for (std::uint32_t i = 0; i < sched::kLoopSchemeCount; ++i) {
    const auto scheme = static_cast<sched::LoopScheme>(i);
    if (options.schemes.empty() ||
        std::ranges::find(options.schemes, to_string(scheme)) != options.schemes.end()) {
      loops.push_back(sched::parallel_loop(scheme, processors));
      loops.back().name = to_string(scheme);
    }
  }
  return loops;
}

Result<> check_schemes(const SimulateOptions& options) {
  for (const std::string& scheme : options.schemes) {
    if (!sched::to_loop_scheme(scheme)) {
      return Error{
          Errc::invalid_argument,
          fmt::format("--scheme: there is no scheme of loops \"{}\"; `sterna info --loops` "
                      "lists them",
                      scheme)};
    }
  }
  return options.schemes.empty() || options.workload == "loop"
             ? Result<>{Done{}}
             : Error{Errc::invalid_argument, "--scheme is for --workload loop"};
}

void print(const SimulateOptions& options, const std::string& policy, const std::string& workload,
           const sched::SimulationResult& result) {
  const double makespan = static_cast<double>(result.makespan_ns) * 1e-9;
  if (options.as_json) {
    nlohmann::json line = {{"policy", policy},
                           {"makespan", makespan},
                           {"locality", result.locality},
                           {"balance", result.balance},
                           {"speedup", result.speedup},
                           {"switches", result.switches},
                           {"network_moves", result.network_moves}};
    if (options.workload == "loop") {
      line["scheme"] = workload;
    }
    fmt::print("{}\n", launch::json_text(line));
  } else {
    const std::string shown = options.workload == "loop" ? policy + " " + workload : policy;
    fmt::print("{:<28} {:>10.4f} {:>9.2f} {:>9.3f} {:>9.3f}\n", shown, makespan, result.speedup,
               result.locality, result.balance);
  }
}

/// For people who wait: a line on the terminal that is written over, and gone at the end.
class ProgressLine {
 public:
  explicit ProgressLine(std::string policy) : policy_{std::move(policy)} {}
  ~ProgressLine() {
    if (is_shown_) {
      fmt::print(stderr, "\r\x1b[K");
    }
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] static bool is_wanted() { return ::isatty(STDERR_FILENO) != 0; }

  void show(const sched::SimulationProgress& progress) {
    const std::uint64_t now = now_ns();
    if (now < next_ns_) {
      return;
    }
    next_ns_ = now + kPeriodNs;
    is_shown_ = true;
    fmt::print(stderr, "\r\x1b[K{}: {} of {} threads have ended, {:.3f} s of virtual time", policy_,
               progress.ended, progress.threads, static_cast<double>(progress.virtual_ns) * 1e-9);
    std::fflush(stderr);
  }

 private:
  static constexpr std::uint64_t kPeriodNs = 500'000'000;

  std::string policy_;
  std::uint64_t next_ns_ = now_ns() + kPeriodNs;  // What is over soon needs none.
  bool is_shown_ = false;
};

Result<sched::SimulationResult> simulate_one(const SimulateOptions& options,
                                             const std::string& policy,
                                             const sched::Workload& workload) {
  ProgressLine line{policy};
  sched::SimulationOptions simulation{
      .topology = options.topology,
      .policy = policy,
      .quantum_ns = static_cast<std::uint64_t>(options.quantum_ms * 1e6),
      .seed = options.seed};
  if (ProgressLine::is_wanted()) {
    simulation.on_progress = [&](const sched::SimulationProgress& progress) {
      line.show(progress);
    };
  }
  return sched::simulate(simulation, workload);
}

int simulate(const SimulateOptions& options) {
  const auto fail = [](const Error& error) {
    launch::print_error(kCommand, error.text);
    return error.code == Errc::refused ? 1 : launch::kUsageExitCode;
  };
  auto machine = topology::Topology::synthetic(options.topology);
  if (!machine) {
    return fail(machine.error());
  }
  if (machine.value()->pu_count() > kProcessorsMax) {
    return fail(
        {Errc::invalid_argument,
         fmt::format("--topology: the machine has {} processors; {} are the most: give a level "
                     "fewer",
                     machine.value()->pu_count(), kProcessorsMax)});
  }
  if (Result<> checked = check_policies(options, *machine.value()); !checked) {
    return fail(checked.error());
  }
  if (Result<> checked = check_schemes(options); !checked) {
    return fail(checked.error());
  }
  auto workloads = find_workloads(options, machine.value()->pu_count());
  if (!workloads) {
    return fail(workloads.error());
  }
  bool is_first = true;
  for (const std::string& policy : options.policies) {
    for (const sched::Workload& workload : workloads.value()) {
      auto result = simulate_one(options, policy, workload);
      if (!result) {
        return fail(result.error());
      }
      if (std::exchange(is_first, false) && !options.as_json) {  // Not before a refusal.
        fmt::print("{:<28} {:>10} {:>9} {:>9} {:>9}\n", "policy", "makespan s", "speedup",
                   "locality", "balance");
      }
      print(options, policy, workload.name, result.value());
    }
  }
  return 0;
}

}  // namespace

int sched_command(std::span<char* const> arguments) {
  SimulateOptions options;
  CLI::App app{"Scheduling without a machine.", kCommand};
  app.require_subcommand(1);
  CLI::App& simulation = *app.add_subcommand(
      "simulate", "Runs a workload on an imagined machine with the real policies, in virtual time");
  simulation.add_option("--topology", options.topology, "The machine, as for sterna topo")
      ->capture_default_str();
  simulation
      .add_option("--workload", options.workload,
                  "conduction, lu-tasks, loop, or a file (docs/guide)")
      ->capture_default_str();
  simulation.add_option("--policy", options.policies, "A policy; again for more of them")
      ->required();
  simulation.add_option("--scheme", options.schemes,
                        "loop: a scheme of sterna info --loops; again for more of them; all");
  simulation.add_option("--tasks", options.tasks, "lu-tasks: tasks at the same time")
      ->check(CLI::Range(1, 10'000));
  simulation
      .add_option("--threads", options.threads, "lu-tasks: of a task; conduction: of a bubble")
      ->check(CLI::Range(1, 1024));
  simulation.add_option("--quantum", options.quantum_ms, "Time slice of a thread, in ms")
      ->check(CLI::Range(0.01, 10'000.0))
      ->check(launch::why_no_number);
  simulation.add_option("--seed", options.seed, "Equal seeds give equal runs");
  simulation.add_flag("--json", options.as_json, "One object a line, times in seconds");
  app.footer(
      "Example:\n  sterna sched simulate --topology 'node:4 core:4 pu:1' --workload conduction "
      "--policy burst --policy flat\n");
  std::vector<std::string> reversed{arguments.rbegin(), arguments.rend()};
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.get_subcommands().empty() ? app.help() : simulation.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    launch::print_error(kCommand,
                        fmt::format("{}; see sterna sched simulate --help", error.what()));
    return launch::kUsageExitCode;
  }
  return simulate(options);
}

}  // namespace sterna::cli
