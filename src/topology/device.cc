// See device.h. The files: DEVICE/device/{local_cpulist,numa_node}, of the PCI function above it
// where the device is one of virtio, and DEVICE/lower_*, links to the interfaces that it stands
// for.
#include "topology/device.h"

#include <charconv>
#include <filesystem>
#include <fstream>

namespace sterna::topology {
namespace {

namespace fs = std::filesystem;

constexpr int kDepthMax = 4;  // A VLAN of a bridge of a bond is three.

/// Empty: it cannot be read.
std::string line_of(const fs::path& path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

/// Of the directory of a device itself.
CpuSet near_function(const fs::path& directory, const fs::path& system) {
  CpuSet cpus = CpuSet::read(line_of(directory / "local_cpulist"));
  if (cpus.empty()) {
    const std::string line = line_of(directory / "numa_node");
    int node = -1;  // The system's word for none.
    (void)std::from_chars(line.data(), line.data() + line.size(), node);
    if (node >= 0) {
      cpus = CpuSet::read(
          line_of(system / "devices/system/node" / ("node" + std::to_string(node)) / "cpulist"));
    }
  }
  return cpus;
}

CpuSet near_directory(const fs::path& directory, const fs::path& system, int depth) {
  // The parent by the system's own links: `device` is one.
  for (const fs::path& function : {directory / "device", directory / "device/..", directory}) {
    if (CpuSet cpus = near_function(function, system); !cpus.empty()) {
      return cpus;
    }
  }
  CpuSet all;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator{directory, ignored}) {
    if (depth < kDepthMax && entry.path().filename().string().starts_with("lower_")) {
      const CpuSet cpus = near_directory(entry.path(), system, depth + 1);
      if (cpus.empty()) {
        return {};  // Where one of them is is not known.
      }
      all.add(cpus);
    }
  }
  return all;
}

}  // namespace

CpuSet processors_near(std::string_view device, const std::string& system) {
  return near_directory(fs::path{system} / device, system, 0);
}

}  // namespace sterna::topology
