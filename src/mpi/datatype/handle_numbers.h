// Small integers that stand for handles of objects (MPI_Type_toint and its family).
#pragma once

#include <cstdint>

namespace sterna::mpi {

/// Addresses by number, and a hash table of the numbers by address. Guard: AnyTime::lock.
struct HandleNumbers {
  void** addresses = nullptr;  // slot_count / 2 of them.
  std::uint32_t* slots = nullptr;
  std::uint32_t count = 0;
  std::uint32_t slot_count = 0;  // A power of two, or 0.
};

/// The integer of a handle: of a constant, itself; of an object, one that its address keeps for the
/// life of the rank. -1: no memory.
[[nodiscard]] int number_of_handle(void* handle) noexcept;
/// The reverse; null for a number that was never given out.
[[nodiscard]] void* handle_of_number(int number) noexcept;

}  // namespace sterna::mpi
