// mpi.unmatched.shm: messages that are there before their receives, ours and the peers'.
// bench/programs/unmatched.c.
#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

struct Kind {
  std::string_view reading;  // But for the size.
  std::string_view what;
};
constexpr Kind kKinds[] = {{"probe", "Probe, then Recv, to and fro"},
                           {"burst", "64 at once, received from the last"}};
constexpr int kSizes[] = {8, 1024, 4096, 16384, 65536};

}  // namespace

void run_unmatched_shm(const Row& row, Bench& bench) {
  Contest contest{.program = "unmatched",
                  .arguments = {bench.options().quick ? "2" : "41"},
                  .rounds = bench.rounds(7),
                  .candidates = {{"processes", Maker::sterna, {"--drivers", "shm"}, {}}}};
  for (const int size : kSizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  const std::vector<Candidate> peers = shm_peers();
  contest.candidates.insert(contest.candidates.end(), peers.begin(), peers.end());
  const std::vector<Standing> standings = hold(contest, bench);
  for (const Kind& kind : kKinds) {
    for (const int size : kSizes) {
      bench.add(compare(row, standings,
                        {.reading = fmt::format("{}.{}", kind.reading, size),
                         .params = fmt::format("{}, {}", size_text(size), kind.what),
                         .unit = "us"}));
    }
  }
}

}  // namespace sterna::bench
