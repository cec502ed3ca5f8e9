// paper.000.t1, paper.000.t2, paper.000.f1, paper.002.f7: what the environment costs programs that
// compute: one thread, many processes on one processor, the slice of preemption; and a program with
// messages in a thread. bench/programs/k1.c and jacobi.c.
#include <algorithm>

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include "bench/contest.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

/// Who is started meanwhile runs on one processor, as on the paper's machines.
class OneProcessor {
 public:
  OneProcessor() noexcept {
    CPU_ZERO(&before_);
    (void)::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &before_)) {
        CPU_SET(i, &one);
        break;
      }
    }
    (void)::sched_setaffinity(0, sizeof one, &one);
  }
  ~OneProcessor() { (void)::sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

struct Slice {
  const char* name;  // For people.
  std::vector<std::string> options;
};

const Slice& no_preemption() {
  static const Slice kNone{"no preemption", {}};
  return kNone;
}

Slice slice_of(const char* text) {
  return {text, {"--set", "preemption=slice", "--set", fmt::format("slice={}", text)}};
}

/// One processor, `processes` of K1, each with `threads`; the arguments of k1.c.
Result<Readings> run_k1(Bench& bench, const Slice& slice, int processes,
                        const std::vector<std::string>& arguments) {
  Result<std::string> program = build_program(bench, Maker::sterna, "k1");
  if (!program) {
    return program.error();
  }
  const Candidate ours{slice.name, Maker::sterna, slice.options, {}};
  const Command command = launch_command(bench, ours, processes, program.value(), arguments);
  const OneProcessor one;
  return run_command(command, bench.work_folder());
}

Result<Readings> run_plain(Bench& bench, int processes, int times) {
  Result<std::string> program = build_program(bench, Maker::sterna, "k1");
  if (!program) {
    return program.error();
  }
  const OneProcessor one;
  return run_command(
      {.words = {program.value(), "plain", std::to_string(times), std::to_string(processes)}},
      bench.work_folder());
}

/// Times and switches of both, round by round; `trouble` says why there are none.
struct Processes {
  int count;
  int threads;
  Slice slice;
  Pairs seconds = {};
  Pairs switches = {};
  std::string trouble = {};

  void measure(Bench& bench, int times) {
    Result<Readings> ours =
        run_k1(bench, slice, count, {"job", std::to_string(times), std::to_string(threads)});
    Result<Readings> plain = run_plain(bench, count, times);
    if (!ours || !plain) {
      trouble = ours ? plain.error().text : ours.error().text;
      return;
    }
    seconds.add(ours.value()["seconds"], plain.value()["seconds"]);
    switches.add(ours.value()["switches"] / ours.value()["seconds"],
                 plain.value()["switches"] / plain.value()["seconds"]);
  }

  [[nodiscard]] Figure figure(const Row& row, const std::string& params) const {
    Figure figure{.id = row.id,
                  .params = params,
                  .unit = "s",
                  .reference = "plain processes",
                  .target = row.target,
                  .note = trouble};
    if (!seconds.ours.empty()) {
      figure.value = seconds.our_median();
      figure.reference_value = seconds.reference_median();
    }
    return figure;
  }
  [[nodiscard]] Figure switch_figure(const Row& row, const std::string& params) const {
    Figure figure{.id = row.id,
                  .params = params,
                  .unit = "1/s",
                  .reference = "plain processes",
                  .note = trouble};
    if (!switches.ours.empty()) {
      figure.value = median(switches.ours);
      figure.reference_value = switches.reference_median();
    }
    return figure;
  }
};

/// Enough work for about a second.
int k1_times(const Bench& bench) {
  return bench.options().quick ? 1 : 10;
}

}  // namespace

void run_paper_000_t1(const Row& row, Bench& bench) {
  const std::string rounds = bench.options().quick ? "1" : "51";
  std::vector<Slice> slices{slice_of("20ms")};
  if (!bench.options().quick) {
    slices = {no_preemption(), slice_of("1ms"), slice_of("20ms")};
  }
  for (const Slice& slice : slices) {
    // The second process does nothing, so that there is a network.
    Result<Readings> readings = run_k1(bench, slice, 2, {"against", rounds});
    Figure figure{.id = row.id,
                  .params = fmt::format("1 thread, {}", slice.name),
                  .unit = "ms",
                  .reference = "the same without Sterna",
                  .target = row.target};
    if (readings) {
      figure.value = readings.value()["thread"] * 1e3;
      figure.reference_value = readings.value()["plain"] * 1e3;
    } else {
      figure.note = readings.error().text;
    }
    bench.add(figure);
  }
}

void run_paper_000_t2(const Row& row, Bench& bench) {
  std::vector<Processes> all;
  for (const int count : {1, 2, 4, 8, 16}) {
    all.push_back({.count = count, .threads = 1, .slice = slice_of("20ms")});
    if (bench.options().quick) {
      break;
    }
  }
  for (int round = bench.rounds(7); round > 0; --round) {
    for (Processes& processes : all) {
      processes.measure(bench, k1_times(bench));
    }
  }
  for (const Processes& processes : all) {
    bench.add(processes.figure(row, fmt::format("{} processes", processes.count)));
  }
}

void run_paper_000_f1(const Row& row, Bench& bench) {
  const int count = bench.options().quick ? 1 : 16;
  std::vector<Processes> all;
  for (const int threads : {1, 2}) {
    for (const char* const slice : {"1ms", "5ms", "20ms", "100ms"}) {
      all.push_back({.count = count, .threads = threads, .slice = slice_of(slice)});
    }
  }
  if (bench.options().quick) {
    all.resize(1);
  }
  for (int round = bench.rounds(3); round > 0; --round) {
    for (Processes& processes : all) {
      processes.measure(bench, k1_times(bench));
    }
  }
  for (const Processes& its : all) {
    const std::string params =
        fmt::format("{} processes of {}, slice {}", count, its.threads, its.slice.name);
    Figure figure = its.figure(row, params);
    if (its.slice.name != std::string_view{"20ms"}) {  // PM2's.
      figure.target.reset();
    }
    bench.add(figure);
    bench.add(its.switch_figure(row, params + ", switches"));
  }
  // What the paper's curve says: it falls.
  for (std::size_t i = 0; i + 3 < all.size(); i += 4) {
    Figure figure = all[i + 3].figure(
        row, fmt::format("{} processes of {}, slice 100ms", count, all[i].threads));
    figure.reference = "slice 1ms";
    figure.reference_value = all[i].figure(row, "").value;
    figure.target = 1.0;
    bench.add(figure);
  }
}

void run_paper_002_f7(const Row& row, Bench& bench) {
  const bool is_quick = bench.options().quick;
  // There a processor for each of 8 processes; where there are fewer, 8 share them, which has more
  // to do with how processes wait: for information.
  const int processors = static_cast<int>(std::clamp<long>(::sysconf(_SC_NPROCESSORS_ONLN), 2, 8));
  std::vector<std::string> sides{"256"};
  if (!is_quick) {
    sides.insert(sides.end(), {"512", "1024", "2048"});
  }
  for (const int processes :
       processors < 8 && !is_quick ? std::vector{processors, 8} : std::vector{processors}) {
    Contest contest{.program = "jacobi",
                    .arguments = {is_quick ? "0.2" : "60"},
                    .rank_count = processes,
                    // Many short ones: a shared machine is as fast for the two of a round. The same
                    // program against itself is within 1.5 % in 45 rounds, and the target is 2 %.
                    .rounds = bench.rounds(processes == processors ? 91 : 3),
                    .candidates = {{"a thread", Maker::sterna, {}, {"JACOBI_THREAD=1"}},
                                   {"without threads", Maker::sterna, {}, {"JACOBI_THREAD=0"}}}};
    contest.arguments.insert(contest.arguments.end(), sides.begin(), sides.end());
    const std::vector<Standing> standings = hold(contest, bench);
    for (const std::string& side : sides) {
      bench.add(compare(row, standings,
                        {.reading = "jacobi." + side,
                         .params = fmt::format("{} processes, {} x {}", processes, side, side),
                         .unit = "s",
                         .is_information = processes != processors}));
    }
  }
}

}  // namespace sterna::bench
