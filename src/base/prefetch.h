// Cache lines on their way before they are needed.
#pragma once

namespace sterna {

/// Has a cache line on its way that will be read. Not __builtin_prefetch() alone: GCC takes a
/// function that does nothing else for one without effects, and leaves out its calls.
inline void fetch_for_reading(const void* line) noexcept {
  __builtin_prefetch(line);
  asm volatile("" : : "r"(line));
}

/// Has one on its way that will be written.
inline void fetch_for_writing(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
  asm volatile("" : : "r"(line));
#endif
}

}  // namespace sterna
