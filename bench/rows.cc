// The table of rows, one line each.
#include <array>

#include "bench/row.h"

namespace sterna::bench {

std::span<const Row> rows() {
  static constexpr std::array kRows{
      Row{"thread.yield", "a yield against a bare switch of contexts (Boost.Context)", 2.0,
          run_yield},
      Row{"thread.create", "create and join against a kernel thread", 0.05, run_create},
      Row{"mpi.latency.node", "two ranks of one node, 8 B, against the best peer's shared memory",
          0.5, run_latency_node},
      Row{"mpi.latency.shm", "shared memory, 8 B to 64 KB, against the best peer", 1.2,
          run_latency_shm},
      Row{"mpi.latency.tcp", "TCP, 8 B to 64 KB, against the best peer", 1.1, run_latency_tcp},
      Row{"mpi.oversubscribed", "barrier and 8 B allreduce of 32 ranks, against the best peer", 0.2,
          run_oversubscribed},
      Row{"mpi.start", "start and end of 64 ranks, against the best peer", 0.2, run_start},
      Row{"migrate.bandwidth", "moving a rank of 1 to 64 MiB against sending as much", 1.12,
          run_migrate},
      Row{"balance.gain", "the uneven demonstration, balanced against not balanced", 0.67,
          run_balance},
  };
  return kRows;
}

}  // namespace sterna::bench
