// Sets of processors as lists and text.
#include "topology/cpuset.h"

namespace sterna::topology {

std::vector<std::uint32_t> CpuSet::list() const {
  std::vector<std::uint32_t> cpus;
  for (std::uint32_t cpu = 0; cpu < words_.size() * 64; ++cpu) {
    if (has(cpu)) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::string CpuSet::text() const {
  std::string text;
  const std::vector<std::uint32_t> cpus = list();
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const std::uint32_t first = cpus[i];
    while (i + 1 < cpus.size() && cpus[i + 1] == cpus[i] + 1) {
      ++i;
    }
    text += text.empty() ? "" : ",";
    text += std::to_string(first);
    if (cpus[i] != first) {
      text += '-';
      text += std::to_string(cpus[i]);
    }
  }
  return text;
}

}  // namespace sterna::topology
