// Caches and memory of levels, from files as the system has them.
#include "topology/level_memory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/check.h"

namespace sterna::topology {
namespace {

class LevelMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root = std::filesystem::temp_directory_path() / ("levels" + std::to_string(::getpid()));
    topology = std::move(Topology::flat().value());
    cpu = topology->pus().front()->os_index;
    write(cache(0) + "level", "1");
    write(cache(0) + "type", "Data");
    write(cache(0) + "size", "48K");
    write(cache(0) + "shared_cpu_list", std::to_string(cpu));
    write(cache(1) + "level", "1");
    write(cache(1) + "type", "Instruction");
    write(cache(1) + "size", "32K");
    write(cache(1) + "shared_cpu_list", std::to_string(cpu));
    write(cache(2) + "level", "3");
    write(cache(2) + "type", "Unified");
    write(cache(2) + "size", "32M");
    write(cache(2) + "shared_cpu_list", "0-1023");
    write("node/node0/cpulist", "0-511,600-1023");
    write("node/node0/meminfo", "Node 0 MemTotal:  2048 kB\nNode 0 MemFree:  1024 kB\n");
    write("node/node3/cpulist", "\n");
    write("node/node3/meminfo", "Node 3 MemTotal:  4096 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  std::string cache(int index) const {
    return "cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream{root / path} << text << "\n";
  }

  std::filesystem::path root;
  std::unique_ptr<Topology> topology;
  std::uint32_t cpu = 0;
};

TEST_F(LevelMemoryTest, IsReadFromTheFilesOfTheSystem) {
  const LevelMemory memory = LevelMemory::read(*topology, root.string());
  ASSERT_EQ(memory.caches().size(), 2U) << "instructions are none of our data";
  const Cache* const first = memory.cache_of(topology->root(), 1);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->bytes, 48U << 10);
  EXPECT_EQ(first->cpus.count(), 1U);
  EXPECT_EQ(memory.cache_of(*topology->pus().front(), 3)->bytes, 32U << 20);
  EXPECT_EQ(memory.cache_of(topology->root(), 2), nullptr);
  ASSERT_EQ(memory.nodes().size(), 1U) << "node 3 has no processors";
  EXPECT_EQ(memory.nodes_of(topology->root()).front().bytes, 2048U << 10);
  const std::string text = text_with_memory(*topology, memory);
  EXPECT_NE(text.find("memory 2 MiB, L3 32 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("L1 48 KiB"), std::string::npos) << text;
}

TEST_F(LevelMemoryTest, WhatIsNotThereIsLeftOut) {
  const LevelMemory none = LevelMemory::read(*topology, "/no/such/folder");
  EXPECT_TRUE(none.caches().empty() && none.nodes().empty());
  EXPECT_EQ(text_with_memory(*topology, none), topology->text());
  const auto imagined = std::move(Topology::synthetic("node:2 core:2 pu:1").value());
  EXPECT_TRUE(LevelMemory::read(*imagined, root.string()).nodes().empty());
}

TEST(BytesText, HasTheLargestUnit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(48 << 10), "48 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 40), "3 TiB");
}

}  // namespace
}  // namespace sterna::topology
