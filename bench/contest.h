// Several implementations run the same program in turn, round by round, so that whatever else the
// machine does hits all of them. In each round they come in another order: who follows whom is no
// part of a figure. Judged is the median of what rounds have, ours against the other's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/process.h"

namespace sterna::bench {

/// Where a candidate's programs come from.
enum class Maker : std::uint8_t { sterna, mpich, open_mpi };

struct Candidate {
  std::string name;
  Maker maker = Maker::sterna;
  std::vector<std::string> options;      // Of its launcher.
  std::vector<std::string> environment;  // NAME=value.
};

/// The first candidate is ours.
struct Contest {
  std::string program;                      // Of bench/programs, without ".c".
  std::vector<std::string> arguments = {};  // Of the program.
  int rank_count = 2;
  int rounds = 5;
  double seconds_max = 60;    // For one run.
  bool is_preferred = false;  // See Command.
  std::vector<Candidate> candidates = {};
};

struct Standing {
  std::string name;
  Readings medians;                   // Empty: it could not be measured.
  std::string trouble;                // Why.
  std::vector<Readings> rounds = {};  // What each had; as many as of the others, or less.
};

/// In the order of the candidates.
[[nodiscard]] std::vector<Standing> hold(const Contest& contest, Bench& bench);

/// What is judged of the readings of a contest.
struct Judged {
  std::string reading;
  std::string params;
  std::string_view unit;
  double scale = 1;  // From the reading to the unit.
  bool is_information = false;
  bool more_is_better = false;
};

/// Ours, the first standing, against the best of the others in that reading: the one with the best
/// median, round by round. Ours is given as the median of these ratios times the other's median.
[[nodiscard]] Figure compare(const Row& row, const std::vector<Standing>& standings,
                             const Judged& judged);

/// "8 B", "64 KB", "4 MB".
[[nodiscard]] std::string size_text(int bytes);

/// One reading of ours against another one of ours, or against a figure made of some.
[[nodiscard]] Figure compare_with(const Row& row, const Standing& ours, const Judged& judged,
                                  std::string reference, std::optional<double> reference_value);

/// The reading, if it was measured.
[[nodiscard]] std::optional<double> reading_of(const Standing& standing, const std::string& name);

/// The peers as most users run them, best settings for what is measured.
[[nodiscard]] std::vector<Candidate> shm_peers();
[[nodiscard]] std::vector<Candidate> tcp_peers();
[[nodiscard]] std::vector<Candidate> crowd_peers();

/// Compiles bench/programs/<program>.c, once, with the compiler wrapper of `maker`.
[[nodiscard]] Result<std::string> build_program(Bench& bench, Maker maker,
                                                const std::string& program);

/// The words that start `rank_count` ranks of `executable`.
[[nodiscard]] Command launch_command(const Bench& bench, const Candidate& candidate, int rank_count,
                                     const std::string& executable,
                                     const std::vector<std::string>& arguments);

}  // namespace sterna::bench
