// paper.000.t5: kernel K2 of paper 000 inside one process: threads read the row below their block
// from the thread that owns it, with semaphores and two barriers a sweep. 800 sweeps over 400 x 400
// doubles, as there. Judged against the same blocks in a plain loop, which costs more than the
// sequential program: the end of each short row is predicted wrongly, with threads and without.
#include <algorithm>

#include <fmt/format.h>

#include "bench/programs/kernels.h"
#include "bench/rows/on_team.h"
#include "bench/statistics.h"
#include "threads/sync/barrier.h"
#include "threads/sync/semaphore.h"

namespace sterna::bench {
namespace {

/// One run in threads, (BLOCK, BLOCK).
class Stencil {
 public:
  Stencil(std::vector<double>& array, int count, int sweeps)
      : array_{array},
        row_parts_{kernel_row_parts(count)},
        column_parts_{count / row_parts_},
        sweeps_{sweeps},
        below_(static_cast<std::size_t>(row_parts_) * K2_SIDE),
        was_read_(static_cast<std::size_t>(count)),
        barrier_{static_cast<std::uint32_t>(count)} {}

  void run(int index) {
    const kernel_block block = kernel_cut(K2_SIDE, row_parts_, column_parts_, index);
    const bool is_first = block.row == 0;
    const bool is_last = block.row_end == K2_SIDE;
    // The last row of the whole has nothing below: it takes itself. Columns as in the array.
    double* const below = below_.data() + index / column_parts_ * K2_SIDE;
    for (int sweep = 0; sweep < sweeps_; ++sweep) {
      // All have written what will be read.
      (void)barrier_.arrive_and_wait();
      const double* const source =
          array_.data() + (is_last ? block.row_end - 1 : block.row_end) * K2_SIDE;
      std::copy(source + block.column, source + block.column_end, below + block.column);
      if (!is_last) {
        was_read_[static_cast<std::size_t>(index + column_parts_)].release();
      }
      if (!is_first) {
        was_read_[static_cast<std::size_t>(index)].acquire();
      }
      as_program([&] { k2_sweep(array_.data(), below, block); });
      (void)barrier_.arrive_and_wait();
    }
  }

 private:
  std::vector<double>& array_;
  const int row_parts_, column_parts_, sweeps_;
  std::vector<double> below_;                 // A row under each row of blocks, as it was before.
  std::vector<threads::Semaphore> was_read_;  // The first row of each block, by the one above.
  threads::Barrier barrier_;
};

/// Runs from the same start, with the same result.
class StencilTimes {
 public:
  explicit StencilTimes(int sweeps) : sweeps_{sweeps}, start_(K2_SIDE * K2_SIDE) {
    for (std::size_t i = 0; i < start_.size(); ++i) {
      start_[i] = 0.1 + 0.8 * static_cast<double>(i * 7919 % start_.size()) /
                            static_cast<double>(start_.size());
    }
    run_blocks(1);
    expected_ = array_;
  }

  void run_threads(int count) {
    array_ = start_;
    Stencil stencil{array_, count, sweeps_};
    in_threads(count, [&](int index) { stencil.run(index); });
    check(array_ == expected_ || expected_.empty(), "threads compute what a plain loop computes");
  }

  /// A plain loop over the blocks, from top to bottom: what is below is still as it was.
  void run_blocks(int count) {
    array_ = start_;
    const int rows = kernel_row_parts(count);
    std::vector<double> below(K2_SIDE);
    for (int sweep = 0; sweep < sweeps_; ++sweep) {
      for (int index = 0; index < count; ++index) {
        const kernel_block block = kernel_cut(K2_SIDE, rows, count / rows, index);
        const double* const source = array_.data() + std::min(block.row_end, K2_SIDE - 1) * K2_SIDE;
        std::copy(source + block.column, source + block.column_end, below.data() + block.column);
        k2_sweep(array_.data(), below.data(), block);
      }
    }
    check(array_ == expected_ || expected_.empty(), "blocks compute what the whole computes");
  }

 private:
  const int sweeps_;
  std::vector<double> start_, array_, expected_ = {};
};

}  // namespace

void run_paper_000_t5(const Row& row, Bench& bench) {
  static constexpr int kCounts[] = {1, 2, 4, 8, 16, 32, 64};
  StencilTimes its{bench.options().quick ? 4 : K2_SWEEPS};
  std::vector<Pairs> sequential(std::size(kCounts));
  std::vector<Pairs> blocks(std::size(kCounts));
  if (!on_team(row, bench,
               [&] {
                 for (int left = bench.rounds(15); left > 0; --left) {
                   for (std::size_t i = 0; i < std::size(kCounts); ++i) {
                     const auto threads = [&] { its.run_threads(kCounts[i]); };
                     take_turns(sequential[i], threads, [&] { its.run_blocks(1); });
                     take_turns(blocks[i], threads, [&] { its.run_blocks(kCounts[i]); });
                   }
                 }
               },
               {.preempt = threads::PreemptMode::slice})) {
    return;
  }
  for (std::size_t i = 0; i < std::size(kCounts); ++i) {
    const auto add = [&](const Pairs& pairs, const char* reference, bool is_judged) {
      bench.add({.id = row.id,
                 .params = fmt::format("{} threads", kCounts[i]),
                 .unit = "ms",
                 .value = pairs.our_median() / 1e6,
                 .reference = reference,
                 .reference_value = pairs.reference_median() / 1e6,
                 .target = is_judged ? std::optional{row.target} : std::nullopt,
                 .note = fmt::format("+- {:.3f}", estimate(pairs.ratios()).error)});
    };
    add(blocks[i], "the same blocks in a plain loop", true);
    add(sequential[i], "sequential, one block", false);
  }
}

}  // namespace sterna::bench
