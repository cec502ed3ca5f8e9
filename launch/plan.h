// What a job is to be: ranks, nodes, hosts, who runs where, and with what. Made from the options of
// the command line, before anything is started.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launch/crew.h"
#include "runtime/control_protocol.h"

namespace sterna::launch {

/// Of an environment, no name twice.
using Variables = std::vector<std::pair<std::string, std::string>>;

/// One program of a job (mpiexec's a : b : c).
struct Application {
  std::uint32_t rank_count = 1;
  std::vector<std::string> arguments;  // With the program first.
  Variables environment;               // Added to what there is.
  std::string directory;
};

struct HostEntry {
  std::string name;
  std::uint32_t slot_count = 0;  // Processes it takes; 0: its share.
};

enum class RankMap : std::uint8_t { block, cyclic };

/// What the loss of a process that others may need does: it ends the job, or they go on without it.
enum class OnLoss : std::uint8_t { end, go_on };

/// As the user wants it: the same for `sterna run` and mpiexec.
struct RunOptions {
  std::vector<Application> applications;
  std::uint32_t node_count = 0;  // 0: process mode.
  RankMap map = RankMap::block;
  std::vector<HostEntry> hosts;                               // Empty: this machine.
  std::uint32_t processes_per_host = 0;                       // 0: shared out evenly.
  std::string ssh = "ssh";                                    // Command, may have options.
  std::vector<std::pair<std::string, std::string>> settings;  // Tunables.
  bool tag_output = false;
  std::uint64_t timeout_ns = 0;  // 0: none.
  OnLoss on_loss = OnLoss::end;
  bool report = false;           // A table at the end, on standard error.
  std::string report_file;       // JSON; empty: none.
  bool verbose = false;
  std::string command_name = "sterna run";  // For messages.
};

struct JobPlan {
  RunOptions options;
  runtime::Job job;  // For all nodes; node_index is set for each.
  std::vector<CrewOrder> crews;
};

/// Fails with invalid_argument when the counts cannot be meant, with unreachable when the program
/// is not there.
[[nodiscard]] Result<JobPlan> make_plan(RunOptions options);

/// Whether `host` names this machine.
[[nodiscard]] bool is_this_host(const std::string& host);
[[nodiscard]] std::string this_host();

/// "a,b:4,c" or the text of a host file (one name a line, "name slots=4", "name:4", # comments).
[[nodiscard]] Result<std::vector<HostEntry>> parse_hosts(std::string_view text);

}  // namespace sterna::launch
