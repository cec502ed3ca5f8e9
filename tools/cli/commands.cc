// One line per subcommand.
#include <array>

#include "bench/bench_command.h"
#include "launch/command_line.h"
#include "tools/cli/command.h"

namespace sterna::cli {

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"run", "run a parallel program", launch::run_command},
      Command{"ps", "list the running jobs, their ranks and load", launch::ps_command},
      Command{"top", "watch a running job: workers, ranks, messages, moves", launch::top_command},
      Command{"move", "move a rank of a running job to another node", launch::move_command},
      Command{"doctor", "look for what is wrong with this machine and the running jobs",
              launch::doctor_command},
      Command{"trace", "sum up what sterna run --trace has recorded", trace_command},
      Command{"agent", "", launch::agent_command},
      Command{"info", "print version, drivers, policies, settings and their origin", info_command},
      Command{"topo", "print the machine as a tree", topo_command},
      Command{"sched", "simulate scheduling policies on an imagined machine", sched_command},
      Command{"bench", "measure, beside other implementations", bench::bench_command},
  };
  return kCommands;
}

}  // namespace sterna::cli
