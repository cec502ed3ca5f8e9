// paper.004.f10: a ping-pong over two emulated rails, whose messages of medium size are cut among
// them, against what each rail alone takes for its part. The rails have the delay, relative to
// their rate, of the paper's (about 4 KB). They are shared memory and unix sockets behind wires of
// a given rate (decorator delay): the paper's are sent to from the program, so that one packet
// costs a processor little, and two packets go at once; two sockets take the kernel 6 to 9 us each,
// one after the other. All wait awake, as in the paper: who polls moves what is on a wire, and a
// process that sleeps would hold it up, which no network does.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

constexpr std::array kSizes = {4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576};
// From here on both rails gain; the paper's from 16 KB.
constexpr int kGainBytes = 8192;

std::string wire(std::string_view driver, int mib_per_s) {
  return fmt::format("delay({},bandwidth={}M,latency=20us)", driver, mib_per_s);
}

/// As all candidates are run.
std::vector<std::string> awake(std::vector<std::string> options) {
  options.insert(options.end(), {"--set", "spin=10ms"});
  return options;
}

/// Times of one rail alone, between whose sizes a straight line is taken.
class Curve {
 public:
  explicit Curve(const Standing& standing) {
    for (const int size : kSizes) {
      const auto us = reading_of(standing, fmt::format("latency.{}", size));
      is_whole_ = is_whole_ && us.has_value();
      us_.push_back(us.value_or(0));
    }
  }
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }
  [[nodiscard]] double at(double bytes) const {
    std::size_t i = 1;
    while (i + 1 < kSizes.size() && kSizes[i] < bytes) {
      ++i;
    }
    const double share = (bytes - kSizes[i - 1]) / (kSizes[i] - kSizes[i - 1]);
    return us_[i - 1] + std::max(share, -1.0) * (us_[i] - us_[i - 1]);
  }

 private:
  std::vector<double> us_ = {};
  bool is_whole_ = true;
};

/// The paper's formula, with the best cut there is instead of halves: what the slower of both parts
/// takes, or the whole on the better rail.
double formula(const Curve& one, const Curve& other, int bytes) {
  double best = std::min(one.at(bytes), other.at(bytes));
  for (int part = 1; part < 64; ++part) {
    const double first = bytes * part / 64.0;
    best = std::min(best, std::max(one.at(first), other.at(bytes - first)));
  }
  return best;
}

void add_figures(const Row& row, Bench& bench, const std::string& rails,
                 const std::vector<Standing>& standings) {
  const Standing& both = standings[0];
  const Curve one{standings[1]};
  const Curve other{standings[2]};
  const bool has_all = one.is_whole() && other.is_whole();
  for (const int size : kSizes) {
    const Judged judged{.reading = fmt::format("latency.{}", size),
                        .params = fmt::format("{}, {}", rails, size_text(size)),
                        .unit = "us"};
    if (size >= 2 * kSizes.front()) {
      bench.add(compare_with(row, both, judged, "the formula",
                             has_all ? std::optional{formula(one, other, size)} : std::nullopt));
    }
    Figure gain = compare(row, standings, judged);
    gain.target = size >= kGainBytes ? std::optional{1.0} : std::nullopt;
    bench.add(gain);
  }
}

}  // namespace

void run_paper_004_f10(const Row& row, Bench& bench) {
  for (const std::array<int, 2> rates : {std::array{200, 200}, std::array{200, 100}}) {
    const std::array<std::string, 2> rails{wire("shm", rates[0]), wire("unix", rates[1])};
    Contest contest{
        .program = "latency",
        .arguments = {bench.options().quick ? "1" : "15"},
        .rounds = bench.rounds(5),
        .is_preferred = true,
        .candidates = {
            {"both",
             Maker::sterna,
             awake({"--drivers", rails[0] + "," + rails[1], "--set", "net_rails=any"}),
             {}},
            {fmt::format("{} MiB/s", rates[0]), Maker::sterna, awake({"--drivers", rails[0]}), {}},
            {fmt::format("the other, {} MiB/s", rates[1]),
             Maker::sterna,
             awake({"--drivers", rails[1]}),
             {}}}};
    for (const int size : kSizes) {
      contest.arguments.push_back(std::to_string(size));
    }
    add_figures(row, bench, fmt::format("{} + {} MiB/s", rates[0], rates[1]), hold(contest, bench));
  }
}

}  // namespace sterna::bench
