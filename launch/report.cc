// A job as JSON and as tables.
#include "launch/report.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <span>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/clock.h"
#include "launch/describe.h"
#include "launch/entity_view.h"
#include "launch/json_text.h"

namespace sterna::launch {
namespace {

using nlohmann::json;

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

std::string state_of(const RankRecord& rank, const NodeRecord& node) {
  if (rank.is_ended) {
    return "ended";
  }
  if (rank.is_finalized) {
    return "finalized";
  }
  if (rank.is_initialized) {
    return "running";
  }
  return node.state == NodeRecord::State::waiting ? "waiting" : "starting";
}

/// The newest; the node that said it may have given the rank away since.
const runtime::RankStatus* status_of(const Job& job, std::uint32_t rank) {
  const runtime::RankStatus* newest = nullptr;
  for (const NodeRecord& node : job.nodes()) {
    if (!node.status) {
      continue;
    }
    for (const runtime::RankStatus& status : node.status->ranks) {
      if (status.rank == rank && (newest == nullptr || status.moves >= newest->moves)) {
        newest = &status;
      }
    }
  }
  return newest;
}

json describe_rank(const Job& job, std::uint32_t rank) {
  const RankRecord& record = job.ranks()[rank];
  const NodeRecord& node = job.nodes()[record.node];
  json result{{"rank", rank},
              {"node", record.node},
              {"state", state_of(record, node)},
              {"moves", record.moves}};
  if (record.is_ended) {
    result["exit_code"] = record.exit_code;
  }
  if (job.plan().job.mode == runtime::JobMode::process) {
    result["cpu_seconds"] = seconds(node.end.cpu_ns);
  } else if (const runtime::RankStatus* const status = status_of(job, rank); status != nullptr) {
    result["state"] = status->state.empty() ? result["state"].get<std::string>() : status->state;
    result["cpu_seconds"] = seconds(status->cpu_ns);
    result["load"] = status->load;
    result["messages"] = status->messages;
    if (!status->activity.empty()) {
      result["activity"] = status->activity;
      result["worker"] = status->worker;
    }
    if (!status->refusal.empty()) {
      result["refusal"] = status->refusal;
    }
  }
  return result;
}

/// User threads and bubbles, and what is wrong with them, of programs that have some.
void add_entities(const runtime::NodeStatus& status, json& result) {
  for (const runtime::EntityStatus& entity : status.entities) {
    json one{{"depth", entity.depth},
             {"kind", entity.is_bubble ? "bubble" : "thread"},
             {"id", entity.key},
             {"name", entity.name},
             {"place", entity.place},
             {"priority", entity.priority},
             {"load", entity.load},
             {"memory_bytes", entity.memory},
             {"last_place", entity.last_place}};
    one["holder"] = entity.holder != 0 ? json(entity.holder) : json{};
    if (entity.is_bubble) {
      one["threads"] = entity.threads;
      one["running"] = entity.running;
      one["ready"] = entity.ready;
    } else {
      one["state"] = entity.state;
      one["cpu_seconds"] = seconds(entity.cpu_ns);
    }
    result["entities"].push_back(std::move(one));
  }
  if (!status.faults.empty()) {
    result["faults"] = status.faults;
  }
}

/// What a node says of itself.
void add_status(const runtime::NodeStatus& status, json& result) {
  result["workers"] = status.workers;
  result["threads"] = status.threads;
  json busy = json::array();
  for (const std::uint64_t busy_ns : status.busy_ns) {
    busy.push_back(seconds(busy_ns));
  }
  result["busy_seconds"] = busy;
  result["arrived"] = status.arrived;
  result["left"] = status.left;
  json refusals = json::object();
  for (const auto& [reason, count] : status.refusals) {
    refusals[reason] = count;
  }
  result["refusals"] = refusals;
  add_entities(status, result);
}

json describe_node(const Job& job, std::uint32_t node) {
  const NodeRecord& record = job.nodes()[node];
  std::uint32_t rank_count = 0;
  for (const RankRecord& rank : job.ranks()) {
    rank_count += rank.node == node ? 1 : 0;
  }
  json result{{"node", node},
              {"host", job.plan().job.map.host_of_node[node]},
              {"pid", record.pid},
              {"ranks", rank_count},
              {"holds_messages", record.flushed != record.departures},
              {"state", record.state == NodeRecord::State::ended ? "ended" : "running"}};
  std::uint64_t cpu_ns = record.end.cpu_ns;
  if (record.status) {
    cpu_ns = cpu_ns != 0 ? cpu_ns : record.status->cpu_ns;
    result["answered_seconds_ago"] = seconds(now_ns() - record.status_at_ns);
    add_status(*record.status, result);
  }
  result["cpu_seconds"] = seconds(cpu_ns);
  return result;
}

std::string percent(const json& value) {
  return value.is_number() ? fmt::format("{:.0f} %", value.get<double>() * 100) : "-";
}

std::string time_cell(const json& object) {
  const auto found = object.find("cpu_seconds");
  return found != object.end() ? fmt::format("{:.2f} s", found->get<double>()) : "-";
}

}  // namespace

json describe_job(const Job& job) {
  std::string command;
  for (const std::string& word : job.plan().options.applications.front().arguments) {
    command += (command.empty() ? "" : " ") + word;
  }
  json result{{"job", ::getpid()},
              {"command", command},
              {"mode", job.plan().job.mode == runtime::JobMode::node ? "node" : "process"},
              {"state", job.is_ending() ? "ending" : "running"},
              {"seconds", seconds(now_ns() - job.start_ns())},
              {"nodes", json::array()},
              {"ranks", json::array()}};
  for (std::uint32_t node = 0; node < job.nodes().size(); ++node) {
    result["nodes"].push_back(describe_node(job, node));
  }
  for (std::uint32_t rank = 0; rank < job.ranks().size(); ++rank) {
    result["ranks"].push_back(describe_rank(job, rank));
  }
  return result;
}

namespace {

/// Since its start, as the kernel knows it: to a hundredth of a second.
double age_of(int process) {
  std::ifstream file{fmt::format("/proc/{}/stat", process)};
  std::string text;
  std::getline(file, text);
  // The name, in parentheses, may hold anything; the start is the 20th word after it, in ticks
  // since the machine's start.
  std::istringstream words{text.substr(std::min(text.rfind(')') + 1, text.size()))};
  std::string word;
  for (int i = 0; i < 20; ++i) {
    words >> word;
  }
  timespec time{};
  (void)::clock_gettime(CLOCK_BOOTTIME, &time);
  const double now = static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  const double begin =
      std::strtod(word.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return std::max(now - begin, 0.0);
}

std::string command_of(int process) {
  std::ifstream file{fmt::format("/proc/{}/cmdline", process)};
  std::ostringstream words;
  words << file.rdbuf();  // Of a process that has just ended they cannot be read: then none.
  std::string command = words.str();
  command.erase(command.find_last_not_of('\0') + 1);
  std::ranges::replace(command, '\0', ' ');
  return command;
}

}  // namespace

json describe_program(int process, const std::string& answer) {
  const auto bytes = std::as_bytes(std::span{answer});
  Result<runtime::FrameHeader> header = runtime::decode_header(bytes);
  if (!header || header.value().kind != FrameKind::status ||
      header.value().body_bytes != bytes.size() - runtime::kFrameHeaderBytes) {
    return {};
  }
  Result<runtime::NodeStatus> status =
      runtime::decode_status(bytes.subspan(runtime::kFrameHeaderBytes));
  if (!status) {
    return {};
  }
  char host[256] = {};
  (void)::gethostname(host, sizeof host - 1);
  json node{{"node", 0},
            {"host", host},
            {"pid", process},
            {"ranks", 0},
            {"state", "running"},
            {"holds_messages", false},
            {"cpu_seconds", seconds(status.value().cpu_ns)},
            {"answered_seconds_ago", 0}};
  add_status(status.value(), node);
  return {{"job", process},
          {"command", command_of(process)},
          {"mode", "alone"},
          {"state", "running"},
          {"seconds", age_of(process)},
          {"nodes", json::array({std::move(node)})},
          {"ranks", json::array()}};
}

std::string job_table(const json& job) {
  std::string text =
      fmt::format("job {}  {}  ({} mode, {}, {})\n", job.at("job").get<int>(),
                  job.at("command").get<std::string>(), job.at("mode").get<std::string>(),
                  job.at("state").get<std::string>(),
                  time_text(static_cast<std::uint64_t>(job.at("seconds").get<double>() * 1e9)));
  text += fmt::format("  {:>5} {:<16} {:>8} {:>6} {:>10} {:>8} {:>8}\n", "node", "host", "process",
                      "ranks", "cpu", "arrived", "left");
  for (const json& node : job.at("nodes")) {
    text += fmt::format("  {:>5} {:<16} {:>8} {:>6} {:>10} {:>8} {:>8}\n",
                        node.at("node").get<int>(), node.at("host").get<std::string>(),
                        node.at("pid").get<int>(), node.at("ranks").get<int>(), time_cell(node),
                        node.value("arrived", 0), node.value("left", 0));
    const json refusals = node.value("refusals", json::object());
    for (const auto& [reason, count] : refusals.items()) {
      text += fmt::format("        refused {} times: {}\n", count.get<std::uint64_t>(), reason);
    }
  }
  if (!job.at("ranks").empty()) {
    text += fmt::format("  {:>5} {:>5} {:<10} {:>10} {:>6} {:>6}  {}\n", "rank", "node", "state",
                        "cpu", "load", "moves", "why it did not move");
  }
  for (const json& rank : job.at("ranks")) {
    text += fmt::format("  {:>5} {:>5} {:<10} {:>10} {:>6} {:>6}  {}\n", rank.at("rank").get<int>(),
                        rank.at("node").get<int>(), rank.at("state").get<std::string>(),
                        time_cell(rank), percent(rank.value("load", json{})),
                        rank.at("moves").get<int>(), rank.value("refusal", ""));
  }
  for (const json& node : job.at("nodes")) {
    const std::vector<std::string> rows = entity_rows(node);
    if (!rows.empty()) {
      text += fmt::format("  threads of node {}, of {} in all\n", node.at("node").get<int>(),
                          node.value("threads", 0));
      text += entity_title() + "\n";
    }
    for (const std::string& row : rows) {
      text += row + "\n";
    }
  }
  return text;
}

bool write_report(const Job& job, LineOutput& output, int exit_code) {
  const RunOptions& options = job.plan().options;
  if (!options.report && options.report_file.empty()) {
    return true;
  }
  json description = describe_job(job);
  description["state"] = "ended";
  description["exit_code"] = exit_code;
  if (options.report) {
    std::string table = job_table(description);
    table.pop_back();
    output.add_message(table);
  }
  if (!options.report_file.empty()) {
    std::ofstream file{options.report_file};
    file << json_text(description, 1) << "\n";
    file.close();
    return file.good();
  }
  return true;
}

}  // namespace sterna::launch
