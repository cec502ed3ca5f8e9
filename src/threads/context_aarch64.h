// The context switch of AArch64 (AAPCS64); include context.h.
#pragma once

#include <cstdint>

extern "C" void* sterna_context_switch(void** save, void* load, void* message) noexcept;

namespace sterna::threads {

/// Saves the current context to *save and continues `load`, to which it hands `message`. Returns
/// the message of whoever continues *save.
inline void* switch_context(void** save, void* load, void* message) noexcept {
  return sterna_context_switch(save, load, message);
}

/// A context that calls function(argument) on the stack below `top` (aligned to 16). The function
/// must not return.
inline void* make_context(void* top, void (*function)(void*), void* argument) noexcept {
  // x19 .. x28, x29, x30, d8 .. d15.
  auto* const words = static_cast<std::uintptr_t*>(top) - 20;
  words[0] = reinterpret_cast<std::uintptr_t>(argument);  // x19
  words[1] = reinterpret_cast<std::uintptr_t>(function);  // x20
  words[10] = 0;                                          // x29: the last frame
  words[11] = reinterpret_cast<std::uintptr_t>(&sterna_context_entry);
  return words;
}

}  // namespace sterna::threads
