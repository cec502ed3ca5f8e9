// What `sterna doctor` looks at on this machine, and what it makes of that. Facts and judgement are
// apart, so that the judgement is tested without the machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sterna::launch {

inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

struct HostFact {
  std::string name;
  std::string error;    // Empty: a shell there answered.
  std::string version;  // Of the sterna there; empty: there is none.
};

/// Nothing: it could not be read.
struct MachineFacts {
  std::optional<std::uint64_t> shm_bytes_total;  // Of /dev/shm.
  std::optional<std::uint64_t> shm_bytes_free;
  std::optional<std::string> huge_pages;  // The word in brackets: always, madvise, never.
  std::optional<int> ptrace_scope;        // Of Yama.
  // errno when a process reads another one's memory; 0: it can.
  std::optional<int> sibling_read_error;
  int barrier_error = 0;        // errno of membarrier's registration.
  std::uint32_t online = 1;     // Processors of the machine.
  std::uint32_t allowed = 1;    // That we may use (cpuset, taskset).
  std::optional<double> quota;  // Processors' worth of time that the control group gives.
  std::uint64_t address_limit = kUnlimited;  // ulimit -v, bytes.
  std::uint64_t process_limit = kUnlimited;  // ulimit -u
  std::uint64_t file_limit = kUnlimited;     // ulimit -n
  std::optional<std::uint64_t> map_count_max;
  std::optional<int> overcommit;
  std::string folder_error;  // Of the folder of running jobs; empty: it can be used.
  std::vector<std::string> boards;      // net::fabric::boards()
  std::vector<std::string> interfaces;  // Of the kernel: eth0, lo.
  std::string drivers;                  // The setting, as it holds for a job started from here.
  std::vector<HostFact> hosts;
};

enum class Verdict : std::uint8_t { good, notable, bad };

struct Finding {
  Verdict verdict = Verdict::good;
  std::string about;  // One or two words.
  std::string text;   // What is the case, and what to do.
};

/// The least of what cpu.max (second version) and cpu.cfs_quota_us (first) give to one of the
/// groups of /proc/self/cgroup, whose text is `groups`, or to one above it, below `root`
/// (/sys/fs/cgroup).
[[nodiscard]] std::optional<double> smallest_quota(const std::string& root,
                                                   const std::string& groups);

/// `hosts` are asked through `shell`, as sterna run does. Forks: for a process with one thread.
[[nodiscard]] MachineFacts examine(const std::vector<std::string>& hosts, const std::string& shell);
[[nodiscard]] std::vector<Finding> judge(const MachineFacts& facts, const std::string& version);

}  // namespace sterna::launch
