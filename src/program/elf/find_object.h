// Which object an address of a rank is in: for the unwinder, for dladdr, for debuggers. Arithmetic
// on the slot and the program, so it is right in every node that has opened the program.
#pragma once

#include <cstdint>

#include "program/elf/object_graph.h"

namespace sterna::program {

struct FoundObject {
  const PrivateObject* object = nullptr;  // Null: no private object is there.
  std::uintptr_t image = 0;               // Its address 0 in that rank.
};

/// May be called anywhere, also in a signal handler.
[[nodiscard]] FoundObject find_object(const void* address) noexcept;

/// True if the address is in the slots of ranks, in an object or not.
[[nodiscard]] bool is_of_rank(const void* address) noexcept;

}  // namespace sterna::program
