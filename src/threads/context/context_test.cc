// The switch by itself: what it hands over, and which registers it keeps.
#include "threads/context/context.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "threads/sanitizer.h"

#if defined(STERNA_HAS_WIDE_TEST)
extern "C" void sterna_test_add_over_switch(sterna::threads::SavedContext& from,
                                            sterna::threads::SavedContext& to, const double* values,
                                            double* sums);
extern "C" void sterna_test_spoil_wide_registers();
#endif

namespace sterna::threads {
namespace {

alignas(64) std::byte stack[64 * 1024];
SavedContext main_context;
SavedContext other_context;

void hand_back() noexcept {
  std::uintptr_t message = 1;
  for (;;) {
    void* const got = switch_context(other_context, main_context, reinterpret_cast<void*>(message));
    message = reinterpret_cast<std::uintptr_t>(got) + 1;
  }
}

TEST(Context, AMessageGoesWithEachSwitch) {
  if (kSanitized) {
    // It would take the other stack for that of its thread. Switches as a team makes them, which
    // tell it (sanitized_switch()), are in every other test of threads.
    GTEST_SKIP() << "a sanitizer must be told of a switch";
  }
  make_context(other_context, stack + sizeof stack, hand_back);
  EXPECT_EQ(switch_context(main_context, other_context, nullptr), reinterpret_cast<void*>(1));
  for (std::uintptr_t i = 10; i < 20; ++i) {
    EXPECT_EQ(switch_context(main_context, other_context, reinterpret_cast<void*>(i)),
              reinterpret_cast<void*>(i + 1));
  }
}

void come_back_once() noexcept {
  (void)switch_context(other_context, main_context, nullptr);
  leave_context(other_context, main_context, nullptr);
}

TEST(ContextDeathTest, OneThatHasEndedIsNotContinued) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  if (kSanitized) {
    // As above: bare switches are unknown to it.
    GTEST_SKIP() << "a sanitizer must be told of a switch";
  }
  const auto run = [](void (*code)() noexcept) {
    make_context(other_context, stack + sizeof stack, code);
    for (int i = 0; i < 3; ++i) {
      (void)switch_context(main_context, other_context, nullptr);
    }
  };
  EXPECT_DEATH(run(come_back_once), "an ended thread does not run again");
  EXPECT_DEATH(run([]() noexcept { leave_context(other_context, main_context, nullptr); }),
               "an ended thread does not run again");
}

#if defined(STERNA_HAS_WIDE_TEST)

void spoil() noexcept {
  for (;;) {
    sterna_test_spoil_wide_registers();
    (void)switch_context(other_context, main_context, nullptr);
  }
}

TEST(Context, CodeForAvx512LosesNothingOverASwitch) {
  if (kSanitized || !__builtin_cpu_supports("avx512f")) {
    // As above; and the instructions are illegal elsewhere, where nobody has those registers to
    // lose.
    GTEST_SKIP() << "needs AVX-512, and no sanitizer";
  }
  std::array<double, 24 * std::size_t{8}> values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i % 5 + i);
  }
  values[3] = 1000;  // A lane that is left alone.
  std::array<double, 8> sums{};
  make_context(other_context, stack + sizeof stack, spoil);
  sterna_test_add_over_switch(main_context, other_context, values.data(), sums.data());
  for (std::size_t lane = 0; lane < 8; ++lane) {
    double expected = values[lane];
    for (std::size_t i = 1; lane != 3 && i < 24; ++i) {
      expected += values[8 * i + lane];
    }
    EXPECT_EQ(sums[lane], expected) << lane;
  }
}

#endif

}  // namespace
}  // namespace sterna::threads
