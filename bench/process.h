// Running a command and reading what it has measured.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace sterna::bench {

struct Command {
  std::vector<std::string> words = {};        // The program first.
  std::vector<std::string> environment = {};  // NAME=value, added to ours.
  bool is_preferred = false;  // With real-time priority, if allowed: never if ranks spin together.
  double seconds_max = 60;    // After that it is killed, with all it has started.
};

/// What a program printed as "name number", and "wall": seconds from start to end.
using Readings = std::map<std::string, double>;

/// Called while the command runs, every 2 ms, with its id and what it has printed so far.
using Meanwhile = std::function<void(pid_t, const std::string& output)>;

/// Fails when the command cannot be run, ends badly or in time; the text has its last words.
[[nodiscard]] Result<Readings> run_command(const Command& command, const std::string& work_folder,
                                           const Meanwhile& meanwhile = {});

}  // namespace sterna::bench
