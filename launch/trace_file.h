// The trace of a job: from the files that its nodes write, FILE.node-0 and so on, to the one FILE
// that the user asked for.
#pragma once

#include <string>
#include <vector>

#include "launch/plan.h"

namespace sterna::launch {

/// Where the trace shall go, as an absolute path: by option, environment or configuration; empty:
/// nowhere. The nodes are told by the options.
[[nodiscard]] std::string choose_trace(RunOptions& options);

/// Before the job, when nothing else is wrong: the file at `path` can be written. What it has is
/// kept until the trace is there; what earlier jobs have left beside it is removed.
[[nodiscard]] Result<> prepare_trace(const std::string& path);

/// After the job: gathers the files of the nodes, from other hosts too, writes `path` and removes
/// them. What is missing is in `warnings`.
[[nodiscard]] Result<> finish_trace(const JobPlan& plan, const std::string& path,
                                    std::vector<std::string>& warnings);

/// Reads files of nodes and writes a whole one.
[[nodiscard]] Result<> merge_traces(const std::vector<std::string>& files, const std::string& path);

}  // namespace sterna::launch
