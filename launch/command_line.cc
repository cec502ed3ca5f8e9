// What the command lines of `sterna run` and mpiexec have in common.
#include "launch/command_line.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/tunable.h"
#include "runtime/settings.h"

namespace sterna::launch {
namespace {

Error wrong(std::string text) {
  return {Errc::invalid_argument, std::move(text)};
}

constexpr Tunable kSeconds{.name = "timeout", .kind = TunableKind::time, .fallback = "0"};

}  // namespace

Result<> add_setting(RunOptions& options, std::string_view name, std::string_view value,
                     std::string_view place) {
  Settings settings{runtime::all_tunables()};
  if (!settings.has(name)) {
    return wrong(std::string{place} + ": there is no setting '" + std::string{name} +
                 "'; sterna info lists them");
  }
  if (Result<> set = settings.set(name, value, SettingSource::command_line, place); !set) {
    return set;
  }
  options.settings.emplace_back(name, value);
  return Done{};
}

Result<> add_setting(RunOptions& options, std::string_view pair, std::string_view place) {
  const std::size_t equals = pair.find('=');
  if (equals == std::string_view::npos) {
    return wrong(std::string{place} + " '" + std::string{pair} +
                 "': name=value is expected; sterna info lists the names");
  }
  return add_setting(options, pair.substr(0, equals), pair.substr(equals + 1), place);
}

Result<std::uint32_t> parse_count(std::string_view option, std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc{} || end != text.data() + text.size() || value == 0 ||
      value > runtime::kRankCountMax) {
    return wrong(std::string{option} + " '" + std::string{text} + "': a whole number from 1 to " +
                 std::to_string(runtime::kRankCountMax) + " is expected");
  }
  return value;
}

Result<> take_node_count(RunOptions& options) {
  const char* const text = std::getenv("STERNA_NODES");
  if (options.node_count != 0 || text == nullptr || *text == '\0') {
    return Done{};
  }
  Result<std::uint32_t> count = parse_count("STERNA_NODES", text);
  if (!count) {
    return count.error();
  }
  options.node_count = count.value();
  return Done{};
}

void set_variable(Variables& variables, const std::string& name, std::string value) {
  const auto found = std::ranges::find(variables, name, &Variables::value_type::first);
  if (found != variables.end()) {
    found->second = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

Result<> add_environment(Variables& variables, std::string_view option, std::string_view text) {
  std::string name{text.substr(0, text.find('='))};
  if (name.empty()) {
    return wrong(std::string{option} + " '" + std::string{text} +
                 "': NAME or NAME=value is expected");
  }
  if (text.size() > name.size()) {
    set_variable(variables, name, std::string{text.substr(name.size() + 1)});
  } else if (const char* const value = std::getenv(name.c_str()); value != nullptr) {
    set_variable(variables, name, value);
  }
  return Done{};
}

Result<std::uint64_t> parse_seconds(std::string_view option, std::string_view text) {
  const bool is_plain =
      !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  Result<std::int64_t> time =
      parse_tunable(kSeconds, is_plain ? std::string{text} + "s" : std::string{text});
  if (!time || time.value() <= 0) {
    return wrong(std::string{option} + " '" + std::string{text} +
                 "': a time is expected, for example 30 (seconds), 500ms, 2min");
  }
  return static_cast<std::uint64_t>(time.value());
}

Result<std::vector<HostEntry>> read_host_list(const std::string& text) {
  Result<std::vector<HostEntry>> hosts = parse_hosts(text);
  if (hosts && hosts.value().empty()) {
    return wrong("'" + text + "' names no host");
  }
  return hosts;
}

Result<std::vector<HostEntry>> read_host_file(const std::string& path) {
  std::ifstream file{path};
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    return wrong("host file " + path + " cannot be read");
  }
  Result<std::vector<HostEntry>> hosts = parse_hosts(text.str());
  if (!hosts) {
    return wrong("host file " + path + ": " + hosts.error().text);
  }
  if (hosts.value().empty()) {
    return wrong("host file " + path + " names no host");
  }
  return hosts;
}

}  // namespace sterna::launch
