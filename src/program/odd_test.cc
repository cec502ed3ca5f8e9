// Programs whose files are unusual, and right: testdata/odd/CMakeLists.txt.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <elf.h>
#include <gtest/gtest.h>

#include "program/testhost/move.h"
#include "program/testhost/test_host.h"

namespace sterna::program {
namespace {

TEST(OddProgram, MovesWithAllOfItsLibraries) {
  TestHost host{{}};
  OtherProcess other{std::string{kTestPrograms} + "odd/many", 1};
  host.run("odd/many");
  other.send(host, 0);
  EXPECT_FALSE(other.run_and_return(host, 0));
  EXPECT_EQ(host.outcome(0).out, "60 libraries, bad 0\n");
}

TEST(OddProgram, HasItsVariablesAlignedAsItAsks) {
  TestHost host{{.rank_count = 3}};
  host.run("odd/aligned");
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(host.outcome(rank).out, "0 0\n0 0\n0 0\n");
  }
}

TEST(OddProgram, FindsWhatALibraryDefinesByTheOlderTable) {
  TestHost host{{}};
  host.run("odd/hashed");
  EXPECT_EQ(host.outcome(0).status, 2);
}

/// As ld.so does: a list of folders may be for programs of several machines.
TEST(OddProgram, PassesOverLibrariesOfOtherMachines) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path{testing::TempDir()} / "sterna_other_machine";
  const fs::path right = folder / "right";
  fs::create_directories(right);
  Elf64_Ehdr header{};
  const unsigned char identity[] = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT};
  std::copy(std::begin(identity), std::end(identity), header.e_ident);
  header.e_machine = EM_386;
  std::ofstream{folder / "libgone.so.1", std::ios::binary}.write(
      reinterpret_cast<const char*>(&header), sizeof header);
  fs::copy_file(STERNA_TEST_PROGRAMS "wrong/gone/libgone.so", right / "libgone.so.1",
                fs::copy_options::overwrite_existing);
  ::setenv("LD_LIBRARY_PATH", (folder.string() + ":" + right.string()).c_str(), 1);
  TestHost host{{}};
  host.run("wrong/needs");
  ::unsetenv("LD_LIBRARY_PATH");
  EXPECT_EQ(host.outcome(0).status, 1);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sterna::program
