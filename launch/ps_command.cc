// `sterna ps` and `sterna move`: find the running jobs of this user, ask them, tell them.
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "launch/command_line.h"
#include "launch/job_client.h"
#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/report.h"
#include "launch/run.h"
#include "launch/status_server.h"

namespace sterna::launch {

int ps_command(std::span<char* const> arguments) {
  bool as_json = false;
  CLI::App app{
      "Lists the running jobs of this user: ranks, where they are, load, moves, and why a\n"
      "rank could not move.",
      "sterna ps"};
  app.add_flag("--json", as_json, "As a JSON list, one object a job");
  if (const std::optional<int> exit_code = parse(app, arguments)) {
    return *exit_code;
  }
  Result<std::string> folder = status_folder();
  if (!folder) {
    print_error("sterna ps", folder.error().text);
    return 1;
  }
  nlohmann::json jobs = nlohmann::json::array();
  bool is_one_silent = false;
  for (const std::string& path : job_sockets(folder.value())) {
    nlohmann::json job = ask_status(path);
    if (job.is_object()) {
      jobs.push_back(std::move(job));
    } else if (::access(path.c_str(), F_OK) == 0) {  // Else it has ended meanwhile.
      is_one_silent = true;
      print_error("sterna ps", fmt::format("job {} does not answer; is it stopped?",
                                           path.substr(path.rfind('-') + 1)));
    }
  }
  if (as_json) {
    fmt::print("{}\n", json_text(jobs, 1));
  } else if (jobs.empty() && !is_one_silent) {
    fmt::print("no job is running\n");
  }
  for (std::size_t i = 0; i < jobs.size() && !as_json; ++i) {
    fmt::print("{}{}", i == 0 ? "" : "\n", job_table(jobs[i]));
  }
  return 0;
}

int move_command(std::span<char* const> arguments) {
  unsigned job = 0;
  unsigned rank = 0;
  unsigned node = 0;
  CLI::App app{
      "Asks a running job (sterna run --nodes) to move a rank to another node. The rank goes\n"
      "at its next MPI call; sterna ps shows where it is.\n\n"
      "Example: sterna move 4242 3 1",
      "sterna move"};
  app.add_option("JOB", job, "Number of the job, as sterna ps prints it")->required();
  app.add_option("RANK", rank, "Which rank")->required();
  app.add_option("NODE", node, "Where to")->required();
  if (const std::optional<int> exit_code = parse(app, arguments)) {
    return *exit_code;
  }
  Result<std::string> folder = status_folder();
  if (!folder) {
    print_error("sterna move", folder.error().text);
    return 1;
  }
  const std::optional<std::string> answer =
      ask(job_socket(folder.value(), job), fmt::format("move {} {}\n", rank, node));
  if (!answer) {
    print_error("sterna move", fmt::format("no job {} is running; sterna ps lists them", job));
    return 1;
  }
  if (answer->find("true") == std::string::npos) {
    print_error("sterna move",
                fmt::format("job {} has no running rank {} or no node {}, or was started without "
                            "--nodes",
                            job, rank, node));
    return 1;
  }
  return 0;
}

}  // namespace sterna::launch
