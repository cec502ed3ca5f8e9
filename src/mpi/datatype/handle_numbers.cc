// The integers of handles.
#include "mpi/datatype/handle_numbers.h"

#include <algorithm>
#include <cstring>

#include "mpi/any_time.h"
#include "mpi/object.h"

namespace sterna::mpi {
namespace {

// Entry i of the addresses has the number kFirstNumber + i; `slots` is an open hash of 1 + i, at
// most half full.
constexpr int kFirstNumber = static_cast<int>(kPredefinedHandleMax) + 1;

/// Where the address is, or the free slot where it would be. There are slots.
std::uint32_t* find_slot(const HandleNumbers& numbers, const void* address) noexcept {
  const std::uint32_t mask = numbers.slot_count - 1;
  auto at = static_cast<std::uint32_t>(
      (reinterpret_cast<std::uintptr_t>(address) >> 4) * 0x9e37'79b9'7f4a'7c15U >> 32);
  while (true) {
    std::uint32_t* slot = &numbers.slots[at & mask];
    if (*slot == 0 || numbers.addresses[*slot - 1] == address) {
      return slot;
    }
    ++at;
  }
}

bool grow(HeapUser& heap, HandleNumbers& numbers) noexcept {
  const std::uint32_t slot_count = numbers.slot_count == 0 ? 32 : numbers.slot_count * 2;
  auto* slots = heap.allocate_array<std::uint32_t>(slot_count);
  auto* addresses = heap.allocate_array<void*>(slot_count / 2);
  if (slots == nullptr || addresses == nullptr) {
    heap.deallocate(slots);
    heap.deallocate(addresses);
    return false;
  }
  std::memset(slots, 0, slot_count * sizeof *slots);
  std::copy(numbers.addresses, numbers.addresses + numbers.count, addresses);
  heap.deallocate(numbers.slots);
  heap.deallocate(numbers.addresses);
  numbers = {addresses, slots, numbers.count, slot_count};
  for (std::uint32_t i = 0; i < numbers.count; ++i) {
    *find_slot(numbers, addresses[i]) = i + 1;
  }
  return true;
}

}  // namespace

int number_of_handle(void* handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value <= kPredefinedHandleMax) {
    return static_cast<int>(value);
  }
  AnyTime& its = any_time();
  const SpinGuard guard{its.lock};
  HandleNumbers& numbers = its.numbers;
  if (numbers.count == numbers.slot_count / 2 && !grow(its, numbers)) {
    return -1;
  }
  std::uint32_t* slot = find_slot(numbers, handle);
  if (*slot == 0) {
    numbers.addresses[numbers.count] = handle;
    ++numbers.count;
    *slot = numbers.count;
  }
  return kFirstNumber + static_cast<int>(*slot) - 1;
}

void* handle_of_number(int number) noexcept {
  if (number < kFirstNumber) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number < 0 ? 0 : number));
  }
  AnyTime& its = any_time();
  const SpinGuard guard{its.lock};
  const auto index = static_cast<std::uint32_t>(number - kFirstNumber);
  return index < its.numbers.count ? its.numbers.addresses[index] : nullptr;
}

}  // namespace sterna::mpi
