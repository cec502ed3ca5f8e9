// Runs a job from options to exit code: plan, crews, status socket, report.
#pragma once

#include "launch/plan.h"

namespace sterna::launch {

inline constexpr int kUsageExitCode = 2;

/// Returns the exit code for the user; errors have been printed.
[[nodiscard]] int run_job(RunOptions options);

/// Prints "<command>: <text>" on standard error.
void print_error(const std::string& command, const std::string& text);

}  // namespace sterna::launch
