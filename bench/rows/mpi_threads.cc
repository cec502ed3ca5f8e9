// mpi.threads.16, mpi.multiple, paper.004.f4, .f5, .f7: threads that communicate, and what it costs
// to be ready for them. bench/programs/receivers.c, latency.c, stream.c.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/processors.h"
#include "bench/contest.h"

namespace sterna::bench {
namespace {

constexpr int kManyThreads = 16;

Candidate processes(std::vector<std::string> environment = {}) {
  return {"processes", Maker::sterna, {"--drivers", "shm"}, std::move(environment)};
}

Standing hold_alone(Contest contest, Bench& bench) {
  contest.candidates = {processes()};
  return hold(contest, bench).front();
}

Standing receivers(Bench& bench, const char* kind, std::vector<int> counts) {
  Contest contest{.program = "receivers",
                  .arguments = {kind, bench.options().quick ? "1" : "5"},
                  .rounds = bench.rounds(5)};
  for (const int count : counts) {
    contest.arguments.push_back(std::to_string(count));
  }
  return hold_alone(std::move(contest), bench);
}

/// SINGLE and MULTIPLE of the same program, round by round; behind them MULTIPLE with the locks
/// that a process takes once a second thread has called.
std::vector<Standing> both_levels(Bench& bench, const char* program,
                                  std::vector<std::string> arguments) {
  const Contest contest{
      .program = program,
      .arguments = std::move(arguments),
      .rounds = bench.rounds(9),
      .candidates = {processes({"STERNA_BENCH_MULTIPLE=1"}), processes(),
                     processes({"STERNA_BENCH_MULTIPLE=1", "STERNA_ONE_CALLER=off"})}};
  return hold(contest, bench);
}

std::string batches(const Bench& bench, const char* full) {
  return bench.options().quick ? "2" : full;
}

}  // namespace

void run_threads_16(const Row& row, Bench& bench) {
  const Standing ours = receivers(bench, "user", {1, kManyThreads});
  const Figure figure = compare_with(
      row, ours, {.reading = "one.16", .params = "16 threads receive, 4 B", .unit = "us"},
      "one thread", reading_of(ours, "one.1"));
  bench.add(figure);
  bench.add_aim(figure, 0.6);
  const Standing kernel = receivers(bench, "kernel", {1, kManyThreads});
  bench.add(compare_with(row, kernel,
                         {.reading = "one.16",
                          .params = "16 kernel threads, 4 B",
                          .unit = "us",
                          .is_information = true},
                         "one thread", reading_of(kernel, "one.1")));
}

/// Threads of one process send to threads of another, each pair for itself: how many messages all
/// of them bring over in a second. Where both processes have a processor for each thread this
/// should grow with the threads; where they have not, at least nothing is lost: that is asked of
/// two threads only, more have a line where there are processors for both processes.
void run_threads_rate(const Row& row, Bench& bench) {
  std::vector<int> counts{1, 2};
  for (const int count : {4, 8}) {
    if (usable_processors() >= 2 * static_cast<std::uint32_t>(count)) {
      counts.push_back(count);
    }
  }
  for (const char* const kind : {"user", "kernel"}) {
    const Standing ours = receivers(bench, fmt::format("{}-rate", kind).c_str(), counts);
    for (const int count : counts) {
      if (count == 1) {  // What the others are compared with.
        continue;
      }
      const std::string reading = fmt::format("rate.{}", count);
      bench.add(compare_with(row, ours,
                             {.reading = reading,
                              .params = fmt::format("{} {} threads, 8 B", count, kind),
                              .unit = "M/s",
                              .is_information = kind == std::string_view{"kernel"},
                              .more_is_better = true},
                             "one thread", reading_of(ours, "rate.1")));
    }
  }
}

/// What MULTIPLE adds to SINGLE, in the units of the aims.
void add_multiple_aims(const Row& row, Bench& bench, const std::vector<Standing>& latency,
                       const std::vector<Standing>& rate) {
  const auto with = reading_of(latency[0], "latency.8");
  const auto without = reading_of(latency[1], "latency.8");
  Figure figure{.id = row.id, .params = "latency added, 8 B", .unit = "us"};
  if (with && without) {
    figure.value = std::max(*with - *without, 0.001);  // A ratio to nothing means nothing.
    bench.add_aim(figure, 0.02);
  }
  const auto many = reading_of(rate[0], "rate.8");
  const auto one = reading_of(rate[1], "rate.8");
  if (many && one && *one > 0) {
    figure = {.id = row.id, .params = "rate, 8 B", .unit = "% kept", .more_is_better = true};
    figure.value = *many / *one * 100;
    bench.add_aim(figure, 90);
  }
}

void run_multiple(const Row& row, Bench& bench) {
  const std::vector<Standing> latency =
      both_levels(bench, "latency", {batches(bench, "41"), "8", "4096"});
  for (const char* const size : {"8", "4096"}) {
    const std::string reading = fmt::format("latency.{}", size);
    bench.add(compare_with(
        row, latency[0],
        {.reading = reading, .params = fmt::format("latency, {} B", size), .unit = "us"},
        "MPI_THREAD_SINGLE", reading_of(latency[1], reading)));
    bench.add(compare_with(row, latency[2],
                           {.reading = reading,
                            .params = fmt::format("latency, {} B, with locks", size),
                            .unit = "us",
                            .is_information = true},
                           "MPI_THREAD_SINGLE", reading_of(latency[1], reading)));
  }
  const std::vector<Standing> rate =
      both_levels(bench, "stream", {batches(bench, "501"), "64", "8"});
  bench.add(compare_with(
      row, rate[0],
      {.reading = "rate.8", .params = "rate, 8 B", .unit = "M/s", .more_is_better = true},
      "MPI_THREAD_SINGLE", reading_of(rate[1], "rate.8")));
  bench.add(compare_with(row, rate[2],
                         {.reading = "rate.8",
                          .params = "rate, 8 B, with locks",
                          .unit = "M/s",
                          .is_information = true,
                          .more_is_better = true},
                         "MPI_THREAD_SINGLE", reading_of(rate[1], "rate.8")));
  add_multiple_aims(row, bench, latency, rate);
}

void run_paper_004_f4(const Row& row, Bench& bench) {
  const std::vector<Standing> standings =
      both_levels(bench, "latency", {batches(bench, "101"), "8", "64", "512"});
  for (const char* const size : {"8", "64", "512"}) {
    const std::string reading = fmt::format("latency.{}", size);
    const auto multiple = reading_of(standings[2], reading);  // What locks cost.
    const auto single = reading_of(standings[1], reading);
    Figure figure{.id = row.id,
                  .params = fmt::format("{} B", size),
                  .unit = "ns",
                  .reference = "one lock there",
                  .reference_value = 140,
                  .target = row.target};
    if (multiple && single) {
      // A ratio of differences means nothing below the noise: a nanosecond at least.
      figure.value = std::max((*multiple - *single) * 1e3, 1.0);
    } else {
      figure.note = "ours: " + standings[single ? 2 : 1].trouble;
    }
    bench.add(figure);
  }
}

void run_paper_004_f5(const Row& row, Bench& bench) {
  const Standing ours = receivers(bench, "user", {1, 2});
  bench.add(compare_with(row, ours,
                         {.reading = "pairs.2", .params = "two ping-pongs at once", .unit = "us"},
                         "one ping-pong", reading_of(ours, "pairs.1")));
}

void run_paper_004_f7(const Row& row, Bench& bench) {
  const std::vector<int> counts =
      bench.options().quick ? std::vector{1, 4} : std::vector{1, 2, 4, 8, 32, 128};
  const Standing ours = receivers(bench, "user", counts);
  for (const int count : std::span{counts}.subspan(1)) {
    bench.add(compare_with(row, ours,
                           {.reading = fmt::format("one.{}", count),
                            .params = fmt::format("{} threads receive", count),
                            .unit = "us"},
                           "one thread", reading_of(ours, "one.1")));
  }
}

}  // namespace sterna::bench
