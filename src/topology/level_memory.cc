// See level_memory.h. The files: cpu/cpuN/cache/indexM/{level,type,size,shared_cpu_list},
// node/nodeN/{meminfo,cpulist}.
#include "topology/level_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace sterna::topology {
namespace {

constexpr std::uint32_t kIndexMax = 16;  // Caches of one processor.
constexpr std::uint32_t kNodeMax = 1024;
constexpr std::uint32_t kMissingMax = 64;  // Numbers without a node between two.

/// The first line; empty: it cannot be read.
std::string line_of(const std::string& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t number_at(std::string_view text, std::size_t& used) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  used = error == std::errc{} ? static_cast<std::size_t>(end - text.data()) : 0;
  return number;
}

/// "48K", "32M".
std::uint64_t bytes_in(std::string_view text) noexcept {
  std::size_t used = 0;
  const std::uint64_t number = number_at(text, used);
  const char unit = used < text.size() ? text[used] : ' ';
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

/// "Node 0 MemTotal:       24684100 kB" among the lines.
std::uint64_t memory_in(const std::string& path) {
  std::ifstream file{path};
  constexpr std::string_view kKey = "MemTotal:";
  for (std::string line; std::getline(file, line);) {
    if (const std::size_t at = line.find(kKey); at != std::string::npos) {
      std::istringstream rest{line.substr(at + kKey.size())};
      std::uint64_t kib = 0;
      rest >> kib;
      return kib << 10;
    }
  }
  return 0;
}

void add_caches(const std::string& folder, std::uint32_t cpu, std::vector<Cache>& caches) {
  for (std::uint32_t index = 0; index < kIndexMax; ++index) {
    const std::string path = fmt::format("{}/cpu/cpu{}/cache/index{}/", folder, cpu, index);
    const std::string level = line_of(path + "level");
    if (level.empty()) {
      return;
    }
    std::size_t used = 0;
    Cache cache{.level = static_cast<std::uint32_t>(number_at(level, used)),
                .bytes = bytes_in(line_of(path + "size")),
                .cpus = CpuSet::read(line_of(path + "shared_cpu_list"))};
    const bool is_known = std::ranges::any_of(
        caches, [&](const Cache& one) { return one.level == cache.level && one.cpus.has(cpu); });
    if (line_of(path + "type") != "Instruction" && !is_known && cache.bytes != 0 &&
        cache.level - 1 < LevelMemory::kCacheLevels) {
      cache.cpus.add(cpu);
      caches.push_back(std::move(cache));
    }
  }
}

/// Of its processors, those that the place has.
bool meet(const CpuSet& a, const CpuSet& b) {
  return std::ranges::any_of(a.list(), [&](std::uint32_t cpu) { return b.has(cpu); });
}

}  // namespace

LevelMemory LevelMemory::read(const Topology& topology, const std::string& root) {
  LevelMemory memory;
  if (topology.is_synthetic()) {
    return memory;
  }
  for (const Place* const pu : topology.pus()) {
    add_caches(root, pu->os_index, memory.caches_);
  }
  std::uint32_t missing = 0;
  for (std::uint32_t node = 0; node < kNodeMax && missing < kMissingMax; ++node) {
    const std::string path = fmt::format("{}/node/node{}/", root, node);
    MemoryNode one{.number = node,
                   .bytes = memory_in(path + "meminfo"),
                   .cpus = CpuSet::read(line_of(path + "cpulist"))};
    missing = one.bytes == 0 ? missing + 1 : 0;
    if (one.bytes != 0 && !one.cpus.empty()) {
      memory.nodes_.push_back(std::move(one));
    }
  }
  return memory;
}

const Cache* LevelMemory::cache_of(const Place& place, std::uint32_t level) const noexcept {
  const Place* first = &place;
  while (!first->children.empty()) {
    first = first->children.front();
  }
  for (const Cache& cache : caches_) {
    if (cache.level == level && cache.cpus.has(first->os_index)) {
      return &cache;
    }
  }
  return nullptr;
}

std::vector<MemoryNode> LevelMemory::nodes_of(const Place& place) const {
  std::vector<MemoryNode> found;
  for (const MemoryNode& node : nodes_) {
    if (meet(node.cpus, place.cpus)) {
      found.push_back(node);
    }
  }
  return found;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) {
    text.resize(text.size() - 2);
  }
  return fmt::format("{} {}", text, kUnits[unit]);
}

std::string text_with_memory(const Topology& topology, const LevelMemory& memory) {
  std::istringstream lines{topology.text()};
  std::vector<bool> is_shown(memory.caches().size());
  std::string text;
  std::string line;
  for (const Place* const place : topology.places()) {
    std::getline(lines, line);
    std::string own;
    if (place == &topology.root() || place->kind == PlaceKind::numa) {
      std::uint64_t bytes = 0;
      for (const MemoryNode& node : memory.nodes_of(*place)) {
        bytes += node.bytes;
      }
      own += bytes != 0 ? ", memory " + bytes_text(bytes) : "";
    }
    // The processors that others may not use are not ours to show.
    for (std::size_t i = memory.caches().size(); i-- > 0;) {
      const Cache& cache = memory.caches()[i];
      if (!is_shown[i] && place->kind != PlaceKind::network && cache.cpus.includes(place->cpus) &&
          meet(cache.cpus, place->cpus)) {
        is_shown[i] = true;
        own += fmt::format(", L{} {}", cache.level, bytes_text(cache.bytes));
      }
    }
    text += line + (own.empty() ? "" : "  " + own.substr(2)) + "\n";
  }
  return text;
}

}  // namespace sterna::topology
