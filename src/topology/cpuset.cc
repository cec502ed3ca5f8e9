// Sets of processors as lists and text.
#include "topology/cpuset.h"

#include <charconv>

namespace sterna::topology {
namespace {

constexpr std::uint32_t kCpuMax = 1U << 20;

/// Takes the number at the begin of the text; false: there is none, or none of a processor.
bool take_cpu(std::string_view& text, std::uint32_t& cpu) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{} && cpu <= kCpuMax;
}

}  // namespace

CpuSet CpuSet::read(std::string_view text) {
  CpuSet cpus;
  std::uint32_t first = 0;
  while (take_cpu(text, first)) {
    std::uint32_t last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_cpu(text, last)) {
        break;
      }
    }
    for (std::uint32_t cpu = first; cpu <= last; ++cpu) {
      cpus.add(cpu);
    }
    text.remove_prefix(text.starts_with(',') ? 1 : 0);
  }
  return cpus;
}

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
