// Preemption in the middle of the library of C, which knows nothing of it.
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "threads/team_fixture.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// malloc, stdio and errno, each of which has state of the kernel thread.
void storm(std::uint32_t seed, std::atomic<std::uint32_t>& wrong) {
  std::FILE* const sink = std::fopen("/dev/null", "w");
  std::array<char*, 32> blocks{};
  char text[64];
  for (std::uint32_t i = 0; i < (kSanitizedTests ? 10'000U : 100'000U); ++i) {
    seed = seed * 1664525 + 1013904223;
    char*& block = blocks[seed >> 27];
    const std::size_t bytes = 16 + (seed >> 16) % 2000;
    if (block != nullptr) {
      wrong += block[0] == static_cast<char>((seed >> 27) + 1) ? 0 : 1;
      std::free(block);
      block = nullptr;
    } else {
      block = static_cast<char*>(std::malloc(bytes));
      std::memset(block, static_cast<char>((seed >> 27) + 1), bytes);
    }
    std::snprintf(text, sizeof text, "%u %g", seed, static_cast<double>(seed));
    std::fprintf(sink, "%s\n", text);
    wrong += std::strtoul(text, nullptr, 10) == seed ? 0 : 1;
  }
  for (char* const block : blocks) {
    std::free(block);
  }
  std::fclose(sink);
}

TEST(Preempt, StormsInTheLibraryOfCAreSafe) {
  TestTeam team{2, {.tick_ns = kMs, .preempt = PreemptMode::slice, .slice_ns = kMs}};
  std::atomic<std::uint32_t> wrong{0};
  std::atomic<std::uint32_t> seed{1};
  auto storms = [&] { storm(seed.fetch_add(1), wrong); };
  std::array<Thread*, 8> threads;
  for (Thread*& thread : threads) {
    thread = team.go(storms, {.is_user_code = true});
  }
  for (Thread* const thread : threads) {
    join(*thread);
  }
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace sterna::threads
