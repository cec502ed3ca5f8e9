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

#if defined(__x86_64__)

void leave_with_true_guess() noexcept {
  (void)switch_context(other_context, main_context, nullptr);
  leave_context_for(other_context, main_context, reinterpret_cast<void*>(7), main_context.stack);
}
void leave_with_false_guess() noexcept {
  (void)switch_context(other_context, main_context, nullptr);
  leave_context_for(other_context, main_context, reinterpret_cast<void*>(7), stack);
}

TEST(Context, WhoComesBackIsNamedAndAGuessOfTheStackMayBeFalse) {
  if (kSanitized) {
    // As above; teams do not guess there either: sanitized_switch().
    GTEST_SKIP() << "a sanitizer must be told of a switch";
  }
  for (auto* const code : {leave_with_true_guess, leave_with_false_guess}) {
    make_context(other_context, stack + sizeof stack, code);
    SavedContext* former = nullptr;
    EXPECT_EQ(switch_context(main_context, other_context, nullptr, former), nullptr);
    EXPECT_EQ(former, &other_context);
    former = nullptr;
    EXPECT_EQ(switch_context(main_context, other_context, nullptr, former),
              reinterpret_cast<void*>(7));
    EXPECT_EQ(former, &other_context);
  }
}

#endif

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

#if defined(__aarch64__)

void spoil_kept() noexcept {
  for (;;) {
    asm volatile(
        ".irp n, 19,20,21,22,23,24,25,26,27,28\n\t"
        "mov x\\n, #-1\n\t"
        ".endr\n\t"
        ".irp n, 8,9,10,11,12,13,14,15\n\t"
        "fmov d\\n, x19\n\t"
        ".endr" ::
            : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "d8", "d9",
              "d10", "d11", "d12", "d13", "d14", "d15");
    (void)switch_context(other_context, main_context, nullptr);
  }
}

TEST(Context, RegistersThatACallKeepsAreKeptOverASwitch) {
  // d8 .. d15, x20 .. x28; x19 has its address.
  std::array<std::uint64_t, 17> values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0x0123'4567'89ab'cd00 + i;
  }
  const auto expected = values;
  make_context(other_context, stack + sizeof stack, spoil_kept);
  register auto* const words asm("x19") = values.data();
  register SavedContext* from asm("x0") = &main_context;
  register SavedContext* to asm("x1") = &other_context;
  asm volatile(
      "ldp d8, d9, [x19]\n\t"
      "ldp d10, d11, [x19, #16]\n\t"
      "ldp d12, d13, [x19, #32]\n\t"
      "ldp d14, d15, [x19, #48]\n\t"
      "ldp x20, x21, [x19, #64]\n\t"
      "ldp x22, x23, [x19, #80]\n\t"
      "ldp x24, x25, [x19, #96]\n\t"
      "ldp x26, x27, [x19, #112]\n\t"
      "ldr x28, [x19, #128]\n\t"
      "bl sterna_context_switch\n\t"
      "stp d8, d9, [x19]\n\t"
      "stp d10, d11, [x19, #16]\n\t"
      "stp d12, d13, [x19, #32]\n\t"
      "stp d14, d15, [x19, #48]\n\t"
      "stp x20, x21, [x19, #64]\n\t"
      "stp x22, x23, [x19, #80]\n\t"
      "stp x24, x25, [x19, #96]\n\t"
      "stp x26, x27, [x19, #112]\n\t"
      "str x28, [x19, #128]"
      : "+r"(from), "+r"(to)
      : "r"(words)
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
        "x16", "x17", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0",
        "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
        "v28", "v29", "v30", "v31", "cc", "memory");
  EXPECT_EQ(values, expected);
}

#endif

}  // namespace
}  // namespace sterna::threads
