// paper.000.t7: kernel K2 over processes, the row between two of them sent in one message or in as
// many as there are threads. bench/programs/k2.c. As many processes as processors; of 4, as in the
// paper, for information where there are fewer.
#include <fmt/format.h>
#include <unistd.h>

#include "bench/contest.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

constexpr int kThreads[] = {1, 2, 4};

void run(const Row& row, Bench& bench, int processes, bool is_judged) {
  Result<std::string> program = build_program(bench, Maker::sterna, "k2");
  Pairs pairs[std::size(kThreads)];
  std::string trouble = program ? "" : program.error().text;
  std::vector<std::string> arguments = bench.options().quick ? std::vector<std::string>{"1", "4"}
                                                             : std::vector<std::string>{"5", "800"};
  for (const int threads : kThreads) {
    arguments.push_back(std::to_string(threads));
  }
  const Candidate ours{"processes", Maker::sterna, {}, {}};
  for (int left = bench.rounds(3); left > 0 && trouble.empty(); --left) {
    Result<Readings> read = run_command(
        launch_command(bench, ours, processes, program.value(), arguments), bench.work_folder());
    if (!read) {
      trouble = read.error().text;
      break;
    }
    for (std::size_t i = 0; i < std::size(kThreads); ++i) {
      pairs[i].add(read.value()[fmt::format("k2.{}", kThreads[i])], read.value()["k2.1"]);
    }
  }
  for (std::size_t i = 1; i < std::size(kThreads); ++i) {
    Figure figure{.id = row.id,
                  .params = fmt::format("{} processes, {} threads each", processes, kThreads[i]),
                  .unit = "ms",
                  .reference = "one thread and message each",
                  .note = trouble};
    if (is_judged) {
      figure.target = row.target;
    }
    if (trouble.empty()) {
      figure.value = pairs[i].our_median() * 1e3;
      figure.reference_value = pairs[i].reference_median() * 1e3;
    }
    bench.add(figure);
  }
}

}  // namespace

void run_paper_000_t7(const Row& row, Bench& bench) {
  const int processors = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  run(row, bench, processors < 4 ? 2 : 4, true);
  if (processors < 4) {
    run(row, bench, 4, false);
  }
}

}  // namespace sterna::bench
