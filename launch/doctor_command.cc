// `sterna doctor`: what is wrong here.
#include <algorithm>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <time.h>
#include <unistd.h>

#include "launch/command_line.h"
#include "launch/doctor.h"
#include "launch/job_client.h"
#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/run.h"
#include "launch/status_server.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

// A thread that nobody will run is told after three looks in a row (sched::Engine::audit).
constexpr int kLooks = 4;
constexpr long kLookNs = 120'000'000;
constexpr double kSilentSeconds = 1;  // After all looks: longer than they take together.

/// The socket of job 42 is called job-42, or program-42.
std::string job_name(const std::string& path) {
  return "job " + path.substr(path.rfind('-') + 1);
}

/// What the schedulers of a running job find wrong.
void examine_job(const std::string& path, std::vector<Finding>& findings) {
  json job;
  for (int i = 0; i < kLooks; ++i) {
    if (i != 0) {
      const timespec pause{.tv_sec = 0, .tv_nsec = kLookNs};
      (void)::nanosleep(&pause, nullptr);
    }
    job = ask_status(path);
  }
  if (!job.is_object() || !job.contains("nodes")) {
    if (::access(path.c_str(), F_OK) == 0) {  // Else it has ended meanwhile.
      findings.push_back({Verdict::bad, job_name(path),
                          "it does not answer: its launcher is stopped (kill -CONT), or its output "
                          "is not read"});
    }
    return;
  }
  const std::string about = job_name(path);
  const std::size_t before = findings.size();
  std::size_t entities = 0;
  for (const json& node : job["nodes"]) {
    for (const json& fault : node.value("faults", json::array())) {
      findings.push_back(
          {Verdict::bad, about,
           fmt::format("node {}: {}", node.value("node", 0), fault.get<std::string>())});
    }
    entities += node.value("entities", json::array()).size();
    if (node.value("state", "") == "running" &&
        node.value("answered_seconds_ago", kSilentSeconds) >= kSilentSeconds) {
      findings.push_back(
          {Verdict::notable, about,
           fmt::format("node {} (process {} on {}) does not answer: it is stopped, or computes "
                       "without a call that lets the runtime work",
                       node.value("node", 0), node.value("pid", 0), node.value("host", ""))});
    }
  }
  if (findings.size() == before) {
    findings.push_back({Verdict::good, about,
                        fmt::format("{} nodes, {} threads and bubbles, all in their places",
                                    job["nodes"].size(), entities)});
  }
}

std::vector<Finding> examine_jobs(unsigned job) {
  std::vector<Finding> findings;
  Result<std::string> folder = status_folder();
  if (!folder) {
    return findings;  // judge() has said so.
  }
  if (job != 0) {
    const std::string path = job_socket(folder.value(), job);
    if (::access(path.c_str(), F_OK) == 0) {
      examine_job(path, findings);
    }
    if (findings.empty()) {
      findings.push_back({Verdict::bad, fmt::format("job {}", job),
                          "is not running; sterna ps lists those that are"});
    }
    return findings;
  }
  for (const std::string& path : job_sockets(folder.value())) {
    examine_job(path, findings);
  }
  return findings;
}

const char* word_for(Verdict verdict) {
  return verdict == Verdict::good ? "good" : verdict == Verdict::notable ? "note" : "BAD";
}

void print(const std::vector<Finding>& findings, bool as_json) {
  if (as_json) {
    json list = json::array();
    for (const Finding& one : findings) {
      list.push_back(
          {{"verdict", word_for(one.verdict)}, {"about", one.about}, {"text", one.text}});
    }
    fmt::print("{}\n", json_text(list, 1));
    return;
  }
  for (const Finding& one : findings) {
    fmt::print("{:<5} {:<16} {}\n", word_for(one.verdict), one.about, one.text);
  }
}

}  // namespace

int doctor_command(std::span<char* const> arguments) {
  unsigned job = 0;
  std::vector<std::string> hosts;
  std::string shell = "ssh";
  bool as_json = false;
  if (const char* const wanted = std::getenv("STERNA_SSH"); wanted != nullptr && *wanted != '\0') {
    shell = wanted;
  }
  CLI::App app{
      "Looks for what is wrong: on this machine (processors, shared memory, permissions, limits),\n"
      "on other hosts, and in the running jobs of this user (threads that nobody would ever run).\n"
      "Exit code 1 if something is bad.",
      "sterna doctor"};
  app.add_option("JOB", job, "Look at this job only (default: at all)");
  app.add_option("--hosts,--host", hosts, "Hosts that sterna run would be given")->delimiter(',');
  app.add_option("--launcher-exec", shell, "Command that reaches other hosts (ssh)");
  app.add_flag("--json", as_json, "A list of objects: verdict, about, text");
  if (const std::optional<int> exit_code = parse(app, arguments)) {
    return *exit_code;
  }
  std::vector<Finding> findings = judge(examine(hosts, shell), "sterna " STERNA_VERSION);
  for (Finding& one : examine_jobs(job)) {
    findings.push_back(std::move(one));
  }
  print(findings, as_json);
  const bool has_bad =
      std::ranges::any_of(findings, [](const Finding& one) { return one.verdict == Verdict::bad; });
  return has_bad ? 1 : 0;
}

}  // namespace sterna::launch
