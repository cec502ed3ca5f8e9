// What a debugger needs to find user threads and the programs of ranks, in a process or a core
// file, with or without debug information: tools/gdb/sterna_memory.py reads it.
#pragma once

#include <cstdint>

namespace sterna::threads {

struct DebugEntry {
  const char* name;  // Null ends the table.
  std::uint64_t value;
};

/// A file that the loader of ranks has mapped: at `offset` from the images of each rank.
struct DebugObject {
  const char* path;
  std::uint64_t offset;
};

/// Written by the loader before ranks run; constant then.
struct DebugObjects {
  std::uint64_t count;
  const DebugObject* objects;
};

/// Makes the linker keep the table.
void keep_debug_layout() noexcept;

}  // namespace sterna::threads

extern "C" {
extern const sterna::threads::DebugEntry sterna_debug_layout[];
extern sterna::threads::DebugObjects sterna_debug_objects;
extern const std::uint32_t* const sterna_debug_rank_slot_shift;
}
