// mpi.latency.*, mpi.bandwidth.*, mpi.rate.shm, mpi.oversubscribed, mpi.start: ours and the peers
// run the same programs.
#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

constexpr int kSizes[] = {1, 8, 64, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
constexpr int kShort[] = {8};
constexpr int kLong[] = {65536, 262144, 1048576, 4194304};

Contest latency_contest(const Bench& bench, std::span<const int> sizes, Candidate ours,
                        const std::vector<Candidate>& peers) {
  Contest contest{.program = "latency",
                  .arguments = {bench.options().quick ? "2" : "41"},
                  .rounds = bench.rounds(7),
                  .candidates = {std::move(ours)}};
  for (const int size : sizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  contest.candidates.insert(contest.candidates.end(), peers.begin(), peers.end());
  return contest;
}

/// A figure a size: the worst decides, since each is judged.
void run_latency(const Row& row, Bench& bench, std::span<const int> sizes, Candidate ours,
                 const std::vector<Candidate>& peers) {
  const std::vector<Standing> standings =
      hold(latency_contest(bench, sizes, std::move(ours), peers), bench);
  for (const int size : sizes) {
    bench.add(compare(
        row, standings,
        {.reading = fmt::format("latency.{}", size), .params = size_text(size), .unit = "us"}));
  }
}

}  // namespace

void run_latency_node(const Row& row, Bench& bench) {
  run_latency(row, bench, kShort, {"ranks of one node", Maker::sterna, {"--nodes", "1"}, {}},
              shm_peers());
}

void run_latency_shm(const Row& row, Bench& bench) {
  run_latency(row, bench, kSizes, {"processes", Maker::sterna, {"--drivers", "shm"}, {}},
              shm_peers());
}

void run_latency_tcp(const Row& row, Bench& bench) {
  run_latency(row, bench, kSizes, {"processes", Maker::sterna, {"--drivers", "tcp"}, {}},
              tcp_peers());
}

namespace {

Contest stream_contest(const Bench& bench, std::span<const int> sizes, int window, Candidate ours,
                       const std::vector<Candidate>& peers) {
  Contest contest{.program = "stream",
                  .arguments = {bench.options().quick ? "2" : "21", std::to_string(window)},
                  .rounds = bench.rounds(7),
                  .candidates = {std::move(ours)}};
  for (const int size : sizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  contest.candidates.insert(contest.candidates.end(), peers.begin(), peers.end());
  return contest;
}

void run_bandwidth(const Row& row, Bench& bench, Candidate ours,
                   const std::vector<Candidate>& peers) {
  const std::vector<Standing> standings =
      hold(stream_contest(bench, kLong, 16, std::move(ours), peers), bench);
  for (const int size : kLong) {
    bench.add(compare(row, standings,
                      {.reading = fmt::format("bandwidth.{}", size),
                       .params = size_text(size),
                       .unit = "MB/s",
                       .more_is_better = true}));
  }
}

}  // namespace

void run_bandwidth_shm(const Row& row, Bench& bench) {
  run_bandwidth(row, bench, {"processes", Maker::sterna, {"--drivers", "shm"}, {}}, shm_peers());
}

void run_bandwidth_tcp(const Row& row, Bench& bench) {
  run_bandwidth(row, bench, {"processes", Maker::sterna, {"--drivers", "tcp"}, {}}, tcp_peers());
}

void run_rate_shm(const Row& row, Bench& bench) {
  Contest contest = stream_contest(
      bench, kShort, 64, {"processes", Maker::sterna, {"--drivers", "shm"}, {}}, shm_peers());
  contest.arguments.front() = bench.options().quick ? "2" : "501";
  bench.add(compare(
      row, hold(contest, bench),
      {.reading = "rate.8", .params = "8 B, 64 at once", .unit = "M/s", .more_is_better = true}));
}

void run_oversubscribed(const Row& row, Bench& bench) {
  const int rank_count = bench.options().quick ? 4 : 32;
  Contest contest{.program = "crowd",
                  .arguments = {bench.options().quick ? "5" : "200"},
                  .rank_count = rank_count,
                  .rounds = bench.rounds(5)};
  contest.candidates = crowd_peers();
  contest.candidates.insert(contest.candidates.begin(),
                            {{"mobile ranks", Maker::sterna, {"--nodes", "1"}, {}}});
  contest.candidates.push_back({"two nodes", Maker::sterna, {"--nodes", "2"}, {}});
  contest.candidates.push_back({"processes", Maker::sterna, {}, {}});
  std::vector<Standing> standings = hold(contest, bench);
  const Standing processes = standings.back();
  standings.pop_back();
  const Standing two_nodes = standings.back();
  standings.pop_back();
  for (const char* const operation : {"barrier", "allreduce"}) {
    bench.add(compare(
        row, standings,
        {.reading = operation,
         .params =
             fmt::format("{}{} ranks",
                         operation == std::string_view{"barrier"} ? "barrier, " : "allreduce 8 B, ",
                         rank_count),
         .unit = "us"}));
  }
  standings.front() = two_nodes;
  for (const char* const operation : {"barrier", "allreduce"}) {
    bench.add(compare(row, standings,
                      {.reading = operation,
                       .params = fmt::format("{}, {} ranks on 2 nodes", operation, rank_count),
                       .unit = "us"}));
  }
  standings.front() = processes;
  for (const char* const operation : {"barrier", "allreduce"}) {
    bench.add(compare(row, standings,
                      {.reading = operation,
                       .params = fmt::format("{}, processes", operation),
                       .unit = "us",
                       .is_information = true}));
  }
}

void run_start(const Row& row, Bench& bench) {
  const int rank_count = bench.options().quick ? 4 : 64;
  Contest contest{.program = "start", .rank_count = rank_count, .rounds = bench.rounds(5)};
  contest.candidates = crowd_peers();
  contest.candidates.insert(contest.candidates.begin(),
                            {{"mobile ranks", Maker::sterna, {"--nodes", "1"}, {}}});
  contest.candidates.push_back({"processes", Maker::sterna, {}, {}});
  std::vector<Standing> standings = hold(contest, bench);
  const Standing processes = standings.back();
  standings.pop_back();
  const Judged judged{
      .reading = "wall", .params = fmt::format("{} ranks", rank_count), .unit = "ms", .scale = 1e3};
  bench.add(compare(row, standings, judged));
  standings.front() = processes;
  Judged information = judged;
  information.params += ", processes";
  information.is_information = true;
  bench.add(compare(row, standings, information));
}

}  // namespace sterna::bench
