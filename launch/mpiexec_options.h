// The options of mpiexec and mpirun: what users of other MPIs know.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sterna::launch::mpiexec {

enum class Meaning : std::uint8_t {
  count,
  environment,
  environment_pair,
  environment_list,
  global_pair,  // As the two above, for the programs of all blocks.
  global_list,
  ignored,
  ignored_value,
  ignored_pair,
  directory,
  hosts,
  host_file,
  per_host,
  tag,
  timeout,
  verbose,
  nodes,
  balance,
  drivers,
  setting,
  launcher,
  report,
  report_file,
  help,
  version,
};

struct Option {
  const char* name;  // Without dashes.
  Meaning meaning;
  const char* value = nullptr;  // Null: takes none.
  const char* help = nullptr;   // Null: not listed.
};

/// By its word on the command line, with one dash or two. Null: there is none.
[[nodiscard]] const Option* find_option(std::string_view word);

void print_help(const std::string& name);

}  // namespace sterna::launch::mpiexec
