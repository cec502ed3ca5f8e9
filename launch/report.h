// What is known of a job, as one JSON document: `sterna ps` and the report at the end print it.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "launch/job.h"

namespace sterna::launch {

/// Keys: job, command, mode, state, seconds, ranks (list), nodes (list).
[[nodiscard]] nlohmann::json describe_job(const Job& job);

/// The same of a program without a launcher, from what it answers (runtime/lone_status.h): its
/// mode is "alone", and it has no ranks. Null: the answer makes no sense.
[[nodiscard]] nlohmann::json describe_program(int process, const std::string& answer);

/// The same for a reader.
[[nodiscard]] std::string job_table(const nlohmann::json& description);

/// To standard error and to the file, as the options want. False: the file cannot be written.
bool write_report(const Job& job, LineOutput& output, int exit_code);

}  // namespace sterna::launch
