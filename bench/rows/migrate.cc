// migrate.bandwidth: a rank moves between two nodes, against the same bytes in one message. It goes
// to and fro, and the node that it left last keeps it mapped; what it costs to come where it never
// was is shown beside that, also against a message to memory that its receiver never touched.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/clock.h"
#include "bench/contest.h"

namespace sterna::bench {
namespace {

constexpr std::uint64_t kBetweenMovesNs = 40'000'000;

/// Asks for a move of rank 0 from time to time, to one node after the other, again and again.
class Mover {
 public:
  Mover(const Bench& bench, std::vector<int> nodes)
      : bench_{&bench}, folder_{bench.work_folder() + "/mover"}, nodes_{std::move(nodes)} {
    std::error_code ignored;
    std::filesystem::create_directory(folder_, ignored);
  }

  void operator()(pid_t job, const std::string& output) {
    if (output.find("ready ") == std::string::npos || now_ns() < next_ns_) {
      return;
    }
    Result<Readings> asked =
        run_command({.words = {bench_->bin_folder() + "/sterna", "move", std::to_string(job), "0",
                               std::to_string(nodes_[next_])}},
                    folder_);
    if (asked) {
      next_ = (next_ + 1) % nodes_.size();
    }
    next_ns_ = now_ns() + kBetweenMovesNs;
  }

 private:
  const Bench* bench_;
  std::string folder_;  // Its own: the output of the job lies in the other one.
  std::vector<int> nodes_;
  std::size_t next_ = 0;  // Of nodes_.
  std::uint64_t next_ns_ = 0;
};

/// A reading, shown against one of the messages.
struct Variant {
  const char* reading;
  std::string_view params;
  bool is_judged = false;
};

struct Against {
  std::string reference;
  const char* reading;
};
const Against kMessage{"one message, between the same nodes", "send"};
const Against kAsleep{"one message, to a node that has fallen asleep", "send_asleep"};
const Against kFresh{"one message, to memory never touched", "send_fresh"};

/// The rows of one size.
class Size {
 public:
  Size(const Row& row, Bench& bench, const std::string& executable, int mebibytes)
      : row_{row}, bench_{bench}, executable_{executable}, mebibytes_{mebibytes} {}

  /// Where it was before, and the messages. An error if there is nothing to compare with.
  Result<> show_returns() {
    const Candidate ours{"two nodes", Maker::sterna, {"--nodes", "2"}, {}};
    Result<Readings> readings =
        run(ours, 2, {"returns", std::to_string(moves())}, Mover{bench_, {1, 0}});
    if (!readings || !readings.value().contains("move") || !readings.value().contains("send")) {
      return readings ? Error{Errc::malformed, "no move was seen"} : readings.error();
    }
    messages_ = readings.value();
    // Judged is what costs the rank its whole price: an order is prepared before the clock starts.
    static constexpr Variant kReturns[] = {{"own", "", true},
                                           {"own_touch", ", all pages read", true},
                                           {"move", ", interruption by an order"},
                                           {"touch", ", by an order, all pages read"}};
    show(readings.value(), kReturns, kMessage);
    // The move wakes the other node, the messages above find it awake: a message that does not.
    static constexpr Variant kBothAsleep[] = {
        {"own_touch", ", all pages read, both to a node that sleeps"}};
    show(readings.value(), kBothAsleep, kAsleep);
    return Done{};
  }

  void show_first_visits() {
    const Candidate ours{"many nodes", Maker::sterna, {"--nodes", "9"}, {}};
    if (Result<Readings> visits = run(ours, 9, {"visits"}, {})) {
      static constexpr Variant kVisits[] = {{"first", ", first time on each of 9 nodes"},
                                            {"first_touch", ", first time, all pages read"}};
      show(visits.value(), kVisits, kMessage);
      static constexpr Variant kBothFresh[] = {
          {"first_touch", ", first time, all pages read, both to fresh memory", true}};
      show(visits.value(), kBothFresh, kFresh);
    }
    // What a balancer's order costs. Nodes 0 to 4 share a processor where there are two.
    if (Result<Readings> visits = run(ours, 9, {"orders", std::to_string(std::min(moves(), 7))},
                                      Mover{bench_, {5, 2, 6, 3, 7, 4, 8}})) {
      static constexpr Variant kOrders[] = {{"move", ", first time, interruption by an order"},
                                            {"touch", ", first time, by an order, all pages read"}};
      show(visits.value(), kOrders, kMessage);
    }
  }

  /// As between hosts: the memory is not shared, its bytes go over TCP.
  void show_copies() {
    const Candidate ours{"copies",
                         Maker::sterna,
                         {"--nodes", "2", "--drivers", "tcp", "--set", "rank_memory=private"},
                         {}};
    Result<Readings> readings =
        run(ours, 2, {"returns", std::to_string(std::min(moves(), 6))}, Mover{bench_, {1, 0}});
    if (!readings) {
      return;
    }
    messages_ = readings.value();
    static constexpr Variant kCopies[] = {{"own_touch", ", copied over TCP, all pages read"}};
    show(readings.value(), kCopies, kMessage);
    static constexpr Variant kBothFresh[] = {
        {"own_touch", ", copied over TCP, all pages read, both to fresh memory"}};
    show(readings.value(), kBothFresh, kFresh);
  }

 private:
  [[nodiscard]] int moves() const noexcept { return bench_.options().quick ? 2 : 14; }

  Result<Readings> run(const Candidate& candidate, int ranks, std::vector<std::string> words,
                       const Meanwhile& meanwhile) {
    words.insert(words.begin(), std::to_string(mebibytes_ << 20));
    Command command = launch_command(bench_, candidate, ranks, executable_, words);
    command.seconds_max = 30;
    return run_command(command, bench_.work_folder(), meanwhile);
  }

  void show(const Readings& readings, std::span<const Variant> variants, const Against& against) {
    const auto reference = messages_.find(against.reading);
    for (const Variant& variant : variants) {
      const auto found = readings.find(variant.reading);
      if (found == readings.end() || reference == messages_.end()) {
        continue;
      }
      bench_.add({.id = row_.id,
                  .params = fmt::format("{} MiB{}", mebibytes_, variant.params),
                  .unit = "us",
                  .value = found->second,
                  .reference = against.reference,
                  .reference_value = reference->second,
                  .target = variant.is_judged ? std::optional{row_.target} : std::nullopt});
    }
  }

  const Row& row_;
  Bench& bench_;
  const std::string& executable_;
  int mebibytes_;
  Readings messages_;  // Of the same nodes and drivers.
};

}  // namespace

void run_migrate(const Row& row, Bench& bench) {
  static constexpr int kMebibytes[] = {1, 4, 16, 64};
  Result<std::string> executable = build_program(bench, Maker::sterna, "migrate");
  for (const int mebibytes : std::span{kMebibytes}.first(bench.options().quick ? 1 : 4)) {
    Result<> done = executable ? Result<>{Done{}} : Result<>{executable.error()};
    if (executable) {
      Size size{row, bench, executable.value(), mebibytes};
      done = size.show_returns();
      if (done) {
        size.show_first_visits();
        size.show_copies();
      }
    }
    if (!done) {
      bench.add({.id = row.id,
                 .params = fmt::format("{} MiB", mebibytes),
                 .unit = "us",
                 .reference = kMessage.reference,
                 .target = row.target,
                 .note = done.error().text});
    }
  }
}

}  // namespace sterna::bench
