// `sterna topo`: the machine, or an imagined one, as a tree.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "launch/parse.h"
#include "launch/run.h"
#include "tools/cli/command.h"
#include "topology/level_memory.h"
#include "topology/topology.h"

namespace sterna::cli {

int topo_command(std::span<char* const> arguments) {
  std::string machine;
  topology::TopologyOptions options;
  CLI::App app{"Prints the processors and what they share, as Sterna sees them.", "sterna topo"};
  app.add_option("--machine", machine,
                 "An imagined machine instead, in the language of hwloc, outermost level first; "
                 "network:N and arity:N may stand before it")
      ->type_name("TEXT");
  app.add_option("--arity", options.arity_max,
                 "Of this machine: groups where a level is wider, as the setting queue_arity does")
      ->check(CLI::Range(2, 65'536));
  app.add_option("--machines", options.machine_count, "A network of so many machines as this one")
      ->check(CLI::Range(1, 4096));
  app.footer(
      "Examples:\n  sterna topo\n  sterna topo --machine 'node:2 l3:2 core:4 pu:2'\n  sterna topo "
      "--machine 'network:2 "
      "arity:4 core:16 pu:1'\n");
  if (const std::optional<int> exit_code = launch::parse(app, arguments)) {
    return *exit_code;
  }
  auto topology = machine.empty() ? topology::Topology::detect(options)
                                  : topology::Topology::synthetic(machine);
  if (!topology) {
    launch::print_error("sterna topo", topology.error().text);
    return machine.empty() ? 1 : launch::kUsageExitCode;
  }
  // Of an imagined machine, or a network, no memory is known.
  fmt::print("{}", options.machine_count == 0
                       ? text_with_memory(*topology.value(),
                                          topology::LevelMemory::read(*topology.value()))
                       : topology.value()->text());
  return 0;
}

}  // namespace sterna::cli
