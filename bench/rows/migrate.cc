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
// New memory of a mobile rank, which its nodes share, costs more than that of a process.
constexpr Against kFreshest{"one message, of ranks or processes, to memory never touched",
                            "send_freshest"};

/// A reading, shown against one of the messages.
struct Variant {
  const char* reading;
  std::string_view params;
  Against against;
  bool is_judged = false;
  double target = 0;  // If judged; 0: that of the row.
};

// First visits map memory, messages copy it: to stay below a message is no achievement there.
constexpr double kFirstVisitTarget = 0.7;

const double* find(const Readings& readings, const char* name) {
  const auto found = readings.find(name);
  return found == readings.end() ? nullptr : &found->second;
}

/// The rows of one size.
class Size {
 public:
  Size(const Row& row, Bench& bench, Result<std::string>& executable, int mebibytes)
      : row_{row}, bench_{bench}, executable_{executable}, mebibytes_{mebibytes} {}

  /// Where it was before, and the messages.
  void show_returns() {
    const Candidate ours{"two nodes", Maker::sterna, {"--nodes", "2"}, {}};
    Result<Readings> readings =
        run(ours, 2, {"returns", std::to_string(moves())}, Mover{bench_, {1, 0}});
    messages_ = readings ? readings.value() : Readings{};
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
    show(readings, kReturns);
  }

  /// After show_returns(), for its messages.
  void show_first_visits() {
    take_messages_of_processes();
    const Candidate ours{"many nodes", Maker::sterna, {"--nodes", "9"}, {}};
    Result<Readings> visits = run(ours, 9, {"visits"}, {});
    static constexpr Variant kVisits[] = {
        {"first", ", first time on each of 9 nodes", kMessage},
        {"first_touch", ", first time, all pages read", kMessage},
        {"first_touch", ", first time, all pages read, both to fresh memory", kFreshest, true,
         kFirstVisitTarget}};
    show(visits, kVisits);
    // What a balancer's order costs. Nodes 0 to 4 share a processor where there are two.
    Result<Readings> orders = run(ours, 9, {"orders", std::to_string(std::min(moves(), 7))},
                                  Mover{bench_, {5, 2, 6, 3, 7, 4, 8}});
    static constexpr Variant kOrders[] = {
        {"move", ", first time, interruption by an order", kMessage},
        {"touch", ", first time, by an order, all pages read", kMessage}};
    show(orders, kOrders);
  }

  /// As between hosts: the memory is not shared, its bytes go over TCP.
  void show_copies() {
    const Candidate ours{"copies",
                         Maker::sterna,
                         {"--nodes", "2", "--drivers", "tcp", "--set", "rank_memory=private"},
                         {}};
    Result<Readings> readings =
        run(ours, 2, {"returns", std::to_string(std::min(moves(), 6))}, Mover{bench_, {1, 0}});
    messages_ = readings ? readings.value() : Readings{};
    static constexpr Variant kCopies[] = {
        {"own_touch", ", copied over TCP, to a node that polls, all pages read", kMessage},
        {"own_used", ", copied over TCP, to a node that polls, all bytes written, read", kUsed},
        {"own_asleep_touch", ", copied over TCP, to a node that sleeps, all pages read", kAsleep},
        {"own_touch", ", copied over TCP, all pages read, both to fresh memory", kFresh}};
    show(readings, kCopies);
  }

 private:
  [[nodiscard]] int moves() const noexcept { return bench_.options().quick ? 2 : 14; }

  Result<Readings> run(const Candidate& candidate, int ranks, std::vector<std::string> words,
                       const Meanwhile& meanwhile) {
    if (!executable_) {
      return executable_.error();
    }
    words.insert(words.begin(), std::to_string(mebibytes_ << 20));
    Command command = launch_command(bench_, candidate, ranks, executable_.value(), words);
    command.seconds_max = 30;
    return run_command(command, bench_.work_folder(), meanwhile);
  }

  void take_messages_of_processes() {
    const Candidate processes{"two processes", Maker::sterna, {}, {}};
    Result<Readings> sends = run(processes, 2, {"fresh"}, {});
    const double* const of_ranks = find(messages_, kFresh.reading);
    const double* const of_processes = sends ? find(sends.value(), kFresh.reading) : nullptr;
    if (of_ranks != nullptr && of_processes != nullptr) {
      bench_.say(fmt::format("{} MiB to memory never touched: ranks {:.4g} us, processes {:.4g} us",
                             mebibytes_, *of_ranks, *of_processes));
      messages_[kFreshest.reading] = std::min(*of_ranks, *of_processes);
    } else if (!sends) {
      bench_.say(fmt::format("two processes: {}", sends.error().text));
    }
  }

  [[nodiscard]] std::optional<double> target_of(const Variant& variant) const noexcept {
    if (!variant.is_judged) {
      return std::nullopt;
    }
    return variant.target != 0 ? variant.target : row_.target;
  }

  /// What cannot be shown says why; if it was to be judged, it has failed.
  void show(Result<Readings>& readings, std::span<const Variant> variants) {
    for (const Variant& variant : variants) {
      Figure figure{.id = row_.id,
                    .params = fmt::format("{} MiB{}", mebibytes_, variant.params),
                    .unit = "us",
                    .reference = std::string{variant.against.reference},
                    .target = target_of(variant)};
      const double* const own = readings ? find(readings.value(), variant.reading) : nullptr;
      const double* const reference = find(messages_, variant.against.reading);
      if (own != nullptr && reference != nullptr) {
        figure.value = *own;
        figure.reference_value = *reference;
      } else if (!readings) {
        figure.note = readings.error().text;
      } else {
        figure.note = fmt::format("there is no figure '{}'",
                                  own == nullptr ? variant.reading : variant.against.reading);
      }
      bench_.add(figure);
    }
  }

  const Row& row_;
  Bench& bench_;
  Result<std::string>& executable_;
  int mebibytes_;
  Readings messages_;  // Of the same nodes and drivers.
};

}  // namespace

void run_migrate(const Row& row, Bench& bench) {
  static constexpr int kMebibytes[] = {1, 4, 16, 64};
  Result<std::string> executable = build_program(bench, Maker::sterna, "migrate");
  for (const int mebibytes : std::span{kMebibytes}.first(bench.options().quick ? 1 : 4)) {
    Size size{row, bench, executable, mebibytes};
    size.show_returns();
    size.show_first_visits();
    size.show_copies();
  }
}

}  // namespace sterna::bench
