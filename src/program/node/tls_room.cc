// Says how much of the reserve (tls_reserve_*.S) really is next to the thread pointer.
#include <cstddef>
#include <cstdint>

#include "base/elf_machine.h"

// The reserve is a thread-local array that assembly defines, so that it gets the place it needs.
extern "C" __thread char sterna_program_tls_reserve[65536];

extern "C" std::uint64_t sterna_program_tls_room(std::uintptr_t pointer) {
  constexpr std::uintptr_t kSlack = 64;  // What alignment may put between.
  const auto begin = reinterpret_cast<std::uintptr_t>(&sterna_program_tls_reserve[0]);
  const std::uintptr_t end = begin + sizeof sterna_program_tls_reserve;
  if constexpr (sterna::elf_machine::kTlsIsBelow) {
    return pointer - end < kSlack ? pointer - begin : 0;
  } else {
    return begin - pointer <= kSlack ? end - pointer : 0;
  }
}
