// A trace in numbers: where the time of workers and ranks went, which calls took it, who moved.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/timeline.h"

namespace sterna::trace {

struct WorkerTimes {
  std::uint32_t node = 0;
  std::uint32_t worker = 0;
  std::uint64_t running_ns = 0;  // Of threads.
  std::uint64_t asleep_ns = 0;   // In the kernel. The rest: it looked for work.
  std::uint64_t switches = 0;
  std::uint64_t stolen = 0;  // Threads that it took from others.
};

/// Of a rank or another thread, from its first record to its last.
struct ThreadTimes {
  std::uint32_t node = 0;  // Where it was last.
  std::uint64_t key = 0;
  std::uint64_t running_ns = 0;
  std::uint64_t ready_ns = 0;    // Could run, and no worker was free.
  std::uint64_t waiting_ns = 0;  // For somebody to wake it.
  std::uint64_t moving_ns = 0;
  std::uint64_t turns = 0;
  std::uint64_t moves = 0;
};

struct CallTimes {
  std::string name;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t longest_ns = 0;
  std::uint64_t longest_rank = 0;
};

struct Move {
  std::uint64_t begin_ns = 0;
  std::uint64_t rank = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t duration_ns = 0;
  bool is_done = false;  // Else it stayed where it was.
};

struct Summary {
  std::vector<WorkerTimes> workers;
  std::vector<ThreadTimes> threads;  // Those that ran longest first.
  std::vector<CallTimes> calls;      // Those that took longest first.
  std::vector<Move> moves;           // By time.
  std::uint64_t messages = 0;
  std::uint64_t message_bytes = 0;
  std::uint64_t messages_paired = 0;
  std::uint64_t latency_median_ns = 0;  // From send to match, of those paired.
  std::uint64_t network_events = 0;
};

[[nodiscard]] Summary summarise(const Timeline& timeline);

}  // namespace sterna::trace
