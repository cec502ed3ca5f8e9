// Puts a job together, lets it run, reports, and leaves nothing behind.
#include "launch/run.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/describe.h"
#include "launch/input_relay.h"
#include "launch/job.h"
#include "launch/local_crew.h"
#include "launch/remote_crew.h"
#include "launch/report.h"
#include "launch/status_server.h"
#include "launch/trace_file.h"

namespace sterna::launch {
namespace {

constexpr std::uint64_t kReapNs = 500'000'000;
// What the project promises: a failed job has ended 5 s after the failure, and this is all of it.
static_assert(kEndNs + kReapNs < 5'000'000'000);

/// Descriptors 0 to 2 exist from now on, so that none of ours takes their numbers.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  ::close(fd);
}

/// Waits for the killed rest: the guardian, and orphans of ranks, which are ours as the subreaper.
void reap_all() {
  const std::uint64_t deadline_ns = now_ns() + kReapNs;
  while (now_ns() < deadline_ns) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid < 0) {
      return;
    }
    if (pid == 0) {
      // An orphan that had left its process group is still to be found.
      if (std::unique_ptr<std::FILE, decltype(&std::fclose)> children{
              std::fopen(fmt::format("/proc/self/task/{}/children", ::getpid()).c_str(), "r"),
              &std::fclose};
          children != nullptr) {
        for (int child = 0; std::fscanf(children.get(), "%d", &child) == 1;) {
          ::kill(child, SIGKILL);
        }
      }
      ::usleep(1000);
    }
  }
}

/// The job's exit code is the program's: a trace that cannot be written is a warning.
void write_trace(const JobPlan& plan, const std::string& path) {
  std::vector<std::string> warnings;
  if (Result<> finished = finish_trace(plan, path, warnings); !finished) {
    warnings.push_back(finished.error().text);
  }
  for (const std::string& warning : warnings) {
    print_error(plan.options.command_name, "warning: trace: " + warning);
  }
}

void say_plan(const JobPlan& plan) {
  for (const CrewOrder& crew : plan.crews) {
    print_error(plan.options.command_name,
                fmt::format("host {}: {} process{}", crew.host, crew.processes.size(),
                            crew.processes.size() == 1 ? "" : "es"));
  }
}

}  // namespace

void print_error(const std::string& command, const std::string& text) {
  // Who cannot be told is not told: this must not end a job.
  static_cast<void>(std::fputs(fmt::format("{}: {}\n", command, text).c_str(), stderr));
}

int run_job(RunOptions options) {
  const std::string command = options.command_name;
  open_standard_descriptors();
  const std::string trace = choose_trace(options);
  Result<JobPlan> plan = make_plan(std::move(options));
  if (!plan) {
    print_error(command, plan.error().text);
    return plan.error().code == Errc::unreachable ? 127 : kUsageExitCode;
  }
  if (Result<> prepared = trace.empty() ? Done{} : prepare_trace(trace); !prepared) {
    print_error(command, prepared.error().text);
    return kUsageExitCode;
  }
  Result<Loop> opened = Loop::open();
  if (!opened) {
    print_error(command, opened.error().text);
    return 1;
  }
  Loop loop = std::move(opened.value());
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (plan.value().options.verbose) {
    say_plan(plan.value());
  }
  int exit_code = 0;
  {
    const RunOptions& wanted = plan.value().options;
    LineOutput output{
        loop,
        {.tag_lines = wanted.tag_output, .pass_through = plan.value().job.map.rank_count == 1}};
    const std::string ssh = wanted.ssh;
    const std::vector<CrewOrder> crews = plan.value().crews;
    MonotonicClock clock;
    Job job{loop, output, std::move(plan.value()), clock};
    // A local rank 0 takes our input itself, unless it is a terminal, which only we may read.
    const bool relays_input = input_is_terminal() || !is_this_host(crews.front().host);
    for (const CrewOrder& crew : crews) {
      if (is_this_host(crew.host)) {
        job.add_crew(std::make_unique<LocalCrew>(
            loop, job, crew, LocalCrew::Options{.input_fd = relays_input ? -1 : 0}));
      } else {
        job.add_crew(std::make_unique<RemoteCrew>(loop, job, crew, ssh));
      }
    }
    job.start();
    std::optional<InputRelay> relay;
    if (relays_input) {
      relay.emplace(loop, job);
    }
    StatusServer status{loop, job};
    if (Result<> listening = status.open(); !listening) {
      job.warn(listening.error().text + "; sterna ps will not see this job");
    }
    exit_code = job.run([&] {
      if (relay) {
        relay->step();
      }
      status.step();
      return status.is_busy();
    });
    if (output.error_number() != 0) {
      print_error(command, "output of the ranks was lost: it cannot be written: " +
                               error_number_text(output.error_number()));
      exit_code = exit_code != 0 ? exit_code : 1;
    }
    if (!trace.empty()) {
      write_trace(job.plan(), trace);
    }
  }
  reap_all();
  return exit_code;
}

}  // namespace sterna::launch
