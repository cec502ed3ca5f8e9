// What rows work with: options, folders, and where figures go.
#pragma once

#include <string>
#include <vector>

#include "bench/row.h"

namespace sterna::bench {

struct BenchOptions {
  bool json = false;
  bool quick = false;     // A few iterations, to see that it works: the figures mean nothing.
  bool absolute = false;  // Judges aims too: Bench::add_aim().
  bool verbose = false;   // Says on standard error what is run, and what each candidate had.
  std::string peers;      // Folder of other implementations, made by ./dev peers.
};

class Bench {
 public:
  /// `work_folder` exists and is the caller's to remove.
  Bench(BenchOptions options, std::string work_folder);

  [[nodiscard]] const BenchOptions& options() const noexcept { return options_; }
  /// `full` rounds, or few in a quick run.
  [[nodiscard]] int rounds(int full) const noexcept { return options_.quick ? 1 : full; }

  [[nodiscard]] const std::string& work_folder() const noexcept { return work_folder_; }
  /// bin/ of the build or the installation.
  [[nodiscard]] const std::string& bin_folder() const noexcept { return bin_folder_; }
  /// Sources of the programs that are timed: share/sterna/bench.
  [[nodiscard]] const std::string& program_folder() const noexcept { return program_folder_; }

  /// Prints it.
  void add(const Figure& figure);
  /// The same figure of ours, if it was measured, beside what it should be in its unit on the
  /// machine of the aims (README.md): at most, or, of rates and bandwidths, at least. Judged with
  /// --absolute only: times are not the same on any other one.
  void add_aim(Figure figure, double aim);
  /// On standard error, if verbose.
  void say(const std::string& text) const;

  /// No judged figure has missed its target, so far.
  [[nodiscard]] bool all_pass() const noexcept { return all_pass_; }

 private:
  BenchOptions options_;
  std::string work_folder_;
  std::string bin_folder_;
  std::string program_folder_;
  bool has_header_ = false;
  bool all_pass_ = true;
};

}  // namespace sterna::bench
