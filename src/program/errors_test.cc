// What Program::open says of files that cannot be ranks: which, why, what to do.
#include <chrono>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "program/elf/library_search.h"
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

std::string build(const std::string& name, const std::string& options, const std::string& source) {
  const std::string from = write_file(name + ".c", source);
  const std::string path = testing::TempDir() + "sterna_errors_" + name;
  const std::string command = STERNA_TEST_C_COMPILER " -o " + path + " " + from + " " + options;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return path;
}

void expect_says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

constexpr char kMain[] = "int main(void) { return 0; }";

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
  expect_says(error_of(build("object.o", "-c", kMain)), {"object file"});
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
  expect_says(error_of(build("nopie", "-no-pie", kMain)), {"-fPIE -pie"});
}

TEST(ProgramErrors, StaticallyLinked) {
  expect_says(error_of(build("static", "-static-pie", kMain)), {"statically linked"});
}

TEST(ProgramErrors, ASharedLibraryIsNoProgram) {
  expect_says(error_of(build("library.so", "-shared -fPIC", kMain)), {"shared library"});
}

TEST(ProgramErrors, AMissingLibraryIsNamedWithWhereItWasSought) {
  const std::string library =
      build("libgone.so", "-shared -fPIC -Wl,-soname,libgone.so.1", "int gone(void) { return 1; }");
  const std::string program = build("needs", "-fPIE -pie -Wl,-rpath,/opt/nowhere " + library,
                                    "int gone(void); int main(void) { return gone(); }");
  expect_says(error_of(program), {"needs", "libgone.so.1", "/opt/nowhere", "LD_LIBRARY_PATH"});
}

TEST(ProgramErrors, AnUndefinedSymbolIsNamed) {
  const std::string options = "-shared -fPIC -Wl,-soname,sterna_errors_libhalf.so.1";
  const std::string library =
      build("libhalf.so.1", options, "int half(void) { return 1; } int other(void) { return 2; }");
  const std::string program = build("undefined", "-fPIE -pie -Wl,-rpath,'$ORIGIN' " + library,
                                    "int other(void); int main(void) { return other(); }");
  TestHost host{{}};
  EXPECT_TRUE(host.open(program).has_value());
  build("libhalf.so.1", options, "int half(void) { return 1; }");
  TestHost again{{}};
  const auto opened = again.open(program);
  ASSERT_FALSE(opened.has_value());
  expect_says(opened.error().text, {"undefined symbol other"});
}

TEST(ProgramErrors, AnotherMpiSaysToRebuild) {
  const std::string library = build("libmpi.so", "-shared -fPIC -Wl,-soname,libmpi.so.40",
                                    "int MPI_Init(void) { return 1; }");
  const std::string program = build("openmpi", "-fPIE -pie " + library,
                                    "int MPI_Init(void); int main(void) { return MPI_Init(); }");
  expect_says(error_of(program), {"another MPI", "libmpi.so.40", "mpicc"});
}

TEST(ProgramErrors, TooManyThreadLocalVariables) {
  expect_says(error_of(build("tls", "-fPIE -pie -O0",
                             "__thread char big[100000]; int main(void) { return big[5]; }")),
              {"thread-local", "65536"});
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

TEST(ProgramSpeed, RanksAreMadeInMicroseconds) {
  for (const auto& [name, limit_us] : {std::pair{"globals", 1000.0}, {"cxx", 3000.0}}) {
    constexpr std::uint32_t kRanks = 32;
    TestHost host{{.rank_count = kRanks}};
    ASSERT_TRUE(host.open(std::string{kTestPrograms} + name));
    ASSERT_TRUE(host.create(0, {name}));  // The first one warms the files up.
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
      ASSERT_TRUE(host.create(rank, {name}));
    }
    const double us =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
    std::printf("%s: %.0f us a rank, mapping of its slot included\n", name, us / (kRanks - 1));
    EXPECT_LT(us / (kRanks - 1), limit_us) << name;
  }
}

}  // namespace
}  // namespace sterna::program
