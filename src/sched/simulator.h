// A machine that does not exist, with the real engine and the real policies over virtual workers:
// what would a policy make of that workload there? Virtual time; equal seeds give equal runs.
//
// The cost model. A piece of work takes its time, more if its memory is on another memory node
// (remote_factor, for the part of it that waits for memory), and more for the first time after the
// processor ran a thread of another group (its cache is cold). To another machine of a network a
// thread takes its memory along, as mobile threads do, and pays for the way (network_ns); there is
// no remote memory across it. A running thread leaves at the end
// of its piece, of the quantum if others wait, or when the engine asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sched/loop_chunks.h"
#include "sched/policy.h"

namespace sterna::sched {

/// What a thread does next.
struct Step {
  enum class Kind : std::uint8_t {
    compute,  // `ns` of work, of which a part waits for memory.
    barrier,  // Waits for all threads with this barrier, off the processor.
    spin,     // The same, but goes on to use the processor meanwhile.
    loop,     // Iterations of the loop of its group, chunk by chunk, while any are left.
  };
  Kind kind = Kind::compute;
  std::uint64_t ns = 0;
};

struct WorkloadThread {
  std::uint32_t group = 0;  // Index in groups.
  std::uint64_t load = 1;
  std::uint32_t processor = kNoPlace;  // Index of a processor on which it is fixed, or kNoPlace.
  // The place of that kind around `processor` is where it stays.
  topology::PlaceKind within = topology::PlaceKind::pu;
  std::uint32_t last = kNoPlace;  // Index of a processor on which it ran before, or kNoPlace.
  std::vector<Step> steps;        // One round.
};

/// A loop that the threads of a group share. What an iteration costs goes linearly from that of the
/// first to that of the last.
struct WorkloadLoop {
  LoopScheme scheme = LoopScheme::guided;
  std::uint64_t count = 0;  // Of iterations.
  double first_ns = 0;
  double last_ns = 0;
  std::uint64_t chunk_ns = 0;  // To get a chunk.
};

/// Threads of a group are in a bubble, share a cache, and meet at barriers with those of the same
/// barrier number.
struct WorkloadGroup {
  std::uint32_t barrier = 0;  // Groups of the same number share barriers.
  bool has_bubble = true;
  WorkloadLoop loop = {};
};

struct Workload {
  std::string name;
  std::vector<WorkloadGroup> groups;
  std::vector<WorkloadThread> threads;
  std::uint32_t rounds = 1;            // Each thread does its steps so many times.
  double memory_part = 0;              // Of the work, that waits for memory.
  double remote_factor = 1;            // How much longer remote memory takes.
  std::uint64_t cold_ns = 0;           // Time to fill a cache with the data of another group.
  double jitter = 0;                   // Of the length of pieces, so that orders differ.
  std::uint64_t network_ns = 100'000;  // To move to another machine, with its memory.
};

/// How far a simulation has come.
struct SimulationProgress {
  std::uint64_t virtual_ns = 0;
  std::uint64_t events = 0;
  std::size_t ended = 0;  // Of the threads.
  std::size_t threads = 0;
};

struct SimulationOptions {
  std::string topology;  // As Topology::synthetic.
  std::string policy;
  // A thread that computes leaves after that long, from half to one and a half of it.
  std::uint64_t quantum_ns = 10'000'000;
  std::uint64_t seed = 1;
  std::uint64_t end_ns = 0;  // Stops then, whatever is not done; 0: when all is.
  std::uint64_t events_max = 50'000'000;  // A policy that never lets work end has an end.
  // Indices of the processors that have a worker, ascending; empty: all.
  std::vector<std::uint32_t> processors = {};
  // Called now and then, many times a second, for whoever waits.
  std::function<void(const SimulationProgress&)> on_progress = {};
};

struct SimulationResult {
  std::uint64_t makespan_ns = 0;
  std::uint64_t work_ns = 0;  // Of all pieces, as if on one processor with local memory.
  double speedup = 0;         // work / makespan.
  double locality = 0;        // Part of the work done on the node of its memory.
  double balance = 0;         // Mean over maximum of the processors' busy time.
  std::uint64_t switches = 0;
  std::uint64_t network_moves = 0;       // Of threads, from one machine to another.
  std::vector<std::uint64_t> busy_ns;    // By processor with a worker.
  std::vector<std::uint64_t> thread_ns;  // By thread.
  // By thread: index of the processor on which it ran last, or kNoPlace.
  std::vector<std::uint32_t> thread_processor;
};

/// INVALID_ARGUMENT: no such machine or policy, a fixed thread without its processor; REFUSED:
/// threads remain that the policy never runs, or it was given up after so many events.
[[nodiscard]] Result<SimulationResult> simulate(const SimulationOptions& options,
                                                const Workload& workload);

/// Heat conduction (paper 003 §5.1): strips of a mesh, one thread each, in bubbles of `group_size`
/// neighbours (0: none); all meet after every step. `is_fixed`: thread i on processor i.
[[nodiscard]] Workload conduction(std::uint32_t strips, std::uint32_t group_size, bool is_fixed);
/// Factorisations (§5.2): `tasks` at once, each of `threads_each` threads that meet often.
[[nodiscard]] Workload lu_tasks(std::uint32_t tasks, std::uint32_t threads_each);
/// Gangs of threads that compute without end (§3.4.2), for `ns` of each thread.
[[nodiscard]] Workload gangs(const std::vector<std::uint32_t>& sizes, std::uint64_t ns);

/// A parallel loop (§2.3) whose first iterations are the dearest, as in a triangular matrix, shared
/// by `threads` of one bubble.
[[nodiscard]] Workload parallel_loop(LoopScheme scheme, std::uint32_t threads);

/// From the text of a file; docs/guide/policies.md has the language. MALFORMED names the line.
[[nodiscard]] Result<Workload> parse_workload(const std::string& text, const std::string& name);

}  // namespace sterna::sched
