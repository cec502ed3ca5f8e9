// Looks at a job's options as its nodes will, so that what is wrong is said once and early.
#include "launch/plan_checks.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "base/tunable.h"
#include "memory/large_pages.h"
#include "memory/layout.h"
#include "runtime/settings.h"

namespace sterna::launch {
namespace {

Error wrong(std::string text) {
  return {Errc::invalid_argument, std::move(text)};
}

constexpr std::string_view kConfigVariable = "STERNA_CONFIG";

/// A node may run in another folder than we: the file that we have read is its own, too.
std::string with_whole_path(std::string_view name, std::string_view value) {
  std::error_code no_folder;
  const std::filesystem::path whole = std::filesystem::absolute(value, no_folder);
  return std::string{name} + "=" + (no_folder ? std::string{value} : whole.string());
}

/// A variable that is the host's, or ours, is not given to other hosts.
bool is_private(std::string_view variable, bool is_local) {
  const std::string_view name = variable.substr(0, variable.find('='));
  constexpr std::array kNever = {std::string_view{runtime::kControlVariable},
                                 std::string_view{"STERNA_NODES"}};
  constexpr std::array kLocal = {std::string_view{"HOSTNAME"},
                                 std::string_view{"DISPLAY"},
                                 std::string_view{"TMPDIR"},
                                 std::string_view{"XDG_RUNTIME_DIR"},
                                 std::string_view{"DBUS_SESSION_BUS_ADDRESS"},
                                 std::string_view{"SSH_CLIENT"},
                                 std::string_view{"SSH_CONNECTION"},
                                 std::string_view{"SSH_TTY"},
                                 std::string_view{"SSH_AUTH_SOCK"}};
  return std::find(kNever.begin(), kNever.end(), name) != kNever.end() ||
         (!is_local && std::find(kLocal.begin(), kLocal.end(), name) != kLocal.end());
}

Result<> check_counts(const RunOptions& options) {
  const std::uint64_t rank_count = count_ranks(options);
  if (rank_count == 0 || rank_count > runtime::kRankCountMax) {
    return wrong("-n " + std::to_string(rank_count) + ": the number of ranks must be from 1 to " +
                 std::to_string(runtime::kRankCountMax));
  }
  const std::uint64_t node_count = options.node_count == 0 ? rank_count : options.node_count;
  if (node_count > runtime::kNodeCountMax) {
    return wrong(
        (options.node_count == 0 ? "-n " : "--nodes ") + std::to_string(node_count) +
        ": a job has at most " + std::to_string(runtime::kNodeCountMax) +
        (options.node_count == 0 ? " processes; use --nodes to put many ranks in each" : " nodes"));
  }
  if (options.node_count > rank_count) {
    return wrong("--nodes " + std::to_string(options.node_count) + " with -n " +
                 std::to_string(rank_count) + ": there must be at least as many ranks as nodes");
  }
  if (options.node_count > 0 && rank_count > memory::kRankCountMax) {
    return wrong("-n " + std::to_string(rank_count) + ": with --nodes there are at most " +
                 std::to_string(memory::kRankCountMax) + " ranks");
  }
  if (options.node_count > 0 && options.applications.size() > 1) {
    return wrong("--nodes runs one program in all ranks; ':' needs one process a rank");
  }
  return Done{};
}

/// Mobile ranks have their stacks in their slots, which are the smaller the more ranks there are.
Result<> check_stack(const Settings& settings, std::uint64_t rank_count) {
  const auto bytes = static_cast<std::uint64_t>(settings.number(runtime::kStackSize));
  const std::uint64_t largest =
      std::uint64_t{1} << (memory::rank_slot_shift_for(static_cast<std::uint32_t>(rank_count)) - 3);
  if (bytes > largest) {
    return wrong("stack_size " + std::string{settings.text(runtime::kStackSize)} + ": with " +
                 std::to_string(rank_count) + " ranks the stack of each has at most " +
                 std::to_string(largest >> 20) + "M");
  }
  return Done{};
}

/// The settings as nodes will have them, from files, environment and command line.
Result<Settings> settings_of(const RunOptions& options, const Application& application) {
  const std::vector<std::string> environment = environment_of(application, true);
  std::vector<const char*> variables;
  for (const std::string& variable : environment) {
    variables.push_back(variable.c_str());
  }
  variables.push_back(nullptr);
  Settings settings{runtime::all_tunables()};
  if (Result<> loaded = settings.load(variables.data()); !loaded) {
    return loaded.error();
  }
  for (const auto& [name, value] : options.settings) {
    if (Result<> set = settings.set(name, value, SettingSource::command_line, "--" + name); !set) {
      return set.error();
    }
  }
  return settings;
}

Result<> check_settings(const RunOptions& options) {
  for (const Application& application : options.applications) {
    Result<Settings> settings = settings_of(options, application);
    if (!settings) {
      return settings.error();
    }
    if (options.node_count > 0) {
      if (Result<> stack = check_stack(settings.value(), count_ranks(options)); !stack) {
        return stack;
      }
    }
  }
  return Done{};
}

Result<> check_report_file(const std::string& path) {
  if (path.empty()) {
    return Done{};
  }
  struct stat status {};
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if ((exists && S_ISDIR(status.st_mode)) ||
      ::access(exists ? path.c_str() : folder.c_str(), W_OK) != 0) {
    return wrong("the report cannot be written to " + path +
                 (exists ? ": it is a folder, or not ours to write"
                         : ": the folder is not there, or not ours to write"));
  }
  return Done{};
}

}  // namespace

std::uint64_t count_ranks(const RunOptions& options) {
  std::uint64_t count = 0;
  for (const Application& application : options.applications) {
    count += application.rank_count;
  }
  return count;
}

bool wants_large_pages(const RunOptions& options, const Application& application) {
  if (options.node_count != 0) {
    return false;
  }
  Result<Settings> settings = settings_of(options, application);
  return settings && settings.value().text(memory::kLargePages) != "off";
}

std::vector<std::string> environment_of(const Application& application, bool is_local) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::string_view name = variable.substr(0, variable.find('='));
    const bool is_replaced =
        std::any_of(application.environment.begin(), application.environment.end(),
                    [&](const auto& added) { return added.first == name; });
    if (!is_replaced && !is_private(variable, is_local)) {
      result.emplace_back(variable);
    }
  }
  for (const auto& [name, value] : application.environment) {
    result.push_back(name + "=" + value);
  }
  for (std::string& variable : result) {
    const std::size_t equals = variable.find('=');
    if (variable.starts_with(kConfigVariable) && equals == kConfigVariable.size() &&
        equals + 1 < variable.size()) {
      variable = with_whole_path(kConfigVariable, std::string_view{variable}.substr(equals + 1));
    }
  }
  return result;
}

Result<> check_options(const RunOptions& options) {
  if (Result<> counts = check_counts(options); !counts) {
    return counts;
  }
  if (Result<> settings = check_settings(options); !settings) {
    return settings;
  }
  if (!options.hosts.empty() && options.ssh.find_first_not_of(" \t") == std::string::npos) {
    return wrong("--launcher-exec: the command that reaches other hosts is empty");
  }
  return check_report_file(options.report_file);
}

}  // namespace sterna::launch
