// The context switch of AArch64 (AAPCS64); include context.h.
#pragma once

#include <cstdint>

#include "threads/thread.h"

extern "C" void* sterna_context_switch(sterna::threads::SavedContext* save,
                                       const sterna::threads::SavedContext* load,
                                       void* message) noexcept;

namespace sterna::threads {

/// Saves the current context and continues `load`, to which it hands `message`. Returns the message
/// of whoever continues `save`. All registers are on the stack.
inline void* switch_context(SavedContext& save, const SavedContext& load, void* message) noexcept {
  return sterna_context_switch(&save, &load, message);
}
/// The same; nobody is named.
inline void* switch_context(SavedContext& save, const SavedContext& load, void* message,
                            SavedContext*& former) noexcept {
  former = nullptr;
  return switch_context(save, load, message);
}

/// The last switch away from the stack of `ended`.
[[noreturn]] inline void leave_context(SavedContext& ended, const SavedContext& load,
                                       void* message) noexcept {
  (void)sterna_context_switch(&ended, &load, message);
  sterna_context_ended();
}

/// A context that begins with `code`, at the bottom of the stack below `top` (aligned to 16).
inline void make_context(SavedContext& context, void* top,
                         void (*code)() noexcept = sterna_context_entry) noexcept {
  // x19 .. x28, x29, x30, d8 .. d15.
  auto* const words = static_cast<std::uintptr_t*>(top) - 20;
  words[0] = reinterpret_cast<std::uintptr_t>(&context);  // x19
  words[10] = 0;                                          // x29: the last frame
  words[11] = reinterpret_cast<std::uintptr_t>(code);
  context = {.stack = words, .frame = nullptr, .code = nullptr};
}

}  // namespace sterna::threads
