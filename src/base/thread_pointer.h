// The thread-pointer register: where a kernel thread's (or a rank's) thread-local storage is.
//
// A rank has its own block, so the register says whose code runs (docs/rules/switching.md). Reading
// is one load; writing is one instruction where the kernel allows it, else a system call.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <asm/prctl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

namespace sterna {

#if defined(__x86_64__)

/// The first word of the block holds its own address, by the ABI.
[[nodiscard, gnu::always_inline]] inline std::uintptr_t thread_pointer() noexcept {
  std::uintptr_t pointer;
  // Volatile: the value changes when the register is loaded, which the compiler cannot see.
  asm volatile("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

/// True if user code may write the register itself (bit 1 of AT_HWCAP2: FSGSBASE).
[[nodiscard]] inline bool can_write_thread_pointer() noexcept {
  return (::getauxval(AT_HWCAP2) & 2) != 0;
}

namespace detail {
// Constant after the first call, and the same whoever writes it: relaxed.
inline constinit std::atomic<signed char> thread_pointer_writable{-1};

[[gnu::noinline, gnu::cold]] inline void set_thread_pointer_slow(std::uintptr_t pointer) noexcept {
  if (thread_pointer_writable.load(std::memory_order_relaxed) < 0) {
    thread_pointer_writable.store(can_write_thread_pointer() ? 1 : 0, std::memory_order_relaxed);
  }
  if (thread_pointer_writable.load(std::memory_order_relaxed) > 0) {
    asm volatile("wrfsbase %0" ::"r"(pointer) : "memory");
    return;
  }
  // Without libc: between two thread pointers nothing thread-local may be touched.
  long result = SYS_arch_prctl;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(static_cast<long>(ARCH_SET_FS)), "S"(pointer)
               : "rcx", "r11", "memory");
}
}  // namespace detail

/// From here on everything thread-local is that of `pointer`.
[[gnu::always_inline]] inline void set_thread_pointer(std::uintptr_t pointer) noexcept {
  if (detail::thread_pointer_writable.load(std::memory_order_relaxed) > 0) [[likely]] {
    asm volatile("wrfsbase %0" ::"r"(pointer) : "memory");
  } else {
    detail::set_thread_pointer_slow(pointer);
  }
}

#elif defined(__aarch64__)

[[nodiscard, gnu::always_inline]] inline std::uintptr_t thread_pointer() noexcept {
  std::uintptr_t pointer;
  asm volatile("mrs %0, tpidr_el0" : "=r"(pointer));
  return pointer;
}

[[nodiscard]] inline bool can_write_thread_pointer() noexcept {
  return true;
}

/// From here on everything thread-local is that of `pointer`.
[[gnu::always_inline]] inline void set_thread_pointer(std::uintptr_t pointer) noexcept {
  asm volatile("msr tpidr_el0, %0" ::"r"(pointer) : "memory");
}

#endif

}  // namespace sterna
