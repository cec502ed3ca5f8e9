// Reads settings from configuration files (TOML).
#define TOML_EXCEPTIONS 0
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include "base/tunable.h"

namespace sterna {

namespace {

Result<> set_from_node(Settings& settings, const std::string& path, const std::string& name,
                       const toml::node& node) {
  const std::string place = fmt::format("{}:{}", path, node.source().begin.line);
  std::string text;
  if (const auto* string = node.as_string()) {
    text = string->get();
  } else if (const auto* integer = node.as_integer()) {
    text = std::to_string(integer->get());
  } else if (const auto* boolean = node.as_boolean()) {
    text = boolean->get() ? "on" : "off";
  } else {
    return Error{Errc::invalid_argument,
                 fmt::format("{}: {} must be a string, a whole number or true/false; write for "
                             "example {} = \"64K\"",
                             place, name, name)};
  }
  return settings.set(name, text, SettingSource::file, place);
}

Result<> set_from_table(Settings& settings, const std::string& path, const std::string& prefix,
                        const toml::table& table) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string{key.str()};
    const toml::table* inner = node.as_table();
    Result<> done = inner != nullptr ? set_from_table(settings, path, name + "_", *inner)
                                     : set_from_node(settings, path, name, node);
    if (!done) {
      return done;
    }
  }
  return Done{};
}

std::string_view variable(const char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace

Result<> Settings::load_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return Error{Errc::invalid_argument,  // A stream would read it as an empty file.
                 fmt::format("configuration file {}: is a folder", path)};
  }
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    std::ostringstream text;
    text << parsed.error().description();
    const auto line = parsed.error().source().begin.line;
    return Error{Errc::invalid_argument,
                 line == 0 ? fmt::format("configuration file {}: {}", path, text.str())
                           : fmt::format("{}:{}: {}", path, line, text.str())};
  }
  return set_from_table(*this, path, "", parsed.table());
}

Result<> Settings::load(const char* const* environment) {
  std::string path{variable(environment, "STERNA_CONFIG")};
  const bool must_exist = !path.empty();
  if (path.empty()) {
    const std::string_view folder = variable(environment, "XDG_CONFIG_HOME");
    const std::string_view home = variable(environment, "HOME");
    if (!folder.empty()) {
      path = fmt::format("{}/sterna/config.toml", folder);
    } else if (!home.empty()) {
      path = fmt::format("{}/.config/sterna/config.toml", home);
    }
  }
  if (must_exist || (!path.empty() && ::access(path.c_str(), F_OK) == 0)) {
    if (Result<> done = load_file(path); !done) {
      return done;
    }
  }
  return load_environment(environment);
}

}  // namespace sterna
