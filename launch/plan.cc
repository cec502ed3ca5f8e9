// From options to orders: counts, placement of ranks on nodes and of nodes on hosts, environments.
#include "launch/plan.h"

#include <array>
#include <cstdlib>
#include <memory>

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/hosts.h"
#include "launch/large_pages.h"
#include "launch/plan_checks.h"
#include "launch/spawn.h"
#include "net/drivers/shm/segment.h"

namespace sterna::launch {
namespace {

std::string working_folder() {
  std::array<char, 4096> folder{};
  return ::getcwd(folder.data(), folder.size()) != nullptr ? folder.data() : "/";
}

std::vector<std::uint32_t> place_ranks(RankMap map, std::uint32_t rank_count,
                                       std::uint32_t node_count) {
  std::vector<std::uint32_t> nodes(rank_count);
  const std::uint32_t share = rank_count / node_count;
  const std::uint32_t larger_count = rank_count % node_count;  // Nodes with share + 1 ranks.
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
    if (map == RankMap::cyclic) {
      nodes[rank] = rank % node_count;
    } else if (rank < larger_count * (share + 1)) {
      nodes[rank] = rank / (share + 1);
    } else {
      nodes[rank] = larger_count + (rank - larger_count * (share + 1)) / share;
    }
  }
  return nodes;
}

/// PATH as the program will see it.
std::string path_of(const Application& application) {
  for (const auto& [name, value] : application.environment) {
    if (name == "PATH") {
      return value;
    }
  }
  const char* const path = std::getenv("PATH");
  return path != nullptr ? path : "/usr/bin:/bin";
}

Result<std::string> program_of(const Application& application) {
  const std::string& program = application.arguments.front();
  if (program.empty()) {
    return Error{Errc::invalid_argument, "the name of the program is empty"};
  }
  struct stat status {};
  if (!application.directory.empty() &&
      (::stat(application.directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))) {
    return Error{Errc::unreachable, "there is no folder " + application.directory + " to run in"};
  }
  std::string named = program;
  if (!application.directory.empty() && program.find('/') != std::string::npos &&
      program.front() != '/') {
    named = application.directory + "/" + program;  // Looked up after the change of folder.
  }
  std::string found = find_program(named, path_of(application));
  if (found.empty()) {
    return Error{Errc::unreachable, program + ": no such program" +
                                        (program.find('/') == std::string::npos
                                             ? " in PATH; is './" + program + "' meant?"
                                             : " (no file, or not executable)")};
  }
  return found;
}

std::string absolute(const std::string& path) {
  std::unique_ptr<char, decltype(&std::free)> real{::realpath(path.c_str(), nullptr), &std::free};
  return real != nullptr ? real.get() : path;
}

std::string node_program() {
  for (const char* place : {"/sterna-node", "/../libexec/sterna/sterna-node"}) {
    if (std::string file = find_program(own_folder() + place, ""); !file.empty()) {
      return file;
    }
  }
  return own_folder() + "/sterna-node";
}

/// Orders for all processes of one node each.
ProcessOrder order_of(const JobPlan& plan, std::uint32_t node, const Application& application,
                      bool is_local) {
  ProcessOrder order;
  order.node = node;
  order.directory =
      application.directory.empty() && !is_local ? working_folder() : application.directory;
  order.environment = environment_of(application, is_local);
  order.arguments = plan.options.node_count > 0 ? std::vector<std::string>{node_program()}
                                                : application.arguments;
  order.takes_input = plan.job.map.node_of_rank[0] == node;
  return order;
}

/// Counts, places and secrets: all but the programs.
Result<> describe_job(const RunOptions& options, std::uint32_t rank_count, runtime::Job& job) {
  const bool in_nodes = options.node_count > 0;
  job.mode = in_nodes ? runtime::JobMode::node : runtime::JobMode::process;
  job.map.rank_count = rank_count;
  job.map.node_count = in_nodes ? options.node_count : rank_count;
  job.map.node_of_rank = place_ranks(options.map, job.map.rank_count, job.map.node_count);
  job.settings = options.settings;
  if (::sodium_init() < 0) {
    return Error{Errc::system, "launcher: the system gives no random numbers"};
  }
  ::randombytes_buf(job.map.secret.data(), job.map.secret.size());
  ::randombytes_buf(&job.map.job_id, sizeof job.map.job_id);
  return Done{};
}

/// Looks for the programs where the first node will: here, or else its agent looks.
Result<> find_programs(const RunOptions& options, bool is_here, runtime::Job& job) {
  const bool in_nodes = options.node_count > 0;
  for (const Application& application : options.applications) {
    Result<std::string> program =
        is_here ? program_of(application) : Result{application.arguments.front()};
    if (!program) {
      return program.error();
    }
    if (in_nodes) {
      job.program = is_here ? absolute(program.value()) : program.value();
      job.arguments = application.arguments;
    }
  }
  return Done{};
}

/// Orders for all nodes, by crew.
void fill_crews(JobPlan& plan, const std::vector<HostEntry>& hosts,
                const std::vector<std::size_t>& host_of_node) {
  const bool in_nodes = plan.options.node_count > 0;
  plan.crews.resize(hosts.size());
  std::size_t application = 0;
  std::uint32_t left = plan.options.applications[0].rank_count;
  bool has_large_pages = wants_large_pages(plan.options, plan.options.applications[0]);
  for (std::uint32_t node = 0; node < plan.job.map.node_count; ++node) {
    if (!in_nodes && left == 0) {
      left = plan.options.applications[++application].rank_count;
      has_large_pages = wants_large_pages(plan.options, plan.options.applications[application]);
    }
    --left;
    const std::string& host = hosts[host_of_node[node]].name;
    CrewOrder& crew = plan.crews[host_of_node[node]];
    plan.job.map.host_of_node.push_back(host);
    crew.host = host;
    crew.segment_bytes = net::shm::kSegmentBytes;
    crew.processes.push_back(
        order_of(plan, node, plan.options.applications[application], is_this_host(host)));
    if (has_large_pages) {
      ask_for_large_pages(crew.processes.back().environment);
    }
  }
  std::erase_if(plan.crews, [](const CrewOrder& order) { return order.processes.empty(); });
}

}  // namespace

Result<JobPlan> make_plan(RunOptions options) {
  if (Result<> checked = check_options(options); !checked) {
    return checked.error();
  }
  JobPlan plan;
  const auto rank_count = static_cast<std::uint32_t>(count_ranks(options));
  if (Result<> described = describe_job(options, rank_count, plan.job); !described) {
    return described.error();
  }
  std::vector<HostEntry> hosts = options.hosts;
  if (hosts.empty()) {
    hosts.push_back({.name = this_host()});
  }
  auto host_of_node = hosts_of_nodes(options, hosts, plan.job.map.node_count);
  if (!host_of_node) {
    return host_of_node.error();
  }
  if (Result<> found = find_programs(options, is_this_host(hosts.front().name), plan.job); !found) {
    return found.error();
  }
  plan.options = std::move(options);
  fill_crews(plan, hosts, host_of_node.value());
  return plan;
}

}  // namespace sterna::launch
