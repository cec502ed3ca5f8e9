// paper.004.f6, .x1, .x2: what waiting costs, and that polling costs nobody.
// bench/programs/waits.c, polling.c.
#include <algorithm>

#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

Candidate with_spin(const char* spin) {
  return {fmt::format("spin={}", spin),
          Maker::sterna,
          {"--drivers", "shm", "--set", fmt::format("spin={}", spin)},
          {}};
}

Contest waits(const Bench& bench) {
  return {.program = "waits",
          .arguments = {bench.options().quick ? "1" : "11"},
          .rounds = bench.rounds(5),
          .is_preferred = true,
          .candidates = {{"as it is", Maker::sterna, {"--drivers", "shm"}, {}}}};
}

}  // namespace

void run_paper_004_f6(const Row& row, Bench& bench) {
  const Standing ours = hold(waits(bench), bench).front();
  const auto block = reading_of(ours, "block");
  const auto poll = reading_of(ours, "poll");
  Figure figure{.id = row.id,
                .params = "8 B, waiting against testing",
                .unit = "ns",
                .reference = "50 ns",
                .reference_value = 50,
                .target = row.target};
  if (block && poll) {
    figure.value = std::max((*block - *poll) * 1e3, 1.0);
  } else {
    figure.note = "ours: " + ours.trouble;
  }
  bench.add(figure);
}

void run_paper_004_x1(const Row& row, Bench& bench) {
  Contest contest = waits(bench);
  for (const char* const spin : {"0", "5us", "50us", "1ms"}) {
    contest.candidates.push_back(with_spin(spin));
  }
  bench.add(compare(row, hold(contest, bench),
                    {.reading = "mixed", .params = "answers of 0 to 300 us", .unit = "us"}));
}

void run_paper_004_x2(const Row& row, Bench& bench) {
  for (const char* const driver : {"shm", "tcp"}) {
    const Contest contest{.program = "polling",
                          .arguments = {bench.options().quick ? "1" : "21", "5000"},
                          .rounds = bench.rounds(3),
                          .candidates = {{driver, Maker::sterna, {"--drivers", driver}, {}}}};
    const Standing ours = hold(contest, bench).front();
    bench.add(compare_with(
        row, ours, {.reading = "open", .params = fmt::format("5 ms, {}", driver), .unit = "us"},
        "nothing open", reading_of(ours, "plain")));
  }
}

}  // namespace sterna::bench
