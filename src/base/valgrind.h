// What valgrind must be told, where its header was there at build time; else nothing. Outside of
// valgrind each call costs some instructions that do nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#endif

namespace sterna {

/// [low, high) is a stack that threads will switch to. Returns what forget_stack() needs.
[[nodiscard]] inline std::uintptr_t tell_valgrind_of_stack(const void* low,
                                                           const void* high) noexcept {
#if __has_include(<valgrind/memcheck.h>)
  return VALGRIND_STACK_REGISTER(low, high);
#else
  static_cast<void>(low);
  static_cast<void>(high);
  return 0;
#endif
}

inline void make_valgrind_forget_stack(std::uintptr_t id) noexcept {
#if __has_include(<valgrind/memcheck.h>)
  VALGRIND_STACK_DEREGISTER(id);
#else
  static_cast<void>(id);
#endif
}

/// Nobody is to hear that these bytes are read though they may never have been written.
inline void make_valgrind_take_as_written(const void* begin, std::size_t bytes) noexcept {
#if __has_include(<valgrind/memcheck.h>)
  VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(begin, bytes);
#else
  static_cast<void>(begin);
  static_cast<void>(bytes);
#endif
}

}  // namespace sterna
