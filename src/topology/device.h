// Which processors are near a device, as the files of the system say it.
#pragma once

#include <string>
#include <string_view>

#include "topology/cpuset.h"

namespace sterna::topology {

/// `device`: its directory below `system`, as "class/net/eth0", "class/infiniband/mlx5_0" or
/// "bus/pci/devices/0000:03:00.0". Of a network interface that stands for others (a bond, a VLAN, a
/// bridge): those near any of these. Empty: the system does not know.
[[nodiscard]] CpuSet processors_near(std::string_view device, const std::string& system = "/sys");

}  // namespace sterna::topology
