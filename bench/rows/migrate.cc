// migrate.bandwidth: a rank moves between two nodes, against the same bytes in one message. It goes
// to and fro, and the node that it left last keeps it mapped; what it costs to come where it never
// was is shown beside that, also against a message to memory that its receiver never touched.
//
// To wake a node that sleeps takes longer than a move or a message of 1 MiB. So like is judged
// against like: both go to a node that polls, or both to one that has fallen asleep.
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
    if (output.find("ready ") == std::string::npos || output.find("\nmove ") != std::string::npos ||
        now_ns() < next_ns_) {
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

struct Against {
  std::string_view reference;
  const char* reading;
};
constexpr Against kMessage{"one message, to a node that polls", "send"};
constexpr Against kAsleep{"one message, to a node that sleeps", "send_asleep"};
constexpr Against kUsed{"one message, written before, read after", "send_used"};
constexpr Against kAsleepUsed{"one message, written before, read after", "send_asleep_used"};
constexpr Against kFresh{"one message, to memory never touched", "send_fresh"};

/// A reading, shown against one of the messages.
struct Variant {
  const char* reading;
  std::string_view params;
  Against against;
  bool is_judged = false;
};

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
    static constexpr Variant kReturns[] = {
        {"own", ", to a node that polls", kMessage, true},
        {"own_touch", ", to a node that polls, all pages read", kMessage, true},
        {"own_used", ", to a node that polls, all bytes written before, read after", kUsed, true},
        {"own_asleep", ", to a node that sleeps", kAsleep, true},
        {"own_asleep_touch", ", to a node that sleeps, all pages read", kAsleep, true},
        {"own_asleep_used", ", to a node that sleeps, all bytes written before, read after",
         kAsleepUsed, true},
        {"own_asleep_touch", ", to a node that sleeps, all pages read", kMessage},
        {"move", ", interruption by an order", kMessage},
        {"touch", ", by an order, all pages read", kMessage}};
    show(readings.value(), kReturns);
    return Done{};
  }

  void show_first_visits() {
    const Candidate ours{"many nodes", Maker::sterna, {"--nodes", "9"}, {}};
    if (Result<Readings> visits = run(ours, 9, {"visits"}, {})) {
      static constexpr Variant kVisits[] = {
          {"first", ", first time on each of 9 nodes", kMessage},
          {"first_touch", ", first time, all pages read", kMessage},
          {"first_touch", ", first time, all pages read, both to fresh memory", kFresh, true}};
      show(visits.value(), kVisits);
    }
    // What a balancer's order costs. Nodes 0 to 4 share a processor where there are two.
    if (Result<Readings> visits = run(ours, 9, {"orders", std::to_string(std::min(moves(), 7))},
                                      Mover{bench_, {5, 2, 6, 3, 7, 4, 8}})) {
      static constexpr Variant kOrders[] = {
          {"move", ", first time, interruption by an order", kMessage},
          {"touch", ", first time, by an order, all pages read", kMessage}};
      show(visits.value(), kOrders);
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
    static constexpr Variant kCopies[] = {
        {"own_touch", ", copied over TCP, to a node that polls, all pages read", kMessage},
        {"own_used", ", copied over TCP, to a node that polls, all bytes written, read", kUsed},
        {"own_asleep_touch", ", copied over TCP, to a node that sleeps, all pages read", kAsleep},
        {"own_touch", ", copied over TCP, all pages read, both to fresh memory", kFresh}};
    show(readings.value(), kCopies);
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

  void show(const Readings& readings, std::span<const Variant> variants) {
    for (const Variant& variant : variants) {
      const auto reference = messages_.find(variant.against.reading);
      const auto found = readings.find(variant.reading);
      if (found == readings.end() || reference == messages_.end()) {
        continue;
      }
      bench_.add({.id = row_.id,
                  .params = fmt::format("{} MiB{}", mebibytes_, variant.params),
                  .unit = "us",
                  .value = found->second,
                  .reference = std::string{variant.against.reference},
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
                 .reference = std::string{kMessage.reference},
                 .target = row.target,
                 .note = done.error().text});
    }
  }
}

}  // namespace sterna::bench
