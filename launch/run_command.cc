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
Output of the ranks is printed line by line, never mixed within a line; what is begun only, when
nobody has written for 0.1 s. Standard input goes to rank 0. Ctrl-C ends the job.

Exit code: 0 if all ranks ended well; else that of the first rank that failed, 128 + N if signal N
ended it; 124 after --timeout; 127 if the program is not there; 2 if this command line is wrong;
1 if output was lost, as on a full disk; 141 if nobody read it any more and the ranks went on
printing.

Environment: STERNA_NODES is --nodes, STERNA_SSH is --launcher-exec, and STERNA_<NAME> is any
setting that `sterna info` lists. Options of the command line win.

Examples:
  sterna run -n 4 ./hello                          four processes
  sterna run -n 256 --nodes 4 ./app input.txt      256 mobile ranks in 4 processes
  sterna run -n 64 --nodes 2 --balance refine --report ./uneven
  sterna run -n 8 --drivers tcp --tag-output ./app
  sterna run -n 8 --hosts here,there:4 --timeout 2min ./app
)";

using Strings = std::vector<std::string>;

struct SettingOption {
  const char* option;
  const char* setting;
  const char* value;
  const char* help;
};

constexpr SettingOption kSettingOptions[] = {
    {"--drivers", "drivers", "LIST", "Networks to use, the preferred one first: shm,tcp"},
    {"--balance", "balance", "POLICY",
     "Who moves ranks between nodes: none, greedy, refine, places(burst) ..."},
    {"--balance-interval", "balance_interval", "TIME", "Time between two balancings, as in 500ms"},
    {"--stack-size", "stack_size", "SIZE", "Stack of a mobile rank, as in 8M"},
    {"--trace", "trace", "FILE", "Write a timeline that ui.perfetto.dev and sterna trace read"},
};

/// As the user wrote it, before it is understood.
struct Words {
  std::string count = "1";
  std::string nodes;
  std::string map = "block";
  std::string hosts;
  std::string host_file;
  std::string per_host;
  std::string timeout;
  std::string on_loss = "end";
  Strings environment;
  Strings settings;
  std::string directory;
  Strings setting_values = Strings(std::size(kSettingOptions));
};

/// `text` as a count into `target`; an empty one leaves it.
Result<> take_count(std::string_view option, const std::string& text, std::uint32_t& target) {
  if (text.empty()) {
    return Done{};
  }
  Result<std::uint32_t> count = parse_count(option, text);
  if (!count) {
    return count.error();
  }
  target = count.value();
  return Done{};
}

Result<> take_counts(const Words& words, RunOptions& options, Application& application) {
  if (Result<> ranks = take_count("-n", words.count, application.rank_count); !ranks) {
    return ranks;
  }
  if (Result<> nodes = take_count("--nodes", words.nodes, options.node_count); !nodes) {
    return nodes;
  }
  if (Result<> each = take_count("--ppn", words.per_host, options.processes_per_host); !each) {
    return each;
  }
  return take_node_count(options);
}

Result<> take_hosts(const Words& words, RunOptions& options) {
  if (words.hosts.empty() && words.host_file.empty()) {
    return Done{};
  }
  if (!words.hosts.empty() && !words.host_file.empty()) {
    return Error{Errc::invalid_argument, "--hosts and --hostfile exclude each other"};
  }
  auto hosts = words.hosts.empty() ? read_host_file(words.host_file) : read_host_list(words.hosts);
  if (!hosts) {
    return Error{hosts.error().code, "--hosts: " + hosts.error().text};
  }
  options.hosts = std::move(hosts.value());
  return Done{};
}

Result<> take_settings(const Words& words, RunOptions& options) {
  for (std::size_t i = 0; i < words.setting_values.size(); ++i) {
    if (!words.setting_values[i].empty()) {
      const SettingOption& option = kSettingOptions[i];
      if (Result<> set =
              add_setting(options, option.setting, words.setting_values[i], option.option);
          !set) {
        return set;
      }
    }
  }
  for (const std::string& setting : words.settings) {
    if (Result<> set = add_setting(options, setting, "--set"); !set) {
      return set;
    }
  }
  return Done{};
}

Result<> understand(const Words& words, RunOptions& options, Strings program) {
  Application application;
  if (Result<> counts = take_counts(words, options, application); !counts) {
    return counts;
  }
  options.map = words.map == "cyclic" ? RankMap::cyclic : RankMap::block;
  options.on_loss = words.on_loss == "go_on" ? OnLoss::go_on : OnLoss::end;
  if (Result<> hosts = take_hosts(words, options); !hosts) {
    return hosts;
  }
  if (!words.timeout.empty()) {
    Result<std::uint64_t> timeout = parse_seconds("--timeout", words.timeout);
    if (!timeout) {
      return timeout.error();
    }
    options.timeout_ns = timeout.value();
  }
  for (const std::string& variable : words.environment) {
    if (Result<> added = add_environment(application.environment, "--env", variable); !added) {
      return added;
    }
  }
  if (Result<> settings = take_settings(words, options); !settings) {
    return settings;
  }
  application.directory = words.directory;
  application.arguments = std::move(program);
  options.applications.push_back(std::move(application));
  return Done{};
}

void add_place_options(CLI::App& app, Words& words, RunOptions& options) {
  app.add_option("--hosts", words.hosts, "Machines to run on, with the processes they take: a,b:4")
      ->type_name("LIST");
  app.add_option("--hostfile", words.host_file, "The same from a file, one host a line")
      ->type_name("FILE");
  app.add_option("--ppn", words.per_host, "Processes on each host")->type_name("COUNT");
  app.add_option("--launcher-exec", options.ssh, "Command that reaches other hosts (ssh)")
      ->type_name("COMMAND");
  app.add_option("--env", words.environment, "A variable for the ranks; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  app.add_option("--wdir", words.directory, "Folder to run in")->type_name("FOLDER");
}

void add_options(CLI::App& app, Words& words, RunOptions& options) {
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
  for (std::size_t i = 0; i < words.setting_values.size(); ++i) {
    app.add_option(kSettingOptions[i].option, words.setting_values[i], kSettingOptions[i].help)
        ->type_name(kSettingOptions[i].value);
  }
  app.add_option("--set", words.settings, "Any setting that `sterna info` lists; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  add_place_options(app, words, options);
  app.add_flag("--tag-output", options.tag_output, "Begin each line of output with [rank]");
  app.add_option("--timeout", words.timeout, "End the job after this time, as in 30s or 2min")
      ->type_name("TIME");
  app.add_option("--on-loss", words.on_loss,
                 "What the loss of a process does: end the job, or go_on: the others see errors in "
                 "what they have to do with its ranks, and the exit code is that of the loss")
      ->check(CLI::IsMember({"end", "go_on"}))
      ->type_name("WHAT");
  app.add_flag("--report", options.report,
               "Print where the ranks were, load and moves, at the end");
  app.add_option("--json", options.report_file, "Write that report to a file, as JSON")
      ->type_name("FILE");
  app.add_flag("-v,--verbose", options.verbose, "Say what is done");
}

void print_help(const CLI::App& app) {
  std::string help = app.help();
  if (const std::size_t at = help.find("[OPTIONS]"); at != std::string::npos) {
    help.insert(at + 9, " PROGRAM [ARGUMENTS...]");
  }
  fmt::print("{}", help);
}

/// The parser takes the next word for the value of "--option=": of all before the program.
Result<> refuse_no_value(const CLI::App& app, std::span<char* const> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = arguments[i];
    if (!word.starts_with('-') || word == "--") {
      return Done{};
    }
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      return Error{Errc::invalid_argument, word + " has no value"};
    }
    const CLI::Option* const option = app.get_option_no_throw(word);
    i += option != nullptr && option->get_items_expected_max() > 0 ? 1 : 0;
  }
  return Done{};
}

/// As it comes from a variable that is not set: to go on with what holds without the option would
/// be another job.
Result<> refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) {
        return Error{Errc::invalid_argument, option->get_name() + ": its value is empty"};
      }
    }
  }
  return Done{};
}

/// The program and its words: what follows the options.
Result<Strings> program_words(Strings rest) {
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().starts_with('-')) {
    return Error{Errc::invalid_argument,
                 "unknown option " + rest.front() + "; see sterna run --help"};
  }
  if (rest.empty()) {
    return Error{Errc::invalid_argument, "no program is given; see sterna run --help"};
  }
  return rest;
}

}  // namespace

int run_command(std::span<char* const> arguments) {
  RunOptions options;
  Words words;
  if (const char* const ssh = std::getenv("STERNA_SSH"); ssh != nullptr && *ssh != '\0') {
    options.ssh = ssh;
  }
  CLI::App app{kDescription, "sterna run"};
  add_options(app, words, options);
  if (Result<> valued = refuse_no_value(app, arguments); !valued) {
    print_error("sterna run", valued.error().text);
    return kUsageExitCode;
  }
  try {
    app.parse(Strings{arguments.rbegin(), arguments.rend()});
  } catch (const CLI::CallForHelp&) {
    print_help(app);
    return 0;
  } catch (const CLI::ParseError& error) {
    print_error("sterna run", std::string{error.what()} + "; see sterna run --help");
    return kUsageExitCode;
  }
  if (Result<> valued = refuse_empty_values(app); !valued) {
    print_error("sterna run", valued.error().text);
    return kUsageExitCode;
  }
  Result<Strings> program = program_words(app.remaining());
  Result<> understood =
      program ? understand(words, options, std::move(program.value())) : Result<>{program.error()};
  if (!understood) {
    print_error("sterna run", understood.error().text);
    return kUsageExitCode;
  }
  return run_job(std::move(options));
}

}  // namespace sterna::launch
