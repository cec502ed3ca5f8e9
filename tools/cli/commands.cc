// One line per subcommand.
#include <array>

#include "launch/command_line.h"
#include "tools/cli/command.h"

namespace sterna::cli {

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"run", "run a parallel program", launch::run_command},
  };
  return kCommands;
}

}  // namespace sterna::cli
