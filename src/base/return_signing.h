// Return addresses that the processor signs (pointer authentication of AArch64), as programs and
// libraries built with -mbranch-protection have them on their stacks. The keys are those of the
// process, so the frames of a rank would be refused in the next one.
#pragma once

#if defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace sterna {

/// From here on the instructions that sign and check do nothing, in this kernel thread and in those
/// that it creates. False: they do something, and this kernel (before Linux 5.13) or emulator
/// cannot turn them off. Inline, in a function that is itself built without them and never
/// returns: what was signed before would never be right again.
[[nodiscard, gnu::always_inline]] inline bool stop_signing_returns() noexcept {
#if defined(__aarch64__)
  constexpr unsigned long kSigns = 1UL << 30;  // HWCAP_PACA
  if ((::getauxval(AT_HWCAP) & kSigns) == 0) {
    return true;
  }
  constexpr long kSetEnabledKeys = 60;  // PR_PAC_SET_ENABLED_KEYS
  constexpr long kKeys = 0xf;           // Those of addresses and of data, both of each.
  register long x8 asm("x8") = SYS_prctl;
  register long x0 asm("x0") = kSetEnabledKeys;
  register long x1 asm("x1") = kKeys;
  register long x2 asm("x2") = 0;
  register long x3 asm("x3") = 0;
  register long x4 asm("x4") = 0;
  // Not a call, which might come back through an address that it has signed.
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory", "cc");
  return x0 == 0;
#else
  return true;
#endif
}

}  // namespace sterna
