// migrate.bandwidth: a rank moves between two nodes, against the same bytes in one message. It goes
// to and fro, and the node that it left last keeps it mapped; what it costs to come where it never
// was is shown beside that.
#include <filesystem>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/contest.h"

namespace sterna::bench {
namespace {

constexpr std::uint64_t kBetweenMovesNs = 40'000'000;

/// Asks for a move of rank 0 from time to time: to node 1, back, and so on.
class Mover {
 public:
  explicit Mover(const Bench& bench) : bench_{&bench}, folder_{bench.work_folder() + "/mover"} {
    std::error_code ignored;
    std::filesystem::create_directory(folder_, ignored);
  }

  void operator()(pid_t job, const std::string& output) {
    if (output.find("ready ") == std::string::npos || now_ns() < next_ns_) {
      return;
    }
    Result<Readings> asked =
        run_command({.words = {bench_->bin_folder() + "/sterna", "move", std::to_string(job), "0",
                               std::to_string(1 - node_)}},
                    folder_);
    if (asked) {
      node_ = 1 - node_;
    }
    next_ns_ = now_ns() + kBetweenMovesNs;
  }

 private:
  const Bench* bench_;
  std::string folder_;  // Its own: the output of the job lies in the other one.
  int node_ = 0;
  std::uint64_t next_ns_ = 0;
};

struct Variant {
  const char* reading;
  std::string_view params;
  bool is_judged;
};

void add_figures(Bench& bench, Figure figure, int size, const Readings& readings,
                 std::span<const Variant> variants, const Row& row) {
  for (const Variant& variant : variants) {
    if (const auto found = readings.find(variant.reading); found != readings.end()) {
      figure.params = fmt::format("{} MiB{}", size, variant.params);
      figure.value = found->second;
      figure.target = variant.is_judged ? std::optional{row.target} : std::nullopt;
      bench.add(figure);
    }
  }
}

}  // namespace

void run_migrate(const Row& row, Bench& bench) {
  static constexpr int kMebibytes[] = {1, 4, 16, 64};
  const std::string moves = bench.options().quick ? "2" : "14";
  Result<std::string> executable = build_program(bench, Maker::sterna, "migrate");
  const Candidate ours{"two nodes", Maker::sterna, {"--nodes", "2"}, {}};
  for (const int size : std::span{kMebibytes}.first(bench.options().quick ? 1 : 4)) {
    Figure figure{.id = row.id,
                  .params = fmt::format("{} MiB", size),
                  .unit = "us",
                  .reference = "one message, between the same nodes",
                  .target = row.target};
    if (!executable) {
      figure.note = executable.error().text;
      bench.add(figure);
      continue;
    }
    Command command =
        launch_command(bench, ours, 2, executable.value(), {std::to_string(size << 20), moves});
    command.seconds_max = 30;
    Result<Readings> readings = run_command(command, bench.work_folder(), Mover{bench});
    if (!readings || !readings.value().contains("move") || !readings.value().contains("send")) {
      figure.note = readings ? "no move was seen" : readings.error().text;
      bench.add(figure);
      continue;
    }
    figure.reference_value = readings.value()["send"];
    // Judged is what costs the rank its whole price: an order is prepared before the clock starts.
    static constexpr Variant kReturns[] = {{"own", "", true},
                                           {"own_touch", ", all pages read", true},
                                           {"move", ", interruption by an order", false},
                                           {"touch", ", by an order, all pages read", false}};
    add_figures(bench, figure, size, readings.value(), kReturns, row);
    // The move wakes the other node, the messages above find it awake: a message that does not.
    static constexpr Variant kAsleep[] = {
        {"own_touch", ", all pages read, both to a node that sleeps", false}};
    Figure asleep = figure;
    asleep.reference = "one message, to a node that has fallen asleep";
    asleep.reference_value = readings.value()["send_asleep"];
    add_figures(bench, asleep, size, readings.value(), kAsleep, row);
    Command first = launch_command(bench, {"many nodes", Maker::sterna, {"--nodes", "9"}, {}}, 9,
                                   executable.value(), {std::to_string(size << 20), "0"});
    first.seconds_max = 30;
    if (Result<Readings> visits = run_command(first, bench.work_folder()); visits) {
      static constexpr Variant kVisits[] = {{"first", ", first time on each of 9 nodes", false},
                                            {"first_touch", ", first time, all pages read", false}};
      add_figures(bench, figure, size, visits.value(), kVisits, row);
    }
  }
}

}  // namespace sterna::bench
