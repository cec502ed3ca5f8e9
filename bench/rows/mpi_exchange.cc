// mpi.exchange.shm, mpi.exchange.tcp: two ranks that send each other as much at the same time, in
// the three ways in which programs write that, ours and the peers'. bench/programs/exchange.c.
#include <fmt/format.h>

#include "bench/contest.h"

namespace sterna::bench {
namespace {

struct Way {
  std::string_view reading;  // But for the size.
  std::string_view what;
};
constexpr Way kWays[] = {{"waitall", "Irecv, Isend, Waitall"},
                         {"sendrecv", "Sendrecv"},
                         {"receive", "Isend, Recv, Wait"}};
constexpr int kSizes[] = {8, 1024, 8192, 65536, 262144, 1048576, 4194304};

void run_exchange(const Row& row, Bench& bench, const char* driver,
                  const std::vector<Candidate>& peers) {
  Contest contest{.program = "exchange",
                  .arguments = {bench.options().quick ? "2" : "41"},
                  .rounds = bench.rounds(7),
                  .candidates = {{"processes", Maker::sterna, {"--drivers", driver}, {}}}};
  for (const int size : kSizes) {
    contest.arguments.push_back(std::to_string(size));
  }
  contest.candidates.insert(contest.candidates.end(), peers.begin(), peers.end());
  const std::vector<Standing> standings = hold(contest, bench);
  for (const Way& way : kWays) {
    for (const int size : kSizes) {
      bench.add(compare(row, standings,
                        {.reading = fmt::format("{}.{}", way.reading, size),
                         .params = fmt::format("{}, {}", size_text(size), way.what),
                         .unit = "us"}));
    }
  }
}

}  // namespace

void run_exchange_shm(const Row& row, Bench& bench) {
  run_exchange(row, bench, "shm", shm_peers());
}

void run_exchange_tcp(const Row& row, Bench& bench) {
  run_exchange(row, bench, "tcp", tcp_peers());
}

}  // namespace sterna::bench
