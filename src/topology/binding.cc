// Which processors the calling kernel thread may use.
#include <vector>

#include <fmt/format.h>
#include <sched.h>

#include "base/syscall.h"
#include "topology/topology.h"

namespace sterna::topology {

namespace {

using Mask = std::vector<cpu_set_t>;  // As many as the machine needs, in one row.

CpuSet to_cpus(const Mask& mask) {
  CpuSet cpus;
  for (std::uint32_t cpu = 0; cpu < mask.size() * CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET_S(cpu, mask.size() * sizeof(cpu_set_t), mask.data())) {
      cpus.add(cpu);
    }
  }
  return cpus;
}

}  // namespace

Result<CpuSet> current_thread_cpus() {
  return cpus_of_thread(0);
}

Result<CpuSet> cpus_of_thread(int kernel_id) {
  // The kernel refuses a mask smaller than its own, whose size it does not tell.
  for (Mask mask(1); mask.size() <= 64; mask.resize(mask.size() * 2)) {
    if (::sched_getaffinity(kernel_id, mask.size() * sizeof(cpu_set_t), mask.data()) == 0) {
      return to_cpus(mask);
    }
    if (const int number = last_error_number(); number != EINVAL) {
      return system_error("cannot read which processors this process may use", number);
    }
  }
  return Error{Errc::unsupported, "this machine has more than 65,536 processors"};
}

Result<> bind_current_thread(const CpuSet& cpus) {
  const std::vector<std::uint32_t> list = cpus.list();
  if (list.empty()) {
    return Error{Errc::invalid_argument, "cannot bind a thread to no processor"};
  }
  Mask mask(list.back() / CPU_SETSIZE + 1);
  for (const std::uint32_t cpu : list) {
    CPU_SET_S(cpu, mask.size() * sizeof(cpu_set_t), mask.data());
  }
  if (::sched_setaffinity(0, mask.size() * sizeof(cpu_set_t), mask.data()) != 0) {
    return system_error(fmt::format("cannot bind a thread to processors {} (taskset or a cgroup "
                                    "may keep this process from them)",
                                    cpus.text()),
                        last_error_number());
  }
  return Done{};
}

}  // namespace sterna::topology
