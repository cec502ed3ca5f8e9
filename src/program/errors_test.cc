// What Program::open says of files that cannot be ranks: which, why, what to do.
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "program/elf/library_search.h"
#include "program/elf/tls_block.h"
#include "program/testhost/test_host.h"

namespace sterna::program {
namespace {

std::string error_of(const std::string& path) {
  TestHost host{{}};
  const auto opened = host.open(path);
  return opened.has_value() ? "no error" : opened.error().text;
}

/// A new file in a directory of the test's own.
std::string write_file(const std::string& name, const std::string& contents) {
  const std::string path = testing::TempDir() + "sterna_errors_" + name;
  std::ofstream{path, std::ios::binary} << contents;
  return path;
}

/// What the build has made to be refused: testdata/wrong/CMakeLists.txt.
std::string wrong(const std::string& name) {
  return STERNA_TEST_PROGRAMS "wrong/" + name;
}

void expect_says(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(ProgramErrors, AFileThatIsNotThere) {
  expect_says(error_of("/nonexistent/program"), {"/nonexistent/program", "No such file"});
  expect_says(error_of("/tmp"), {"/tmp", "is not a file"});
}

TEST(ProgramErrors, AScriptSaysToRunTheInterpreter) {
  expect_says(error_of(write_file("script", "#!/bin/sh\necho\n")), {"script", "interpreter"});
}

TEST(ProgramErrors, NotAnExecutable) {
  expect_says(error_of(write_file("text", "hello")), {"not an executable"});
  expect_says(error_of(write_file("empty", "")), {"not an executable"});
  expect_says(error_of(wrong("object.o")), {"object file"});
}

TEST(ProgramErrors, AnotherMachine) {
  std::string header(64, '\0');
  header.replace(0, 7,
                 std::string{"\x7f"
                             "ELF\x02\x01\x01",
                             7});
  header[18] = 2;  // SPARC
  expect_says(error_of(write_file("sparc", header)), {"another kind of machine"});
}

TEST(ProgramErrors, NotPositionIndependent) {
  expect_says(error_of(wrong("nopie")), {"-fPIE -pie"});
}

TEST(ProgramErrors, StaticallyLinked) {
  expect_says(error_of(wrong("static")), {"statically linked"});
}

TEST(ProgramErrors, ASharedLibraryIsNoProgram) {
  expect_says(error_of(wrong("library.so")), {"shared library"});
}

TEST(ProgramErrors, AMissingLibraryIsNamedWithWhereItWasSought) {
  expect_says(error_of(wrong("needs")),
              {"needs", "libgone.so.1", "/opt/nowhere", "LD_LIBRARY_PATH"});
}

TEST(ProgramErrors, AnUndefinedSymbolIsNamed) {
  TestHost host{{}};
  EXPECT_TRUE(host.open(wrong("whole/undefined")).has_value());
  TestHost again{{}};
  const auto opened = again.open(wrong("half/undefined"));
  ASSERT_FALSE(opened.has_value());
  expect_says(opened.error().text, {"undefined symbol other"});
}

TEST(ProgramErrors, AnotherMpiSaysToRebuild) {
  expect_says(error_of(wrong("openmpi")), {"another MPI", "libmpi.so.40", "mpicc"});
}

TEST(ProgramErrors, TooManyThreadLocalVariables) {
  // What a rank has beside the 65536 bytes of our own depends on the processor.
  const std::string room = std::to_string(find_tls_room().bytes);
  EXPECT_GE(find_tls_room().bytes, 65536U);
  expect_says(error_of(wrong("tls")), {"thread-local", "but ranks have " + room});
}

TEST(ProgramErrors, ACutFileIsDamagedNotACrash) {
  std::ifstream file{std::string{kTestPrograms} + "cxx", std::ios::binary};
  const std::string whole{std::istreambuf_iterator<char>{file}, {}};
  ASSERT_GT(whole.size(), 10000u);
  for (const std::size_t bytes : {64ul, 100ul, 1000ul, 5000ul, 15000ul}) {
    EXPECT_NE(error_of(write_file("cut", whole.substr(0, bytes))), "no error") << bytes;
  }
}

TEST(ProgramErrors, CacheOfTheLinkerIsReadWithinItsBounds) {
  EXPECT_EQ(find_in_cache("", "libc.so.6"), "");
  std::string cache = "glibc-ld.so.cache1.1";
  cache.resize(48);
  cache[20] = 1;
  EXPECT_EQ(find_in_cache(cache, "libc.so.6"), "");  // One entry is announced, none is there.
}

}  // namespace
}  // namespace sterna::program
