// What the facts about a machine mean for Sterna.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "launch/doctor.h"
#include "net/drivers/choice.h"

namespace sterna::launch {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

struct Findings {
  std::vector<Finding> all;
  void add(Verdict verdict, const char* about, std::string text) {
    all.push_back({verdict, about, std::move(text)});
  }
};

void judge_memory(const MachineFacts& facts, Findings& findings) {
  if (!facts.shm_bytes_free || !facts.shm_bytes_total) {
    findings.add(
        Verdict::bad, "shared memory",
        "/dev/shm cannot be read: mount a tmpfs there; without it: sterna run --drivers tcp");
  } else {
    const std::uint64_t free = *facts.shm_bytes_free / kMiB;
    const Verdict verdict = free < 8 ? Verdict::bad : free < 128 ? Verdict::notable : Verdict::good;
    findings.add(
        verdict, "shared memory",
        fmt::format("/dev/shm has {} of {} MiB free{}", free, *facts.shm_bytes_total / kMiB,
                    verdict == Verdict::good
                        ? ""
                        : "; a job with many ranks needs more: mount -o "
                          "remount,size=1G /dev/shm, or --shm-size of a container"));
  }
  if (facts.huge_pages) {
    const bool is_off = *facts.huge_pages == "never";
    findings.add(is_off ? Verdict::notable : Verdict::good, "huge pages",
                 fmt::format("transparent huge pages: {}{}", *facts.huge_pages,
                             is_off ? "; large ranks move and start faster with madvise in "
                                      "/sys/kernel/mm/transparent_hugepage/enabled"
                                    : ""));
  }
  if (facts.address_limit != kUnlimited) {
    findings.add(Verdict::bad, "addresses",
                 fmt::format("the limit of addresses is {} MiB; threads and ranks that move need "
                             "terabytes of (unused) addresses: ulimit -v unlimited",
                             facts.address_limit / kMiB));
  }
  if (facts.overcommit && *facts.overcommit == 2) {
    findings.add(Verdict::notable, "overcommit",
                 "vm.overcommit_memory is 2: stacks of threads count before they are used; many "
                 "threads may be refused. 0 is the kernel's default");
  }
  if (facts.map_count_max && *facts.map_count_max < 65'530) {
    findings.add(Verdict::notable, "mappings",
                 fmt::format("vm.max_map_count is {}; guarded stacks need one or two each: 65530 "
                             "is the kernel's default",
                             *facts.map_count_max));
  }
}

void judge_permissions(const MachineFacts& facts, Findings& findings) {
  if (!facts.sibling_read_error) {
    findings.add(Verdict::bad, "processes",
                 "no process can be started to try what processes may: see ulimit -u, and pids.max "
                 "of the control group");
  } else if (*facts.sibling_read_error == 0) {
    findings.add(Verdict::good, "direct copies",
                 "a process may read another one's memory: large messages are copied once");
  } else {
    const bool is_yama = facts.ptrace_scope.value_or(0) != 0;
    findings.add(
        Verdict::notable, "direct copies",
        fmt::format(
            "a process may not read another one's memory ({}{}): large messages between "
            "processes are copied twice. {}",
            std::strerror(*facts.sibling_read_error),
            is_yama ? fmt::format("; kernel.yama.ptrace_scope is {}", *facts.ptrace_scope) : "",
            is_yama ? "sysctl kernel.yama.ptrace_scope=0 allows it"
                    : "A container needs --cap-add=SYS_PTRACE for it"));
  }
  if (facts.barrier_error != 0) {
    findings.add(
        Verdict::notable, "membarrier",
        fmt::format("the kernel refuses it ({}): each switch of threads costs some ns more",
                    std::strerror(facts.barrier_error)));
  }
  if (!facts.folder_error.empty()) {
    findings.add(Verdict::bad, "jobs",
                 facts.folder_error + ": sterna ps, top, move and doctor cannot reach jobs");
  }
}

void judge_processors(const MachineFacts& facts, Findings& findings) {
  findings.add(Verdict::good, "processors",
               facts.allowed == facts.online
                   ? fmt::format("all {}", facts.online)
                   : fmt::format("{} of {}: a cpuset or taskset allows these; jobs use no others",
                                 facts.allowed, facts.online));
  if (facts.quota && *facts.quota < facts.allowed) {
    findings.add(Verdict::notable, "processor time",
                 fmt::format("the control group gives the time of {:.1f} processors, but {} may be "
                             "used: workers will be stopped at times. Allow as many processors as "
                             "there is time (--cpuset-cpus), or raise cpu.max",
                             *facts.quota, facts.allowed));
  }
  if (facts.process_limit < 1024) {
    findings.add(Verdict::notable, "processes",
                 fmt::format("at most {} processes and kernel threads: ulimit -u 4096",
                             facts.process_limit));
  }
  if (facts.file_limit < 1024) {
    findings.add(Verdict::notable, "files",
                 fmt::format("at most {} open files; each node needs some, and one for each other "
                             "node on another host: ulimit -n 4096",
                             facts.file_limit));
  }
}

bool names_fabric(const std::string& drivers) {
  auto chosen = net::choose_drivers(drivers);
  return chosen && std::ranges::any_of(chosen.value(), [](const net::DriverChoice& choice) {
           return choice.entry->name == "fabric";
         });
}

/// Boards that only libfabric knows: an interface of the kernel the driver tcp uses as well, and
/// inside a host shared memory is better.
void judge_networks(const MachineFacts& facts, Findings& findings) {
  std::string known;
  std::string first;
  for (const std::string& board : facts.boards) {
    const std::string domain = board.substr(board.find(':') + 1);
    if (board.starts_with("shm:") ||
        std::ranges::find(facts.interfaces, domain) != facts.interfaces.end()) {
      continue;
    }
    first = first.empty() ? board : first;
    known += (known.empty() ? "" : ", ") + board;
  }
  if (known.empty()) {
    return;
  }
  if (names_fabric(facts.drivers)) {
    findings.add(Verdict::good, "networks",
                 fmt::format("libfabric has {}; the setting drivers is {}", known, facts.drivers));
  } else {
    findings.add(Verdict::notable, "networks",
                 fmt::format("libfabric has {}, which no job uses unless it names the driver "
                             "fabric: sterna run --drivers shm,fabric@{}, or "
                             "STERNA_DRIVERS=shm,fabric@{}",
                             known, first, first));
  }
}

void judge_hosts(const MachineFacts& facts, const std::string& version, Findings& findings) {
  for (const HostFact& host : facts.hosts) {
    const std::string about = "host " + host.name;
    if (!host.error.empty()) {
      findings.add(Verdict::bad, about.c_str(), host.error);
    } else if (host.version.empty()) {
      findings.add(Verdict::bad, about.c_str(),
                   "answers, but has no sterna at the path of this one: install it there at the "
                   "same path, or share the file system");
    } else if (host.version != version) {
      findings.add(Verdict::bad, about.c_str(),
                   fmt::format("has {}; here it is {}: install one version everywhere",
                               host.version, version));
    } else {
      findings.add(Verdict::good, about.c_str(), "answers with " + host.version);
    }
  }
}

}  // namespace

std::vector<Finding> judge(const MachineFacts& facts, const std::string& version) {
  Findings findings;
  judge_processors(facts, findings);
  judge_memory(facts, findings);
  judge_permissions(facts, findings);
  judge_networks(facts, findings);
  judge_hosts(facts, version, findings);
  return std::move(findings.all);
}

}  // namespace sterna::launch
