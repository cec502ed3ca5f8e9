// The command line of `sterna run`.
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "launch/command_line.h"
#include "launch/run.h"

namespace sterna::launch {
namespace {

constexpr const char* kDescription =
    "Runs a parallel program.\n\n"
    "Without --nodes every rank is a process of its own. With --nodes N the ranks are threads in "
    "N\n"
    "processes, can be moved from one to another while they run, and --balance moves them where\n"
    "there is room. The program is the same: an ordinary executable made with mpicc.";

constexpr const char* kFooter = R"(
Output of the ranks is printed line by line, never mixed within a line; standard input goes to
rank 0. Ctrl-C ends the job.

Exit code: 0 if all ranks ended well; else that of the first rank that failed, 128 + N if signal N
ended it; 124 after --timeout; 127 if the program is not there; 2 if this command line is wrong.

Environment: STERNA_NODES is --nodes, STERNA_SSH is --launcher-exec, and STERNA_<NAME> is any
setting that `sterna info` lists. Options of the command line win.

Examples:
  sterna run -n 4 ./hello                          four processes
  sterna run -n 256 --nodes 4 ./app input.txt      256 mobile ranks in 4 processes
  sterna run -n 64 --nodes 2 --balance refine --report ./uneven
  sterna run -n 8 --drivers tcp --tag-output ./app
  sterna run -n 8 --hosts here,there:4 --timeout 2min ./app
)";

/// As the user wrote it, before it is understood.
struct Words {
  std::string count = "1";
  std::string nodes;
  std::string map = "block";
  std::string hosts;
  std::string host_file;
  std::string timeout;
  std::vector<std::string> environment;
  std::vector<std::string> settings;
  std::string directory;
};

struct SettingOption {
  const char* option;
  const char* setting;
  const char* value;
  const char* help;
};

constexpr SettingOption kSettingOptions[] = {
    {"--drivers", "drivers", "LIST", "Networks to use, the preferred one first: shm,tcp"},
    {"--balance", "balance", "POLICY", "Who moves ranks between nodes: none, greedy, refine"},
    {"--balance-interval", "balance_interval", "TIME", "Time between two balancings, as in 500ms"},
    {"--stack-size", "stack_size", "SIZE", "Stack of a mobile rank, as in 8M"},
};

Result<> understand(const Words& words, RunOptions& options,
                    const std::vector<std::string>& setting_values,
                    std::vector<std::string> program) {
  Application application;
  Result<std::uint32_t> count = parse_count("-n", words.count);
  if (!count) {
    return count.error();
  }
  application.rank_count = count.value();
  if (!words.nodes.empty()) {
    Result<std::uint32_t> nodes = parse_count("--nodes", words.nodes);
    if (!nodes) {
      return nodes.error();
    }
    options.node_count = nodes.value();
  }
  if (Result<> taken = take_node_count(options); !taken) {
    return taken;
  }
  options.map = words.map == "cyclic" ? RankMap::cyclic : RankMap::block;
  if (!words.hosts.empty() || !words.host_file.empty()) {
    auto hosts = words.hosts.empty() ? read_host_file(words.host_file) : parse_hosts(words.hosts);
    if (!hosts) {
      return Error{hosts.error().code, "--hosts: " + hosts.error().text};
    }
    options.hosts = std::move(hosts.value());
  }
  if (!words.timeout.empty()) {
    Result<std::uint64_t> timeout = parse_seconds("--timeout", words.timeout);
    if (!timeout) {
      return timeout.error();
    }
    options.timeout_ns = timeout.value();
  }
  for (const std::string& variable : words.environment) {
    if (Result<> added = add_environment(application, "--env", variable); !added) {
      return added;
    }
  }
  for (std::size_t i = 0; i < setting_values.size(); ++i) {
    if (!setting_values[i].empty()) {
      const SettingOption& option = kSettingOptions[i];
      if (Result<> set = add_setting(options, option.setting, setting_values[i], option.option);
          !set) {
        return set;
      }
    }
  }
  for (const std::string& setting : words.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      return Error{Errc::invalid_argument,
                   "--set '" + setting + "': name=value is expected; sterna info lists the names"};
    }
    if (Result<> set =
            add_setting(options, setting.substr(0, equals), setting.substr(equals + 1), "--set");
        !set) {
      return set;
    }
  }
  application.directory = words.directory;
  application.arguments = std::move(program);
  options.applications.push_back(std::move(application));
  return Done{};
}

}  // namespace

int run_command(std::span<char* const> arguments) {
  RunOptions options;
  Words words;
  if (const char* const ssh = std::getenv("STERNA_SSH"); ssh != nullptr && *ssh != '\0') {
    options.ssh = ssh;
  }
  std::vector<std::string> setting_values(std::size(kSettingOptions));
  CLI::App app{kDescription, "sterna run"};
  app.prefix_command();
  app.footer(kFooter);
  app.get_formatter()->column_width(32);
  app.add_option("-n,--ranks,--np", words.count, "Number of ranks (1)")->type_name("COUNT");
  app.add_option("--nodes", words.nodes, "Run the ranks as mobile threads in this many processes")
      ->type_name("COUNT");
  app.add_option("--map", words.map,
                 "Which ranks share a node: block (0,0,1,1) or cyclic (0,1,0,1)")
      ->check(CLI::IsMember({"block", "cyclic"}))
      ->type_name("MAP");
  for (std::size_t i = 0; i < setting_values.size(); ++i) {
    app.add_option(kSettingOptions[i].option, setting_values[i], kSettingOptions[i].help)
        ->type_name(kSettingOptions[i].value);
  }
  app.add_option("--set", words.settings, "Any setting that `sterna info` lists; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--hosts", words.hosts, "Machines to run on, with the processes they take: a,b:4")
      ->type_name("LIST");
  app.add_option("--hostfile", words.host_file, "The same from a file, one host a line")
      ->type_name("FILE");
  app.add_option("--ppn", options.processes_per_host, "Processes on each host")->type_name("COUNT");
  app.add_option("--launcher-exec", options.ssh, "Command that reaches other hosts (ssh)")
      ->type_name("COMMAND");
  app.add_option("--env", words.environment, "A variable for the ranks; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("--wdir", words.directory, "Folder to run in")->type_name("FOLDER");
  app.add_flag("--tag-output", options.tag_output, "Begin each line of output with [rank]");
  app.add_option("--timeout", words.timeout, "End the job after this time, as in 30s or 2min")
      ->type_name("TIME");
  app.add_flag("--report", options.report,
               "Print where the ranks were, load and moves, at the end");
  app.add_option("--json", options.report_file, "Write that report to a file, as JSON")
      ->type_name("FILE");
  app.add_flag("-v,--verbose", options.verbose, "Say what is done");
  std::vector<std::string> reversed;
  for (std::size_t i = arguments.size(); i > 0; --i) {
    reversed.emplace_back(arguments[i - 1]);
  }
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::string help = app.help();
    if (const std::size_t at = help.find("[OPTIONS]"); at != std::string::npos) {
      help.insert(at + 9, " PROGRAM [ARGUMENTS...]");
    }
    fmt::print("{}", help);
    return 0;
  } catch (const CLI::ParseError& error) {
    print_error("sterna run", std::string{error.what()} + "; see sterna run --help");
    return kUsageExitCode;
  }
  std::vector<std::string> program = app.remaining();
  if (!program.empty() && program.front() == "--") {
    program.erase(program.begin());
  } else if (!program.empty() && program.front().starts_with('-')) {
    print_error("sterna run", "unknown option " + program.front() + "; see sterna run --help");
    return kUsageExitCode;
  }
  if (program.empty()) {
    print_error("sterna run", "no program is given; see sterna run --help");
    return kUsageExitCode;
  }
  if (Result<> understood = understand(words, options, setting_values, std::move(program));
      !understood) {
    print_error("sterna run", understood.error().text);
    return kUsageExitCode;
  }
  return run_job(std::move(options));
}

}  // namespace sterna::launch
