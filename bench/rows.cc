// The table of rows, one line each.
#include <array>

#include "bench/row.h"

namespace sterna::bench {

std::span<const Row> rows() {
  static constexpr std::array kRows{
      Row{"thread.yield", "a yield against a bare switch of contexts (Boost.Context)", 2.0,
          run_yield},
      Row{"thread.create", "create and join against a kernel thread", 0.05, run_create},
      Row{"thread.yield.fiber", "a yield of 2 and of 1000 threads against Boost.Fiber", 0.25,
          run_yield_fiber},
      Row{"thread.create.fiber", "create and join against Boost.Fiber", 0.1, run_create_fiber},
      Row{"thread.barrier.fiber", "a barrier of 64 and of 1024, per thread, against Boost.Fiber",
          0.25, run_barrier_fiber},
      Row{"thread.mutex.fiber", "lock and unlock against Boost.Fiber", 0.5, run_mutex_fiber},
      Row{"thread.semaphore.fiber", "a ping-pong by semaphores against Boost.Fiber", 0.2,
          run_semaphore_fiber},
      Row{"thread.reuse", "creation on used stacks against fresh ones (paper 000, T4)", 1.0 / 15,
          run_reuse},
      Row{"thread.spawn.tbb", "fork-join tasks on all processors, per task, against oneTBB", 0.4,
          run_spawn_tbb},
      Row{"thread.handover",
          "waking a thread of another processor against two cache-line exchanges", 2, run_handover},
      Row{"thread.million", "a million threads that wait against the page faults of their stacks",
          1.6, run_million},
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
      Row{"bubble.overhead", "a yield in a bubble against the same threads without bubbles", 1.04,
          run_bubble_overhead},
      Row{"gang.fairness", "the gang that has most against a third of the machine, simulated",
          1.011, run_gang_fairness},
      Row{"conduction", "bubbles against threads fixed by hand, simulated", 1 / 0.998,
          run_conduction},
      Row{"lu.tasks", "gangs of LU tasks against a speed-up of 3.5, simulated", 1.0, run_lu_tasks},
  };
  return kRows;
}

}  // namespace sterna::bench
