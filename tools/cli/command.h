// The table of subcommands of the executable `sterna`. To add one: a line in commands.cc and a
// function here or in the folder it belongs to.
#pragma once

#include <span>
#include <string_view>

namespace sterna::cli {

struct Command {
  std::string_view name;
  std::string_view summary;  // For `sterna --help`; empty: not listed.
  /// `arguments` follow the name. Returns the exit code; prints its own help and errors.
  int (*run)(std::span<char* const> arguments);
};

[[nodiscard]] std::span<const Command> commands();

int info_command(std::span<char* const> arguments);
int sched_command(std::span<char* const> arguments);
int topo_command(std::span<char* const> arguments);
int trace_command(std::span<char* const> arguments);

}  // namespace sterna::cli
