// `sterna topo`: the machine, or an imagined one, as a tree.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "launch/parse.h"
#include "launch/run.h"
#include "tools/cli/command.h"
#include "topology/topology.h"

namespace sterna::cli {

int topo_command(std::span<char* const> arguments) {
  std::string machine;
  CLI::App app{"Prints the processors and what they share, as Sterna sees them.", "sterna topo"};
  app.add_option("--machine", machine,
                 "An imagined machine instead, in the language of hwloc, outermost level first")
      ->type_name("TEXT");
  app.footer("Examples:\n  sterna topo\n  sterna topo --machine 'node:2 l3:2 core:4 pu:2'\n");
  if (const std::optional<int> exit_code = launch::parse(app, arguments)) {
    return *exit_code;
  }
  auto topology =
      machine.empty() ? topology::Topology::detect() : topology::Topology::synthetic(machine);
  if (!topology) {
    launch::print_error("sterna topo", topology.error().text);
    return machine.empty() ? 1 : launch::kUsageExitCode;
  }
  fmt::print("{}", topology.value()->text());
  return 0;
}

}  // namespace sterna::cli
