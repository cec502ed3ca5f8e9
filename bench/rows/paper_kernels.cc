// paper.000.t3, paper.000.f2.1: kernel K1 of paper 000 in one process, cut among threads. Its whole
// work, 800 and 2400 sweeps, takes some hundredths of a second today. Beside each time stands that
// of the same blocks one after the other, in a plain loop: what cutting does to caches and to the
// prediction of branches is in both.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "bench/programs/kernels.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

constexpr TeamShape kAsPm2{.preempt = threads::PreemptMode::slice};

/// How the arrays are cut.
struct Cut {
  int row_parts, column_parts;
  [[nodiscard]] int count() const noexcept { return row_parts * column_parts; }
  bool operator<(const Cut& other) const noexcept {
    return std::pair{row_parts, column_parts} < std::pair{other.row_parts, other.column_parts};
  }
};

class K1Times {
 public:
  explicit K1Times(bool is_quick) : scale_{is_quick ? 80 : 1} {}

  /// Once in threads, once without. On a thread of the team.
  void measure(Cut cut) {
    take_turns(
        times_[cut],
        [&] { in_threads(cut.count(), [&](int i) { as_program([&] { part(cut, i); }); }); },
        [&] {
          for (int i = 0; i < cut.count(); ++i) {
            part(cut, i);
          }
        });
  }
  [[nodiscard]] const Pairs& of(Cut cut) const { return times_.at(cut); }

 private:
  void part(Cut cut, int index) {
    k1(a_.data(), b_.data(), cut.row_parts, cut.column_parts, index, scale_);
  }

  int scale_;
  std::vector<double> a_ = std::vector<double>(K1_SIDE_A * K1_SIDE_A, 1.5);
  std::vector<double> b_ = std::vector<double>(K1_SIDE_B * K1_SIDE_B, 0.5);
  std::map<Cut, Pairs> times_;
};

Figure figure_of(const Row& row, const std::string& params, const Pairs& pairs) {
  return {.id = row.id,
          .params = params,
          .unit = "ms",
          .value = pairs.our_median() / 1e6,
          .reference = "the same blocks in a plain loop",
          .reference_value = pairs.reference_median() / 1e6,
          .target = row.target,
          .note = fmt::format("+- {:.3f}", estimate(pairs.ratios()).error)};
}

}  // namespace

void run_paper_000_t3(const Row& row, Bench& bench) {
  std::vector<Cut> cuts;
  for (const int count : {1, 2, 4, 8, 16, 32, 64}) {
    const int rows = kernel_row_parts(count);
    cuts.push_back({rows, count / rows});
  }
  K1Times times{bench.options().quick};
  if (!on_team(
          row, bench,
          [&] {
            for (int round = bench.rounds(31); round > 0; --round) {
              for (const Cut cut : cuts) {
                times.measure(cut);
              }
            }
          },
          kAsPm2)) {
    return;
  }
  double slowest = 0;
  double plain_slowest = 0;
  for (const Cut cut : cuts) {
    const Pairs& pairs = times.of(cut);
    bench.add(figure_of(row, fmt::format("{} threads", cut.count()), pairs));
    slowest = std::max(slowest, pairs.our_median());
    plain_slowest = std::max(plain_slowest, pairs.reference_median());
  }
  const Pairs& one = times.of(cuts.front());
  bench.add({.id = row.id,
             .params = "slowest of all",
             .unit = "ms",
             .value = slowest / 1e6,
             .reference = "1 thread",
             .reference_value = one.our_median() / 1e6,
             .note = fmt::format("plain loops: {:.3f} times one block",
                                 plain_slowest / one.reference_median())});
}

void run_paper_000_f21(const Row& row, Bench& bench) {
  static constexpr int kCounts[] = {4, 16, 64, 256};
  struct Shape {
    const char* name;
    Cut (*cut)(int count);
  };
  static constexpr Shape kShapes[] = {
      {"(BLOCK,BLOCK)",
       [](int count) {
         return Cut{kernel_row_parts(count), count / kernel_row_parts(count)};
       }},
      {"(BLOCK,*)",
       [](int count) {
         return Cut{count, 1};
       }},
      {"(*,BLOCK)", [](int count) {
         return Cut{1, count};
       }}};
  K1Times times{bench.options().quick};
  if (!on_team(
          row, bench,
          [&] {
            for (int round = bench.rounds(15); round > 0; --round) {
              for (const int count : kCounts) {
                for (const Shape& shape : kShapes) {
                  times.measure(shape.cut(count));
                }
              }
            }
          },
          kAsPm2)) {
    return;
  }
  for (const int count : kCounts) {
    double least = 1e300;
    double most = 0;
    double plain_least = 1e300;
    double plain_most = 0;
    for (const Shape& shape : kShapes) {
      const Pairs& pairs = times.of(shape.cut(count));
      bench.add(figure_of(row, fmt::format("{} threads, {}", count, shape.name), pairs));
      least = std::min(least, pairs.our_median());
      most = std::max(most, pairs.our_median());
      plain_least = std::min(plain_least, pairs.reference_median());
      plain_most = std::max(plain_most, pairs.reference_median());
    }
    bench.add({.id = row.id,
               .params = fmt::format("{} threads, worst shape over best", count),
               .unit = "x",
               .value = most / least,
               .reference = "the same of plain loops",
               .reference_value = plain_most / plain_least});
  }
}

}  // namespace sterna::bench
