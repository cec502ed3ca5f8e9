// What is known of a job, as one JSON document: `sterna ps` and the report at the end print it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/job.h"

namespace sterna::launch {

/// Keys: job, command, mode, state, seconds, ranks (list), nodes (list).
[[nodiscard]] nlohmann::json describe_job(const Job& job);

/// User threads and bubbles of a node of it, as a tree, one a line; then what is wrong with them.
[[nodiscard]] std::vector<std::string> entity_rows(const nlohmann::json& node);

/// The same for a reader.
[[nodiscard]] std::string job_table(const nlohmann::json& description);

/// To standard error and to the file, as the options want. False: the file cannot be written.
bool write_report(const Job& job, LineOutput& output, int exit_code);

}  // namespace sterna::launch
