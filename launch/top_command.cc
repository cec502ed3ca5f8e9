// `sterna top`: a running job, looked at again and again.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "launch/command_line.h"
#include "launch/job_client.h"
#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/run.h"
#include "launch/status_server.h"
#include "launch/terminal.h"
#include "launch/top_view.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMillisecond = 1'000'000;

struct TopOptions {
  unsigned job = 0;  // 0: the only one.
  double interval = 1;
  bool is_once = false;
  bool as_json = false;
};

/// Null: the job has ended, or its launcher has not answered in time.
json look(const std::string& path) {
  json job = ask_status(path);
  return job.is_object() && job.contains("ranks") && job.contains("nodes") ? job : json{};
}

/// A launcher that waits for its turn on a busy machine, or is stopped, still has its socket.
bool has_ended(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0;
}

/// Path of the socket of the job that is meant.
Result<std::string> find_job(unsigned job) {
  Result<std::string> folder = status_folder();
  if (!folder) {
    return folder;
  }
  if (job != 0) {
    return job_socket(folder.value(), job);
  }
  std::vector<std::string> running;
  for (const std::string& path : job_sockets(folder.value())) {
    if (!look(path).is_null()) {
      running.push_back(path);
    }
  }
  if (running.size() != 1) {
    return Error{
        Errc::invalid_argument,
        running.empty()
            ? "no job of this user is running"
            : fmt::format("{} jobs are running; sterna ps lists them: which one?", running.size())};
  }
  return running.front();
}

void print(const json& job, const TopOptions& options) {
  if (options.as_json) {
    fmt::print("{}\n", json_text(job));
  } else {
    for (const std::string& line : render_top(job, {}, 200, 0)) {
      fmt::print("{}\n", line);
    }
    if (!options.is_once) {
      fmt::print("\n");
    }
  }
  std::fflush(stdout);
}

/// Until the job or our reader has gone.
void print_on(const std::string& path, const TopOptions& options, json before) {
  for (;;) {
    ::usleep(static_cast<useconds_t>(options.interval * 1e6));
    json now = look(path);
    if (now.is_null()) {
      if (options.is_once || has_ended(path)) {
        return;
      }
      continue;
    }
    print(with_rates(now, before), options);
    if (options.is_once || std::ferror(stdout) != 0) {
      return;
    }
    before = std::move(now);
  }
}

/// True: the job has ended; false: the user has left.
bool run_in_terminal(const std::string& path, const TopOptions& options, json before) {
  Terminal terminal;
  TopChoices choices;
  json shown = with_rates(before, json{});
  std::uint64_t next_ns = now_ns();
  for (;;) {
    const std::uint64_t now = now_ns();
    if (now >= next_ns) {
      next_ns = now + static_cast<std::uint64_t>(options.interval * 1e9);
      json fresh = look(path);
      if (fresh.is_null() && has_ended(path)) {
        return true;
      }
      if (!fresh.is_null() && !choices.is_paused) {
        // Right after the start there is no rate yet to be seen.
        shown = with_rates(fresh, before["seconds"] == fresh["seconds"] ? json{} : before);
        before = std::move(fresh);
      }
    }
    const TerminalSize size = terminal.size();
    terminal.show(render_top(shown, choices, size.width, size.height));
    const std::uint64_t wait_ns = next_ns - std::min(next_ns, now_ns());
    const char key = terminal.wait_key(static_cast<int>(wait_ns / kMillisecond) + 1);
    if (!take_key(choices, key)) {
      return false;
    }
  }
}

int run_top(const TopOptions& options) {
  Result<std::string> path = find_job(options.job);
  if (!path) {
    print_error("sterna top", path.error().text);
    return 1;
  }
  json first = look(path.value());
  if (first.is_null()) {
    print_error("sterna top",
                fmt::format("no job {} is running, or it does not answer; sterna ps lists them",
                            options.job));
    return 1;
  }
  if (options.is_once || options.as_json || !Terminal::is_there()) {
    print_on(path.value(), options, std::move(first));
  } else if (run_in_terminal(path.value(), options, std::move(first))) {
    fmt::print("the job has ended\n");
  }
  return 0;
}

}  // namespace

int top_command(std::span<char* const> arguments) {
  TopOptions options;
  CLI::App app{
      "Shows a running job: use of workers, where each rank runs, messages, moves; user threads "
      "and\n"
      "bubbles with their use, place, load and memory. Keys: q leaves, p stands still, t ranks, b "
      "ranks\n"
      "by node and worker, e user threads and bubbles, r c m v n l y w s order, ? help.",
      "sterna top"};
  app.add_option("JOB", options.job, "Number of the job, as sterna ps prints it; the only one");
  app.add_option("-i,--interval", options.interval, "Seconds between two looks (1)")
      ->check(CLI::Range(0.05, 3600.0))
      ->check(why_no_number)
      ->type_name("SECONDS");
  app.add_flag("--once", options.is_once, "Print one look, of one interval, and leave");
  app.add_flag("--json", options.as_json, "One JSON object a look, each on one line");
  if (const std::optional<int> exit_code = parse(app, arguments)) {
    return *exit_code;
  }
  return run_top(options);
}

}  // namespace sterna::launch
