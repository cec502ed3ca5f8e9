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

struct TypeSpace {
  AttributeSet attributes[kPredefinedCount];
  char* names[kPredefinedCount] = {};
  KindType* kinds = nullptr;  // Guard: RankState::lock.
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
  made->is_reducible = true;  // It counts as predefined: MPI-4.1, 19.1.9.
  type = reinterpret_cast<MPI_Datatype>(made);
  *kind = {space->kinds, combiner, {}, type};
  std::copy(values.begin(), values.end(), kind->values);
  space->kinds = kind;
  return MPI_SUCCESS;
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
  state.destroy(space);
  state.datatypes = nullptr;
}

}  // namespace sterna::mpi
