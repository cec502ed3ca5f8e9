// mpi.overlap.sender, .receiver, mpi.bsp, paper.004.f8, .f9: messages beside computation.
// bench/programs/overlap.c, bsp.c.
//
// Copying takes processors, too. Where there are few, nothing can end before all that has to be
// done has been shared out among them, however well it overlaps. That bound is printed beside the
// figure, for information: what is judged stays the longer of the two alone.
#include <algorithm>

#include <fmt/format.h>

#include "base/processors.h"
#include "bench/contest.h"

namespace sterna::bench {
namespace {

struct Case {
  const char* driver;
  int work_us;
};
constexpr Case kCases[] = {{"shm", 20}, {"shm", 100}, {"tcp", 20}, {"tcp", 100}};

struct Overlap {
  Standing ours;
  Standing asleep;  // The same where who waits sleeps at once: processor time is that of copying.
};

Overlap overlap(Bench& bench, const char* side, const Case& one, std::span<const int> sizes) {
  Contest contest{
      .program = "overlap",
      .arguments = {side, std::to_string(one.work_us), bench.options().quick ? "2" : "21"},
      .rounds = bench.rounds(5),
      .is_preferred = true,
      .candidates = {
          {"processes", Maker::sterna, {"--drivers", one.driver}, {}},
          {"processes, asleep", Maker::sterna, {"--drivers", one.driver, "--set", "spin=0"}, {}}}};
  for (const int size : sizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  const std::vector<Standing> standings = hold(contest, bench);
  return {.ours = standings.front(), .asleep = standings.back()};
}

/// Both together against the longer of the two alone; and against what the processors could do.
void add_overlap(const Row& row, Bench& bench, const char* what, const Case& one,
                 const Overlap& both, int size) {
  const Standing& ours = both.ours;
  const auto message = reading_of(ours, fmt::format("message.{}", size));
  const auto work = reading_of(ours, fmt::format("work.{}", size));
  std::optional<double> longer;
  if (message && work) {
    longer = std::max(*message, *work);
  }
  bench.add(compare_with(
      row, ours,
      {.reading = fmt::format("total.{}", size),
       .params = fmt::format("{}{}, {}, {} us", what, size_text(size), one.driver, one.work_us),
       .unit = "us"},
      longer && *longer == *work ? "computation" : "message", longer));
  const auto copying = reading_of(both.asleep, fmt::format("cpu.{}", size));
  std::optional<double> shared_out;
  if (longer && copying) {
    shared_out = std::max(*longer, (*work + *copying) / usable_processors());
  }
  bench.add(compare_with(row, ours,
                         {.reading = fmt::format("total.{}", size),
                          .params = fmt::format("{}{}, {}, {} us, bound of the processors", what,
                                                size_text(size), one.driver, one.work_us),
                          .unit = "us",
                          .is_information = true},
                         "all work shared out", shared_out));
}

void run_overlap(const Row& row, Bench& bench, const char* side) {
  constexpr int kSizes[] = {65536, 262144, 1048576, 4194304};
  for (const Case& one : kCases) {
    const Overlap both = overlap(bench, side, one, kSizes);
    for (const int size : kSizes) {
      add_overlap(row, bench, "", one, both, size);
    }
  }
}

}  // namespace

void run_overlap_sender(const Row& row, Bench& bench) {
  run_overlap(row, bench, "sender");
}

void run_overlap_receiver(const Row& row, Bench& bench) {
  run_overlap(row, bench, "receiver");
}

void run_bsp(const Row& row, Bench& bench) {
  const int rank_count = bench.options().quick ? 4 : 32;
  Contest contest{.program = "bsp",
                  .arguments = bench.options().quick ? std::vector<std::string>{"1", "3", "100"}
                                                     : std::vector<std::string>{"9", "20", "100"},
                  .rank_count = rank_count,
                  .rounds = bench.rounds(5),
                  .candidates = {{"mobile ranks", Maker::sterna, {"--nodes", "1"}, {}},
                                 {"two nodes", Maker::sterna, {"--nodes", "2"}, {}},
                                 {"processes", Maker::sterna, {}, {}}}};
  for (const Standing& ours : hold(contest, bench)) {
    bench.add(compare_with(row, ours,
                           {.reading = "bsp",
                            .params = fmt::format("{} ranks, 100 us, {}", rank_count, ours.name),
                            .unit = "us"},
                           "the same without meeting", reading_of(ours, "perfect")));
    if (ours.name == "processes") {
      Figure bound = compare_with(
          row, ours,
          {.reading = "yielding",
           .params = fmt::format("{} ranks, 100 us, processes that yield, no more", rank_count),
           .unit = "us"},
          "the same without meeting", reading_of(ours, "perfect"));
      bound.target.reset();
      bench.add(bound);
    }
  }
}

void run_paper_004_f8(const Row& row, Bench& bench) {
  constexpr int kSizes[] = {131072, 524288, 2097152};
  for (const char* const side : {"sender", "receiver"}) {
    const Overlap both = overlap(bench, side, {"shm", 100}, kSizes);
    for (const int size : kSizes) {
      add_overlap(row, bench, side == std::string_view{"sender"} ? "sender " : "receiver ",
                  {"shm", 100}, both, size);
    }
  }
}

namespace {

/// Ranks as user threads of nodes whose other workers are idle: what these send for them, by tcp,
/// where a send is a system call, is never worse than without. Two nodes of two workers each need
/// four processors.
void add_offload(const Row& row, Bench& bench, std::span<const int> sizes) {
  constexpr int kWorkUs = 20;
  Contest contest{
      .program = "overlap",
      .arguments = {"sender", std::to_string(kWorkUs), bench.options().quick ? "2" : "21"},
      .rounds = bench.rounds(5),
      .is_preferred = true};
  for (const char* const offload : {"auto", "off"}) {
    contest.candidates.push_back(
        {fmt::format("net_offload={}", offload),
         Maker::sterna,
         {"--nodes", "2", "--drivers", "tcp", "--set", fmt::format("net_offload={}", offload)},
         {}});
  }
  for (const int size : sizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  const std::vector<Standing> standings = hold(contest, bench);
  for (const int size : sizes) {
    bench.add(
        compare(row, standings,
                {.reading = fmt::format("total.{}", size),
                 .params = fmt::format("{}, {} us, idle worker{}", size_text(size), kWorkUs,
                                       usable_processors() < 4 ? " (too few processors)" : ""),
                 .unit = "us",
                 .is_information = usable_processors() < 4}));
  }
}

}  // namespace

void run_paper_004_f9(const Row& row, Bench& bench) {
  constexpr int kSizes[] = {1024, 4096, 16384, 32768};
  const Standing ours = overlap(bench, "sender", {"shm", 20}, kSizes).ours;
  for (const int size : kSizes) {
    // The longer of the two, and the microsecond that handing over may cost.
    const auto message = reading_of(ours, fmt::format("message.{}", size));
    const auto work = reading_of(ours, fmt::format("work.{}", size));
    std::optional<double> perfect;
    if (message && work) {
      perfect = std::max(*message, *work) + 1;
    }
    bench.add(compare_with(row, ours,
                           {.reading = fmt::format("total.{}", size),
                            .params = fmt::format("{}, 20 us", size_text(size)),
                            .unit = "us"},
                           "the longer, and 1 us", perfect));
  }
  add_offload(row, bench, kSizes);
}

}  // namespace sterna::bench
