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

/// What some sizes should take, or carry, on the machine of the aims.
struct Aim {
  int size;
  double value;
};

void add_with_aim(Bench& bench, const Figure& figure, int size, std::span<const Aim> aims) {
  bench.add(figure);
  for (const Aim& aim : aims) {
    if (aim.size == size) {
      bench.add_aim(figure, aim.value);
    }
  }
}

/// A figure a size: the worst decides, since each is judged.
void run_latency(const Row& row, Bench& bench, std::span<const int> sizes, Candidate ours,
                 const std::vector<Candidate>& peers, std::span<const Aim> aims) {
  const std::vector<Standing> standings =
      hold(latency_contest(bench, sizes, std::move(ours), peers), bench);
  for (const int size : sizes) {
    add_with_aim(
        bench,
        compare(
            row, standings,
            {.reading = fmt::format("latency.{}", size), .params = size_text(size), .unit = "us"}),
        size, aims);
  }
}

/// A figure that has an aim only.
void add_own(const Row& row, Bench& bench, const Contest& contest, Judged judged, double aim) {
  judged.is_information = true;
  const Figure figure = compare_with(row, hold(contest, bench).front(), judged, "none", {});
  bench.add(figure);
  bench.add_aim(figure, aim);
}

}  // namespace

void run_latency_node(const Row& row, Bench& bench) {
  static constexpr Aim kAims[] = {{8, 0.3}};  // On two workers.
  run_latency(row, bench, kShort, {"ranks of one node", Maker::sterna, {"--nodes", "1"}, {}},
              shm_peers(), kAims);
  const Candidate one_worker{
      "one worker", Maker::sterna, {"--nodes", "1", "--set", "worker_stride=65535"}, {}};
  add_own(row, bench, latency_contest(bench, kShort, one_worker, {}),
          {.reading = "latency.8", .params = "8 B, one worker", .unit = "us"}, 0.15);
}

void run_latency_mobile(const Row& row, Bench& bench) {
  static constexpr int kMobileSizes[] = {8, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304};
  run_latency(row, bench, kMobileSizes,
              {"mobile ranks", Maker::sterna, {"--nodes", "2", "--drivers", "shm"}, {}},
              shm_peers(), {});
}

void run_latency_shm(const Row& row, Bench& bench) {
  static constexpr Aim kAims[] = {{8, 0.2}, {1024, 0.6}, {4096, 1.1}, {65536, 3.5}};
  run_latency(row, bench, kSizes, {"processes", Maker::sterna, {"--drivers", "shm"}, {}},
              shm_peers(), kAims);
}

void run_latency_tcp(const Row& row, Bench& bench) {
  static constexpr Aim kAims[] = {{8, 3.6}};
  run_latency(row, bench, kSizes, {"processes", Maker::sterna, {"--drivers", "tcp"}, {}},
              tcp_peers(), kAims);
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
                   const std::vector<Candidate>& peers, std::span<const Aim> aims) {
  const std::vector<Standing> standings =
      hold(stream_contest(bench, kLong, 16, std::move(ours), peers), bench);
  for (const int size : kLong) {
    add_with_aim(bench,
                 compare(row, standings,
                         {.reading = fmt::format("bandwidth.{}", size),
                          .params = size_text(size),
                          .unit = "MB/s",
                          .more_is_better = true}),
                 size, aims);
  }
}

}  // namespace

void run_bandwidth_shm(const Row& row, Bench& bench) {
  run_bandwidth(row, bench, {"processes", Maker::sterna, {"--drivers", "shm"}, {}}, shm_peers(),
                {});
}

void run_bandwidth_tcp(const Row& row, Bench& bench) {
  static constexpr Aim kAims[] = {{1048576, 10'500}};
  run_bandwidth(row, bench, {"processes", Maker::sterna, {"--drivers", "tcp"}, {}}, tcp_peers(),
                kAims);
}

void run_copy_shm(const Row& row, Bench& bench) {
  static constexpr int kCopied[] = {1048576, 4194304};
  Contest contest{.program = "copy",
                  .arguments = {bench.options().quick ? "2" : "21"},
                  .rounds = bench.rounds(7),
                  .candidates = {{"processes", Maker::sterna, {"--drivers", "shm"}, {}}}};
  for (const int size : kCopied) {
    contest.arguments.push_back(std::to_string(size));
  }
  const Standing ours = hold(contest, bench).front();
  for (const int size : kCopied) {
    bench.add(compare_with(
        row, ours,
        {.reading = fmt::format("message.{}", size), .params = size_text(size), .unit = "us"},
        "process_vm_readv", reading_of(ours, fmt::format("readv.{}", size))));
  }
}

void run_rate_shm(const Row& row, Bench& bench) {
  Contest contest = stream_contest(
      bench, kShort, 64, {"processes", Maker::sterna, {"--drivers", "shm"}, {}}, shm_peers());
  contest.arguments.front() = bench.options().quick ? "2" : "501";
  const Figure figure = compare(
      row, hold(contest, bench),
      {.reading = "rate.8", .params = "8 B, 64 at once", .unit = "M/s", .more_is_better = true});
  bench.add(figure);
  bench.add_aim(figure, 20);
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
    const bool is_barrier = operation == std::string_view{"barrier"};
    const Figure figure =
        compare(row, standings,
                {.reading = operation,
                 .params = fmt::format("{}{} ranks", is_barrier ? "barrier, " : "allreduce 8 B, ",
                                       rank_count),
                 .unit = "us"});
    bench.add(figure);
    if (is_barrier) {
      bench.add_aim(figure, 8);
    }
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
    const Figure figure = compare(row, standings,
                                  {.reading = operation,
                                   .params = fmt::format("{}, processes", operation),
                                   .unit = "us",
                                   .is_information = true});
    bench.add(figure);
    if (operation == std::string_view{"barrier"}) {
      bench.add_aim(figure, 40);
    }
  }
}

namespace {

/// Without peers, which take minutes: `aim` in ms.
void start_many(const Row& row, Bench& bench, Candidate ours, double aim) {
  const int rank_count = bench.options().quick ? 8 : 256;
  const std::string params = fmt::format("{} ranks, {}", rank_count, ours.name);
  const Contest contest{.program = "start",
                        .rank_count = rank_count,
                        .rounds = bench.rounds(5),
                        .candidates = {std::move(ours)}};
  add_own(row, bench, contest, {.reading = "wall", .params = params, .unit = "ms", .scale = 1e3},
          aim);
}

}  // namespace

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
  start_many(row, bench, {"mobile ranks", Maker::sterna, {"--nodes", "1"}, {}}, 100);
  start_many(row, bench, {"processes", Maker::sterna, {}, {}}, 500);
}

}  // namespace sterna::bench
