// net.multirail: messages over two emulated networks at once against the sum of what each carries
// alone, in turn. The networks are tcp and unix sockets behind wires of a given rate (decorator
// delay), so that the processors are not what is measured. bench/programs/stream.c.
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/contest.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

constexpr int kBytes = 4 << 20;

std::string wire(std::string_view driver, int mib_per_s) {
  return fmt::format("delay({},bandwidth={}M,latency=50us)", driver, mib_per_s);
}

Result<double> carried(Bench& bench, const std::string& program, const std::string& drivers) {
  const Candidate ours{
      "rails", Maker::sterna, {"--drivers", drivers, "--set", "net_rails=any"}, {}};
  const std::vector<std::string> arguments{bench.options().quick ? "1" : "5", "4",
                                           std::to_string(kBytes)};
  Result<Readings> read =
      run_command(launch_command(bench, ours, 2, program, arguments), bench.work_folder());
  if (!read) {
    return read.error();
  }
  const auto found = read.value().find(fmt::format("bandwidth.{}", kBytes));
  if (found == read.value().end()) {
    return Error{Errc::malformed, "it printed no bandwidth"};
  }
  return found->second;
}

}  // namespace

void run_multirail(const Row& row, Bench& bench) {
  Result<std::string> program = build_program(bench, Maker::sterna, "stream");
  for (const std::array<int, 2> rates : {std::array{200, 200}, std::array{200, 50}}) {
    const std::array<std::string, 2> rails{wire("tcp", rates[0]), wire("unix", rates[1])};
    Figure figure{.id = row.id,
                  .params = fmt::format("{} + {} MiB/s, 4 MiB messages", rates[0], rates[1]),
                  .unit = "MB/s",
                  .reference = "the sum of the rails alone",
                  .more_is_better = true,
                  .target = row.target,
                  .note = program ? "" : program.error().text};
    Pairs pairs;
    for (int left = program ? bench.rounds(5) : 0; left > 0; --left) {
      double sum = 0;
      for (const std::string& rail : rails) {
        Result<double> alone = carried(bench, program.value(), rail);
        sum += alone ? alone.value() : 0;
      }
      Result<double> both = carried(bench, program.value(), rails[0] + "," + rails[1]);
      if (!both) {
        figure.note = both.error().text;
        break;
      }
      pairs.add(both.value(), sum);
    }
    if (!pairs.ours.empty()) {
      figure.value = pairs.our_median();
      figure.reference_value = pairs.reference_median();
    }
    bench.add(figure);
  }
}

}  // namespace sterna::bench
