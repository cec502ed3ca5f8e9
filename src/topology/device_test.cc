// Processors near a device, from files as the system has them.
#include "topology/device.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sterna::topology {
namespace {

namespace fs = std::filesystem;

/// Two packages: processors 0-3 with a network board on PCI, 4-7 with another one and a disk.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::temp_directory_path() / ("devices" + std::to_string(::getpid()));
    write("devices/system/node/node0/cpulist", "0-3");
    write("devices/system/node/node1/cpulist", "4-7");
    write("devices/pci0/0000:03:00.0/local_cpulist", "0-3");
    write("devices/pci0/0000:03:00.0/numa_node", "0");
    write("devices/pci1/0000:83:00.0/numa_node", "1");
    board("eth0", "devices/pci0/0000:03:00.0");
    board("eth1", "devices/pci1/0000:83:00.0");
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream{root / path} << text << "\n";
  }
  /// A link from one directory to another one.
  void link(const std::string& from, const std::string& to) const {
    fs::create_directories((root / from).parent_path());
    fs::create_directories(root / to);
    fs::create_directory_symlink(root / to, root / from);
  }
  /// An interface as the system has it: class/net/NAME leads below its device, which it names.
  void board(const std::string& name, const std::string& device) const {
    link(device + "/net/" + name + "/device", device);
    link("class/net/" + name, device + "/net/" + name);
  }
  std::string near(const std::string& device) const {
    return processors_near(device, root.string()).text();
  }

  fs::path root;
};

TEST_F(DeviceTest, IsNearTheProcessorsThatTheSystemNames) {
  EXPECT_EQ(near("class/net/eth0"), "0-3");
  EXPECT_EQ(near("class/net/eth1"), "4-7") << "those of its NUMA node";
  EXPECT_EQ(near("bus/pci/devices/0000:03:00.0"), "");
  link("bus/pci/devices/0000:03:00.0", "devices/pci0/0000:03:00.0");
  EXPECT_EQ(near("bus/pci/devices/0000:03:00.0"), "0-3");
  link("class/infiniband/mlx5_0/device", "devices/pci1/0000:83:00.0");
  EXPECT_EQ(near("class/infiniband/mlx5_0"), "4-7");
}

TEST_F(DeviceTest, OfAVirtualMachineIsWhereItsPciFunctionIs) {
  write("devices/pci1/0000:84:00.0/local_cpulist", "4-5,7");
  board("eth2", "devices/pci1/0000:84:00.0/virtio2");
  EXPECT_EQ(near("class/net/eth2"), "4-5,7");
}

TEST_F(DeviceTest, OfSeveralIsNearTheProcessorsOfAll) {
  link("devices/virtual/net/bond0/lower_eth0", "devices/pci0/0000:03:00.0/net/eth0");
  link("class/net/bond0", "devices/virtual/net/bond0");
  EXPECT_EQ(near("class/net/bond0"), "0-3");
  link("devices/virtual/net/bond0/lower_eth1", "devices/pci1/0000:83:00.0/net/eth1");
  EXPECT_EQ(near("class/net/bond0"), "0-7");
  link("devices/virtual/net/bond0.5/lower_bond0", "devices/virtual/net/bond0");
  link("class/net/bond0.5", "devices/virtual/net/bond0.5");
  EXPECT_EQ(near("class/net/bond0.5"), "0-7");
  link("devices/virtual/net/bond0/lower_veth0", "devices/virtual/net/veth0");
  EXPECT_EQ(near("class/net/bond0"), "") << "one of them may be anywhere";
}

TEST_F(DeviceTest, IsNowhereWhereTheSystemDoesNotKnow) {
  EXPECT_EQ(near("class/net/eth9"), "");
  link("class/net/lo", "devices/virtual/net/lo");
  EXPECT_EQ(near("class/net/lo"), "") << "no board";
  write("devices/pci2/0000:c3:00.0/numa_node", "-1");
  board("eth3", "devices/pci2/0000:c3:00.0");
  EXPECT_EQ(near("class/net/eth3"), "");
  write("devices/pci2/0000:c3:00.0/numa_node", "7");
  EXPECT_EQ(near("class/net/eth3"), "") << "no such node";
  link("devices/virtual/net/round0/lower_round0", "devices/virtual/net/round0");
  link("class/net/round0", "devices/virtual/net/round0");
  EXPECT_EQ(near("class/net/round0"), "") << "and it ends";
}

TEST(CpuSetTest, IsReadAsItIsWritten) {
  EXPECT_EQ(CpuSet::read("0-3,8\n"), (CpuSet{0, 1, 2, 3, 8}));
  EXPECT_EQ(CpuSet::read("5"), CpuSet{5});
  EXPECT_TRUE(CpuSet::read("").empty());
  EXPECT_TRUE(CpuSet::read("\n").empty());
  EXPECT_EQ(CpuSet::read("1,x,2"), CpuSet{1});
  EXPECT_TRUE(CpuSet::read("0-").empty());
  EXPECT_TRUE(CpuSet::read("99999999").empty());
}

}  // namespace
}  // namespace sterna::topology
