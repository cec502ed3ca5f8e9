// balance.gain: the uneven demonstration with and without balancing, on two nodes.
#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {

void run_balance(const Row& row, Bench& bench) {
  const bool quick = bench.options().quick;
  const Contest contest{
      .program = "heat",
      .arguments =
          quick ? std::vector<std::string>{"64", "5"} : std::vector<std::string>{"320", "300"},
      .rank_count = 16,
      .rounds = bench.rounds(3),
      .is_preferred = true,
      .candidates = {{"balanced", Maker::sterna, {"--nodes", "2", "--balance", "refine"}, {}},
                     {"not balanced", Maker::sterna, {"--nodes", "2"}, {}}}};
  bench.add(compare(row, hold(contest, bench),
                    {.reading = "seconds", .params = "heat, 16 ranks, 2 nodes", .unit = "s"}));
}

}  // namespace sterna::bench
