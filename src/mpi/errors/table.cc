// Error classes, codes and texts that a program adds.
#include "mpi/errors/table.h"

#include <cstring>

#include "mpi/errors/error.h"

namespace sterna::mpi {
namespace {

AddedError* find_added(RankState& state, int code) noexcept {
  ErrorTable* table = state.errors;
  const int index = code - kFirstAdded;
  if (table == nullptr || code < kFirstAdded || index >= table->count ||
      !table->entries[index].is_present) {
    return nullptr;
  }
  return &table->entries[index];
}

bool grow(RankState& state) noexcept {
  if (state.errors == nullptr) {
    state.errors = state.create<ErrorTable>();
  }
  ErrorTable* table = state.errors;
  if (table == nullptr || table->count < table->capacity) {
    return table != nullptr;
  }
  const int capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
  auto* entries = state.allocate_array<AddedError>(static_cast<std::size_t>(capacity));
  if (entries == nullptr) {
    return false;
  }
  for (int i = 0; i < capacity; ++i) {
    ::new (&entries[i]) AddedError{i < table->count ? table->entries[i] : AddedError{}};
  }
  state.deallocate(table->entries);
  table->entries = entries;
  table->capacity = capacity;
  return true;
}

}  // namespace

int add_error(RankState& state, int error_class) noexcept {
  StateGuard guard{state};
  if (!grow(state)) {
    return 0;
  }
  const int code = kFirstAdded + state.errors->count++;
  state.errors->entries[code - kFirstAdded] = {error_class < 0 ? code : error_class, true, nullptr};
  return code;
}

int remove_error(RankState& state, int code, bool is_class) noexcept {
  StateGuard guard{state};
  AddedError* added = find_added(state, code);
  if (added == nullptr || (added->error_class == code) != is_class) {
    return MPI_ERR_ARG;
  }
  if (added->text != nullptr) {
    return MPI_ERR_OTHER;  // Its string is to be removed first.
  }
  for (int i = 0; is_class && i < state.errors->count; ++i) {
    const AddedError& other = state.errors->entries[i];
    if (other.is_present && other.error_class == code && i + kFirstAdded != code) {
      return MPI_ERR_OTHER;  // Codes of the class are left.
    }
  }
  *added = {};
  return MPI_SUCCESS;
}

int set_error_text(RankState& state, int code, const char* text) noexcept {
  StateGuard guard{state};
  AddedError* added = find_added(state, code);
  if (added == nullptr) {
    return MPI_ERR_ARG;
  }
  char* copy = nullptr;
  if (text != nullptr) {
    const std::size_t bytes = strnlen(text, MPI_MAX_ERROR_STRING - 1);
    copy = state.allocate_array<char>(bytes + 1);
    if (copy == nullptr) {
      return MPI_ERR_NO_MEM;
    }
    std::memcpy(copy, text, bytes);
    copy[bytes] = '\0';
  }
  state.deallocate(added->text);
  added->text = copy;
  return MPI_SUCCESS;
}

int last_used_code(RankState& state) noexcept {
  StateGuard guard{state};
  return state.errors == nullptr ? MPI_ERR_LASTCODE : MPI_ERR_LASTCODE + state.errors->count;
}

int class_of_code(RankState* state, int code) noexcept {
  if (text_of_class(code) != nullptr) {
    return code;
  }
  if (state == nullptr) {
    return -1;
  }
  StateGuard guard{*state};
  const AddedError* added = find_added(*state, code);
  return added == nullptr ? -1 : added->error_class;
}

const char* text_of_code(RankState* state, int code) noexcept {
  const char* text = text_of_class(code);
  if (text != nullptr || state == nullptr) {
    return text;
  }
  StateGuard guard{*state};
  const AddedError* added = find_added(*state, code);
  if (added == nullptr) {
    return nullptr;
  }
  return added->text == nullptr ? "" : added->text;
}

void release_errors(RankState& state) noexcept {
  if (state.errors == nullptr) {
    return;
  }
  for (int i = 0; i < state.errors->count; ++i) {
    state.deallocate(state.errors->entries[i].text);
  }
  state.deallocate(state.errors->entries);
  state.destroy(state.errors);
  state.errors = nullptr;
}

}  // namespace sterna::mpi
