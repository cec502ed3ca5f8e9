// Side tables of a rank, made at their first use and kept at RankState::datatypes.
#include "mpi/datatype/type_space.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "mpi/datatype/recipe.h"

namespace sterna::mpi {
namespace {

struct KindType {
  KindType* next;
  int combiner;
  std::int64_t values[2];
  MPI_Datatype type;
};

/// Numbers of addresses: entry i of `addresses` has the number kFirstNumber + i; `slots` is an open
/// hash of 1 + i, at most half full.
struct HandleNumbers {
  void** addresses = nullptr;
  std::uint32_t* slots = nullptr;
  std::uint32_t count = 0;
  std::uint32_t slot_count = 0;  // A power of two, or 0.
};

constexpr int kFirstNumber = static_cast<int>(kPredefinedHandleMax) + 1;

struct TypeSpace {
  AttributeSet attributes[kPredefinedCount];
  char* names[kPredefinedCount] = {};
  KindType* kinds = nullptr;  // Guard: RankState::lock.
  HandleNumbers numbers;      // Guard: RankState::lock.
};

TypeSpace* find_space(RankState& state) noexcept {
  const StateGuard guard{state};
  if (state.datatypes == nullptr) {
    state.datatypes = state.create<TypeSpace>();
  }
  return static_cast<TypeSpace*>(state.datatypes);
}

std::size_t index_of(MPI_Datatype type) noexcept {
  return kPredefinedIndex[reinterpret_cast<std::uintptr_t>(type) & 0x1ff];
}

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

bool grow(RankState& state, HandleNumbers& numbers) noexcept {
  const std::uint32_t slot_count = numbers.slot_count == 0 ? 32 : numbers.slot_count * 2;
  auto* slots = state.allocate_array<std::uint32_t>(slot_count);
  auto* addresses = state.allocate_array<void*>(slot_count / 2);
  if (slots == nullptr || addresses == nullptr) {
    state.deallocate(slots);
    state.deallocate(addresses);
    return false;
  }
  std::memset(slots, 0, slot_count * sizeof *slots);
  std::copy(numbers.addresses, numbers.addresses + numbers.count, addresses);
  state.deallocate(numbers.slots);
  state.deallocate(numbers.addresses);
  numbers = {addresses, slots, numbers.count, slot_count};
  for (std::uint32_t i = 0; i < numbers.count; ++i) {
    *find_slot(numbers, addresses[i]) = i + 1;
  }
  return true;
}

}  // namespace

AttributeSet* attributes_of(RankState& state, MPI_Datatype type) noexcept {
  if (!is_predefined(type)) {
    return &reinterpret_cast<Datatype*>(type)->attributes;
  }
  TypeSpace* space = find_space(state);
  return space == nullptr ? nullptr : &space->attributes[index_of(type)];
}

const char* name_of(RankState& state, MPI_Datatype type) noexcept {
  if (is_predefined(type) && state.datatypes != nullptr) {
    const char* name = static_cast<TypeSpace*>(state.datatypes)->names[index_of(type)];
    if (name != nullptr) {
      return name;
    }
  }
  return find_datatype(type)->name;
}

bool set_name(RankState& state, MPI_Datatype type, const char* name) noexcept {
  char* place = nullptr;
  if (is_predefined(type)) {
    TypeSpace* space = find_space(state);
    if (space == nullptr) {
      return false;
    }
    char*& own = space->names[index_of(type)];
    if (own == nullptr) {
      own = state.allocate_array<char>(MPI_MAX_OBJECT_NAME);
    }
    place = own;
  } else {
    place = reinterpret_cast<Datatype*>(type)->name;
  }
  if (place == nullptr) {
    return false;
  }
  const std::size_t length = strnlen(name, MPI_MAX_OBJECT_NAME - 1);
  std::memcpy(place, name, length);
  place[length] = 0;
  return true;
}

int kind_type(RankState& state, int combiner, std::span<const std::int64_t> values,
              MPI_Datatype base, MPI_Datatype& type) noexcept {
  TypeSpace* space = find_space(state);
  if (space == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  const StateGuard guard{state};
  for (const KindType* kind = space->kinds; kind != nullptr; kind = kind->next) {
    if (kind->combiner == combiner && std::equal(values.begin(), values.end(), kind->values)) {
      type = kind->type;
      return MPI_SUCCESS;
    }
  }
  auto* kind = state.create<KindType>();
  Datatype* made = nullptr;
  const int error =
      kind == nullptr ? int{MPI_ERR_NO_MEM}
                      : create_datatype(state.heap(), {combiner, false, values, {&base, 1}}, made);
  if (error != MPI_SUCCESS) {
    state.deallocate(kind);
    return error;
  }
  made->is_committed = true;
  type = reinterpret_cast<MPI_Datatype>(made);
  *kind = {space->kinds, combiner, {}, type};
  std::copy(values.begin(), values.end(), kind->values);
  space->kinds = kind;
  return MPI_SUCCESS;
}

int number_of_handle(RankState* state, void* handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value <= kPredefinedHandleMax) {
    return static_cast<int>(value);
  }
  TypeSpace* space = state == nullptr ? nullptr : find_space(*state);
  if (space == nullptr) {
    return -1;
  }
  const StateGuard guard{*state};
  HandleNumbers& numbers = space->numbers;
  if (numbers.count == numbers.slot_count / 2 && !grow(*state, numbers)) {
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

void* handle_of_number(RankState* state, int number) noexcept {
  if (number < kFirstNumber) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(number < 0 ? 0 : number));
  }
  if (state == nullptr || state->datatypes == nullptr) {
    return nullptr;
  }
  const StateGuard guard{*state};
  const HandleNumbers& numbers = static_cast<TypeSpace*>(state->datatypes)->numbers;
  const auto index = static_cast<std::uint32_t>(number - kFirstNumber);
  return index < numbers.count ? numbers.addresses[index] : nullptr;
}

void release_type_space(RankState& state) noexcept {
  auto* space = static_cast<TypeSpace*>(state.datatypes);
  if (space == nullptr) {
    return;
  }
  while (space->kinds != nullptr) {
    KindType* kind = space->kinds;
    space->kinds = kind->next;
    release_datatype(state.heap(), kind->type);
    state.deallocate(kind);
  }
  for (char* name : space->names) {
    state.deallocate(name);
  }
  state.deallocate(space->numbers.addresses);
  state.deallocate(space->numbers.slots);
  state.destroy(space);
  state.datatypes = nullptr;
}

}  // namespace sterna::mpi
