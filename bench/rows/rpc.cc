// rpc.latency, rpc.bandwidth, paper.000.t6, paper.000.f5, paper.002.f2, paper.002.f3: calls against
// messages of the same size between the same two nodes, in one process each, batch by batch in
// turn. bench/programs/rpc.c.
#include <array>
#include <map>
#include <span>
#include <string>

#include <fmt/format.h>

#include "bench/contest.h"
#include "bench/statistics.h"

namespace sterna::bench {
namespace {

/// What is judged against what, of bench/programs/rpc.c.
struct Kind {
  const char* call;
  const char* message;
  std::string_view what;
  bool is_judged = true;
  bool is_of_main = false;  // It calls, and that of the other node waits.
};
constexpr Kind kCall{"call", "message", "a quick call"};
constexpr Kind kPost{"post", "message", "one-way calls"};
constexpr Kind kThread{"thread", "message", "a call of a thread", false};
constexpr Kind kMains{"thread", "message", "a call by main() of a thread", false, true};
constexpr Kind kOne{"call_one", "message_one", "a call"};

struct Measured {
  std::map<std::string, Pairs> pairs;  // By what is called and size.
  std::string trouble;
};

std::string reading(const char* name, int bytes) {
  return fmt::format("{}.{}", name, bytes);
}

Measured measure(Bench& bench, const char* driver, std::span<const int> sizes,
                 std::span<const Kind> kinds) {
  Measured measured;
  Result<std::string> program = build_program(bench, Maker::sterna, "rpc");
  if (!program) {
    measured.trouble = program.error().text;
    return measured;
  }
  std::string names;
  for (const Kind& kind : kinds) {
    names += fmt::format("{},{},", kind.message, kind.call);
  }
  std::vector<std::string> arguments{bench.options().quick ? "2" : "31", names};
  if (kinds.front().is_of_main) {
    arguments.insert(arguments.begin(), "-m");
  }
  for (const int size : sizes) {
    arguments.push_back(std::to_string(size));
  }
  const Candidate ours{driver, Maker::sterna, {"--drivers", driver}, {}};
  for (int left = bench.rounds(7); left > 0; --left) {
    Result<Readings> read = run_command(launch_command(bench, ours, 2, program.value(), arguments),
                                        bench.work_folder());
    if (!read) {
      measured.trouble = read.error().text;
      return measured;
    }
    for (const Kind& kind : kinds) {
      for (const int size : sizes) {
        const auto call = read.value().find(reading(kind.call, size));
        const auto message = read.value().find(reading(kind.message, size));
        if (call != read.value().end() && message != read.value().end()) {
          measured.pairs[reading(kind.call, size)].add(call->second, message->second);
        }
      }
    }
  }
  return measured;
}

void run(const Row& row, Bench& bench, const char* driver, std::span<const int> sizes,
         std::span<const Kind> kinds, std::optional<double> bandwidth_target = {}) {
  const Measured measured = measure(bench, driver, sizes, kinds);
  for (const Kind& kind : kinds) {
    for (const int size : sizes) {
      Figure figure{.id = row.id,
                    .params = fmt::format("{}, {} B, {}", kind.what, size, driver),
                    .unit = "us",
                    .reference = "a message of that size",
                    .note = measured.trouble};
      if (kind.is_judged) {
        figure.target = std::string_view{kind.call} == kOne.call
                            ? bandwidth_target.value_or(row.target)
                            : row.target;
      }
      const auto found = measured.pairs.find(reading(kind.call, size));
      if (found != measured.pairs.end()) {
        figure.value = found->second.our_median();
        figure.reference_value = found->second.reference_median();
      }
      bench.add(figure);
    }
  }
}

}  // namespace

void run_rpc_latency(const Row& row, Bench& bench) {
  static constexpr int kSizes[] = {1, 8, 64, 512, 4096};
  static constexpr Kind kKinds[] = {kCall, kPost, kThread};
  run(row, bench, "shm", kSizes, kKinds);
  const std::span<const int> word = std::span{kSizes}.subspan(1, 1);
  run(row, bench, "tcp", word, std::span{kKinds}.first(2));
  for (const char* const driver : {"shm", "tcp"}) {
    run(row, bench, driver, word, {&kMains, 1});
  }
}

void run_rpc_bandwidth(const Row& row, Bench& bench) {
  static constexpr int kSizes[] = {1 << 16, 1 << 18, 1 << 20, 1 << 22};
  run(row, bench, "shm", kSizes, {&kOne, 1});
  run(row, bench, "tcp", kSizes, {&kOne, 1});
}

/// The paper's ratios: 18 % more latency, 84 % of the bandwidth; here both over TCP.
void run_paper_000_t6(const Row& row, Bench& bench) {
  static constexpr int kSmall[] = {8};
  static constexpr int kLarge[] = {1 << 20};
  run(row, bench, "tcp", kSmall, {&kCall, 1});
  run(row, bench, "tcp", kLarge, {&kOne, 1}, 1 / 0.98);
}

void run_paper_000_f5(const Row& row, Bench& bench) {
  static constexpr int kSizes[] = {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20};
  run(row, bench, "tcp", kSizes, {&kOne, 1});
}

void run_paper_002_f2(const Row& row, Bench& bench) {
  static constexpr int kSizes[] = {1, 64, 1024};
  run(row, bench, "shm", kSizes, {&kPost, 1});
}

void run_paper_002_f3(const Row& row, Bench& bench) {
  static constexpr int kSizes[] = {1 << 18, 1 << 20, 1 << 22};
  run(row, bench, "shm", kSizes, {&kOne, 1});
}

}  // namespace sterna::bench
