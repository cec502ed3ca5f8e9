// `sterna trace`: what a trace says, in numbers; and many files made one.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launch/json_text.h"
#include "launch/parse.h"
#include "launch/run.h"
#include "launch/trace_file.h"
#include "tools/cli/command.h"
#include "trace/reader.h"
#include "trace/summary.h"

namespace sterna::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kRowsMax = 20;

Result<trace::Timeline> read_all(const std::vector<std::string>& files) {
  trace::Reader reader;
  for (const std::string& file : files) {
    Result<std::vector<char>> bytes = trace::load_file(file);
    if (!bytes) {
      return bytes.error();
    }
    if (Result<> added = reader.add(std::as_bytes(std::span{bytes.value()}), file); !added) {
      return added.error();
    }
  }
  return reader.finish();
}

json describe_nodes(const trace::Timeline& timeline) {
  json list = json::array();
  for (const trace::NodeInfo& node : timeline.nodes) {
    list.push_back({{"node", node.node},
                    {"host", node.host},
                    {"pid", node.pid},
                    {"events", node.events},
                    {"broken_records", node.broken_records},
                    {"is_cut_short", node.is_cut_short},
                    {"clock_offset_ns", node.clock_offset_ns},
                    {"clock_by", node.is_offset_from_messages ? "messages"
                                 : node.clock_offset_ns != 0  ? "wire-up"
                                                              : "same clock"}});
  }
  return list;
}

json describe(const trace::Timeline& timeline, const trace::Summary& summary) {
  json result{{"duration_ns", timeline.duration_ns()},
              {"events", timeline.events.size()},
              {"ranks", timeline.rank_count},
              {"nodes", describe_nodes(timeline)},
              {"messages",
               {{"sent", summary.messages},
                {"bytes", summary.message_bytes},
                {"paired", summary.messages_paired},
                {"latency_median_ns", summary.latency_median_ns}}},
              {"network_events", summary.network_events},
              {"workers", json::array()},
              {"threads", json::array()},
              {"calls", json::array()},
              {"moves", json::array()}};
  for (const trace::WorkerTimes& worker : summary.workers) {
    result["workers"].push_back({{"node", worker.node},
                                 {"worker", worker.worker},
                                 {"running_ns", worker.running_ns},
                                 {"asleep_ns", worker.asleep_ns},
                                 {"switches", worker.switches},
                                 {"stolen", worker.stolen}});
  }
  for (const trace::ThreadTimes& thread : summary.threads) {
    result["threads"].push_back({{"name", timeline.name_of(thread.node, thread.key)},
                                 {"node", thread.node},
                                 {"running_ns", thread.running_ns},
                                 {"ready_ns", thread.ready_ns},
                                 {"waiting_ns", thread.waiting_ns},
                                 {"moving_ns", thread.moving_ns},
                                 {"turns", thread.turns},
                                 {"moves", thread.moves}});
  }
  for (const trace::CallTimes& call : summary.calls) {
    result["calls"].push_back({{"name", call.name},
                               {"count", call.count},
                               {"total_ns", call.total_ns},
                               {"longest_ns", call.longest_ns},
                               {"longest_rank", call.longest_rank}});
  }
  for (const trace::Move& move : summary.moves) {
    result["moves"].push_back({{"at_ns", move.begin_ns},
                               {"rank", move.rank},
                               {"from", move.from},
                               {"to", move.to},
                               {"duration_ns", move.duration_ns},
                               {"done", move.is_done}});
  }
  return result;
}

std::string time_of(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  return ns >= 1'000'000'000 ? fmt::format("{:.3f} s", value / 1e9)
         : ns >= 1'000'000   ? fmt::format("{:.2f} ms", value / 1e6)
                             : fmt::format("{:.2f} us", value / 1e3);
}

std::string share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %",
                                  100 * static_cast<double>(part) / static_cast<double>(whole));
}

void print_rest(std::size_t count) {
  if (count > kRowsMax) {
    fmt::print("  ... and {} more (--json has them all)\n", count - kRowsMax);
  }
}

void print_workers(const trace::Timeline& timeline, const trace::Summary& summary) {
  fmt::print("\n  {:<22} {:>9} {:>9} {:>10} {:>8}\n", "worker", "running", "asleep", "switches",
             "stolen");
  for (const trace::WorkerTimes& worker : summary.workers) {
    fmt::print("  {:<22} {:>9} {:>9} {:>10} {:>8}\n",
               fmt::format("node {} worker {}", worker.node, worker.worker),
               share_of(worker.running_ns, timeline.duration_ns()),
               share_of(worker.asleep_ns, timeline.duration_ns()), worker.switches, worker.stolen);
  }
}

void print_threads(const trace::Timeline& timeline, const trace::Summary& summary) {
  fmt::print("\n  {:<28} {:>11} {:>11} {:>11} {:>11} {:>8} {:>6}\n", "thread", "running", "ready",
             "waiting", "moving", "turns", "moves");
  for (std::size_t i = 0; i < std::min(kRowsMax, summary.threads.size()); ++i) {
    const trace::ThreadTimes& thread = summary.threads[i];
    fmt::print("  {:<28} {:>11} {:>11} {:>11} {:>11} {:>8} {:>6}\n",
               timeline.name_of(thread.node, thread.key), time_of(thread.running_ns),
               time_of(thread.ready_ns), time_of(thread.waiting_ns), time_of(thread.moving_ns),
               thread.turns, thread.moves);
  }
  print_rest(summary.threads.size());
}

void print_calls(const trace::Summary& summary) {
  fmt::print("\n  {:<28} {:>9} {:>11} {:>11} {:>11}  {}\n", "call", "count", "total", "mean",
             "longest", "in");
  for (std::size_t i = 0; i < std::min(kRowsMax, summary.calls.size()); ++i) {
    const trace::CallTimes& call = summary.calls[i];
    fmt::print("  {:<28} {:>9} {:>11} {:>11} {:>11}  rank {}\n", call.name, call.count,
               time_of(call.total_ns),
               time_of(call.total_ns / std::max<std::uint64_t>(1, call.count)),
               time_of(call.longest_ns), call.longest_rank);
  }
  print_rest(summary.calls.size());
}

void print_moves(const trace::Summary& summary) {
  for (std::size_t i = 0; i < std::min(kRowsMax, summary.moves.size()); ++i) {
    const trace::Move& move = summary.moves[i];
    fmt::print("{}  at {:>11}  rank {} {} node {} to node {} in {}\n", i == 0 ? "\n" : "",
               time_of(move.begin_ns), move.rank, move.is_done ? "moved from" : "did not move from",
               move.from, move.to, time_of(move.duration_ns));
  }
  print_rest(summary.moves.size());
}

void print_summary(const trace::Timeline& timeline, const trace::Summary& summary) {
  fmt::print("{} of {} rank{} on {} node{}: {} events\n", time_of(timeline.duration_ns()),
             timeline.rank_count, timeline.rank_count == 1 ? "" : "s", timeline.nodes.size(),
             timeline.nodes.size() == 1 ? "" : "s", timeline.events.size());
  for (const trace::NodeInfo& node : timeline.nodes) {
    if (node.is_cut_short) {
      fmt::print("  node {}: its trace ends early: more than trace_bytes, or the disk was full\n",
                 node.node);
    }
    if (node.clock_offset_ns != 0) {
      fmt::print("  node {} (host {}): its clock was moved by {} ns, by {}\n", node.node, node.host,
                 node.clock_offset_ns, node.is_offset_from_messages ? "messages" : "the wire-up");
    }
  }
  fmt::print("{} messages, {} bytes; median from send to match {}\n", summary.messages,
             summary.message_bytes, time_of(summary.latency_median_ns));
  if (!summary.workers.empty()) {
    print_workers(timeline, summary);
  }
  if (!summary.threads.empty()) {
    print_threads(timeline, summary);
  }
  if (!summary.calls.empty()) {
    print_calls(summary);
  }
  print_moves(summary);
}

}  // namespace

int trace_command(std::span<char* const> arguments) {
  std::vector<std::string> files;
  std::string output;
  bool as_json = false;
  bool as_summary = false;
  CLI::App app{
      "Says what a trace has: time by state of workers and ranks, calls of MPI, moves.\n"
      "`sterna run --trace FILE` makes traces; https://ui.perfetto.dev shows them as a timeline.",
      "sterna trace"};
  app.add_option("FILE", files, "A trace, or the files that nodes left (FILE.node-0 ...)")
      ->required();
  app.add_flag("--summary", as_summary, "Print the summary (what happens without options)");
  app.add_flag("--json", as_json, "The summary as JSON, whole");
  app.add_option("-o,--output", output, "Make one trace of the files of nodes")->type_name("FILE");
  if (const std::optional<int> exit_code = launch::parse(app, arguments)) {
    return *exit_code;
  }
  if (!output.empty()) {
    if (Result<> merged = launch::merge_traces(files, output); !merged) {
      launch::print_error("sterna trace", merged.error().text);
      return 1;
    }
  }
  Result<trace::Timeline> timeline = read_all(files);
  if (!timeline) {
    launch::print_error("sterna trace", timeline.error().text);
    return 1;
  }
  const trace::Summary summary = trace::summarise(timeline.value());
  if (as_json) {
    fmt::print("{}\n", launch::json_text(describe(timeline.value(), summary), 1));
  } else if (as_summary || output.empty()) {
    print_summary(timeline.value(), summary);
  }
  return 0;
}

}  // namespace sterna::cli
