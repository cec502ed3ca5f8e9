// mpi.datatypes: packing and sending irregular datatypes, ours and the peers'.
// bench/programs/datatypes.c.
#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

struct Kind {
  std::string_view reading;  // But for the rest.
  std::string_view what;
};
constexpr Kind kWhats[] = {{"pack", "packed"},
                           {"unpack", "unpacked"},
                           {"way", "sent, one way"},
                           {"make", "made and committed"}};
constexpr Kind kKinds[] = {{"alike", "blocks"},
                           {"unlike", "blocks of unlike lengths around that"},
                           {"rows", "rows of three blocks"}};
constexpr int kSizes[] = {8, 32, 256};

}  // namespace

void run_datatypes(const Row& row, Bench& bench) {
  Contest contest{.program = "datatypes",
                  .arguments = {bench.options().quick ? "2" : "41"},
                  .rounds = bench.rounds(7),
                  .candidates = {{"processes", Maker::sterna, {"--drivers", "shm"}, {}}}};
  for (const int size : kSizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  const std::vector<Candidate> peers = shm_peers();
  contest.candidates.insert(contest.candidates.end(), peers.begin(), peers.end());
  const std::vector<Standing> standings = hold(contest, bench);
  for (const Kind& what : kWhats) {
    for (const Kind& kind : kKinds) {
      for (const int size : kSizes) {
        bench.add(compare(
            row, standings,
            {.reading = fmt::format("{}.{}.{}", what.reading, kind.reading, size),
             .params = fmt::format("1000 {}, {}, {}", kind.what, size_text(size), what.what),
             .unit = "us",
             // Once for many messages; others leave part of it to the first of them.
             .is_information = what.reading == "make"}));
      }
    }
  }
}

}  // namespace sterna::bench
