// From options to orders: counts, placement of ranks on nodes and of nodes on hosts, environments.
#include "launch/plan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <sodium.h>
#include <unistd.h>

#include "launch/spawn.h"
#include "net/drivers/shm/segment.h"

namespace sterna::launch {
namespace {

Error wrong(std::string text) {
  return {Errc::invalid_argument, std::move(text)};
}

/// A variable that is the host's, or ours, is not given to other hosts.
bool is_private(std::string_view variable, bool is_local) {
  const std::string_view name = variable.substr(0, variable.find('='));
  constexpr std::array kNever = {std::string_view{runtime::kControlVariable},
                                 std::string_view{"STERNA_NODES"}};
  constexpr std::array kLocal = {std::string_view{"HOSTNAME"},
                                 std::string_view{"DISPLAY"},
                                 std::string_view{"TMPDIR"},
                                 std::string_view{"XDG_RUNTIME_DIR"},
                                 std::string_view{"DBUS_SESSION_BUS_ADDRESS"},
                                 std::string_view{"SSH_CLIENT"},
                                 std::string_view{"SSH_CONNECTION"},
                                 std::string_view{"SSH_TTY"},
                                 std::string_view{"SSH_AUTH_SOCK"}};
  return std::find(kNever.begin(), kNever.end(), name) != kNever.end() ||
         (!is_local && std::find(kLocal.begin(), kLocal.end(), name) != kLocal.end());
}

std::vector<std::string> environment_of(const Application& application, bool is_local) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const std::string_view name = variable.substr(0, variable.find('='));
    const bool is_replaced =
        std::any_of(application.environment.begin(), application.environment.end(),
                    [&](const auto& added) { return added.first == name; });
    if (!is_replaced && !is_private(variable, is_local)) {
      result.emplace_back(variable);
    }
  }
  for (const auto& [name, value] : application.environment) {
    result.push_back(name + "=" + value);
  }
  return result;
}

std::string working_folder() {
  std::array<char, 4096> folder{};
  return ::getcwd(folder.data(), folder.size()) != nullptr ? folder.data() : "/";
}

Result<> check_counts(const RunOptions& options, std::uint64_t rank_count) {
  if (rank_count == 0 || rank_count > runtime::kRankCountMax) {
    return wrong("-n " + std::to_string(rank_count) + ": the number of ranks must be from 1 to " +
                 std::to_string(runtime::kRankCountMax));
  }
  const std::uint64_t node_count = options.node_count == 0 ? rank_count : options.node_count;
  if (node_count > runtime::kNodeCountMax) {
    return wrong(
        (options.node_count == 0 ? "-n " : "--nodes ") + std::to_string(node_count) +
        ": a job has at most " + std::to_string(runtime::kNodeCountMax) +
        (options.node_count == 0 ? " processes; use --nodes to put many ranks in each" : " nodes"));
  }
  if (options.node_count > rank_count) {
    return wrong("--nodes " + std::to_string(options.node_count) + " with -n " +
                 std::to_string(rank_count) + ": there must be at least as many ranks as nodes");
  }
  if (options.node_count > 0 && options.applications.size() > 1) {
    return wrong("--nodes runs one program in all ranks; ':' needs one process a rank");
  }
  return Done{};
}

/// The index in `hosts` of the host of each node.
Result<std::vector<std::size_t>> hosts_of_nodes(const RunOptions& options,
                                                const std::vector<HostEntry>& hosts,
                                                std::size_t node_count) {
  std::vector<std::size_t> result;
  const bool has_slots = std::any_of(hosts.begin(), hosts.end(),
                                     [](const HostEntry& host) { return host.slot_count != 0; });
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    // Without slots: shares that differ by one at most, the larger ones first.
    std::size_t share = node_count / hosts.size() + (h < node_count % hosts.size() ? 1 : 0);
    if (options.processes_per_host != 0) {
      share = options.processes_per_host;
    } else if (has_slots) {
      share = std::max<std::size_t>(hosts[h].slot_count, 1);
    }
    for (std::size_t i = 0; i < share && result.size() < node_count; ++i) {
      result.push_back(h);
    }
  }
  if (result.size() < node_count) {
    return wrong(std::to_string(node_count) + " processes do not fit on the hosts, which take " +
                 std::to_string(result.size()) + ": raise their slots (host:N) or -ppn");
  }
  return result;
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

}  // namespace

std::string this_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

bool is_this_host(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == this_host();
}

Result<std::vector<HostEntry>> parse_hosts(std::string_view text) {
  std::vector<HostEntry> hosts;
  std::string plain;
  bool is_comment = false;
  for (const char c : text) {
    is_comment = c == '#' || (is_comment && c != '\n');
    plain += is_comment ? ' ' : (c == ',' ? '\n' : c);
  }
  while (!plain.empty()) {
    std::string line = plain.substr(0, plain.find('\n'));
    plain.erase(0, line.size() + 1);
    for (const char* mark : {" slots=", "\tslots=", " max_slots=", " "}) {
      if (const std::size_t at = line.find(mark); at != std::string::npos && at > 0) {
        line.replace(at, std::string_view{mark}.size(), ":");
      }
    }
    line.erase(
        std::remove_if(line.begin(), line.end(), [](char c) { return std::isspace(c) != 0; }),
        line.end());
    while (!line.empty() && line.back() == ':') {
      line.pop_back();
    }
    if (line.empty()) {
      continue;
    }
    HostEntry host{.name = line.substr(0, line.find(':')), .slot_count = 0};
    if (const std::size_t colon = line.find(':'); colon != std::string::npos) {
      const char* const end = line.data() + line.size();
      const auto [stop, bad] = std::from_chars(line.data() + colon + 1, end, host.slot_count);
      if (bad != std::errc{} || stop != end || host.slot_count == 0) {
        return wrong("'" + line + "': after the host's name, a count of slots from 1 is expected");
      }
    }
    if (host.name.empty() || host.name.front() == '-') {
      return wrong("'" + line + "' is no name of a host");
    }
    const auto known = std::find_if(hosts.begin(), hosts.end(), [&](const HostEntry& entry) {
      return entry.name == host.name;
    });
    if (known == hosts.end()) {
      hosts.push_back(std::move(host));
    } else {
      known->slot_count = std::max(known->slot_count, 1u) + std::max(host.slot_count, 1u);
    }
  }
  return hosts;
}

Result<JobPlan> make_plan(RunOptions options) {
  std::uint64_t rank_count = 0;
  for (const Application& application : options.applications) {
    rank_count += application.rank_count;
  }
  if (Result<> counts = check_counts(options, rank_count); !counts) {
    return counts.error();
  }
  JobPlan plan;
  runtime::Job& job = plan.job;
  const bool in_nodes = options.node_count > 0;
  job.mode = in_nodes ? runtime::JobMode::node : runtime::JobMode::process;
  job.map.rank_count = static_cast<std::uint32_t>(rank_count);
  job.map.node_count = in_nodes ? options.node_count : job.map.rank_count;
  job.map.node_of_rank = place_ranks(options.map, job.map.rank_count, job.map.node_count);
  job.settings = options.settings;
  if (::sodium_init() < 0) {
    return Error{Errc::system, "launcher: the system gives no random numbers"};
  }
  ::randombytes_buf(job.map.secret.data(), job.map.secret.size());
  ::randombytes_buf(&job.map.job_id, sizeof job.map.job_id);
  std::vector<HostEntry> hosts = options.hosts;
  if (hosts.empty()) {
    hosts.push_back({.name = this_host()});
  }
  auto host_of_node = hosts_of_nodes(options, hosts, job.map.node_count);
  if (!host_of_node) {
    return host_of_node.error();
  }
  for (Application& application : options.applications) {
    if (!is_this_host(hosts.front().name)) {
      continue;  // The first agent looks.
    }
    Result<std::string> program = program_of(application);
    if (!program) {
      return program.error();
    }
    if (in_nodes) {
      job.program = absolute(program.value());
      job.arguments = application.arguments;
    }
  }
  if (in_nodes && job.program.empty()) {
    job.program = options.applications.front().arguments.front();
    job.arguments = options.applications.front().arguments;
  }
  plan.options = std::move(options);
  plan.crews.resize(hosts.size());
  std::size_t application = 0;
  std::uint32_t left = plan.options.applications[0].rank_count;
  for (std::uint32_t node = 0; node < job.map.node_count; ++node) {
    if (!in_nodes && left == 0) {
      left = plan.options.applications[++application].rank_count;
    }
    --left;
    const std::size_t host = host_of_node.value()[node];
    job.map.host_of_node.push_back(hosts[host].name);
    plan.crews[host].host = hosts[host].name;
    plan.crews[host].segment_bytes = net::shm::kSegmentBytes;
    plan.crews[host].processes.push_back(order_of(
        plan, node, plan.options.applications[application], is_this_host(hosts[host].name)));
  }
  std::erase_if(plan.crews, [](const CrewOrder& crew) { return crew.processes.empty(); });
  return plan;
}

}  // namespace sterna::launch
