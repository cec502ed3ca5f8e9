// How every command reads its words: help, or an error that says where help is.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "launch/run.h"

namespace sterna::launch {

/// `arguments` without the command's name, which is the app's. Empty: go on. Else all is said, and
/// this is the exit code.
inline std::optional<int> parse(CLI::App& app, std::span<char* const> arguments) {
  try {
    app.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    print_error(app.get_name(), fmt::format("{}; see {} --help", error.what(), app.get_name()));
    return kUsageExitCode;
  }
}

/// For an option's check: a range lets "nan" pass, which is neither below nor above it.
inline std::string why_no_number(const std::string& text) {
  double value = 0;
  return CLI::detail::lexical_cast(text, value) && std::isnan(value) ? text + " is no number" : "";
}

}  // namespace sterna::launch
