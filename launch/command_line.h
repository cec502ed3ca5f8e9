// The command lines of `sterna run`, mpiexec, `sterna ps` and the others that
// look at jobs or hosts.
#pragma once

#include <span>

#include "launch/plan.h"

namespace sterna::launch {

/// `arguments` without the command's own name. Print help or errors themselves; return exit codes.
int run_command(std::span<char* const> arguments);
int ps_command(std::span<char* const> arguments);
int top_command(std::span<char* const> arguments);
int doctor_command(std::span<char* const> arguments);
int move_command(std::span<char* const> arguments);
int agent_command(std::span<char* const> arguments);
int mpiexec_command(const char* name, std::span<char* const> arguments);

/// Adds a tunable given on the command line; `place` is the option's spelling.
[[nodiscard]] Result<> add_setting(RunOptions& options, std::string_view name,
                                   std::string_view value, std::string_view place);

/// The same from "name=value".
[[nodiscard]] Result<> add_setting(RunOptions& options, std::string_view pair,
                                   std::string_view place);

/// STERNA_NODES, where no option has said it.
[[nodiscard]] Result<> take_node_count(RunOptions& options);

/// A count of at least 1 for `option`.
[[nodiscard]] Result<std::uint32_t> parse_count(std::string_view option, std::string_view text);

/// Replaces one of that name.
void set_variable(Variables& variables, const std::string& name, std::string value);

/// "NAME=value" or "NAME", whose value is ours.
[[nodiscard]] Result<> add_environment(Variables& variables, std::string_view option,
                                       std::string_view text);

/// "30s", "2min"; "30" alone is seconds.
[[nodiscard]] Result<std::uint64_t> parse_seconds(std::string_view option, std::string_view text);

/// Hosts of a list, or of a file: at least one.
[[nodiscard]] Result<std::vector<HostEntry>> read_host_list(const std::string& text);
[[nodiscard]] Result<std::vector<HostEntry>> read_host_file(const std::string& path);

}  // namespace sterna::launch
