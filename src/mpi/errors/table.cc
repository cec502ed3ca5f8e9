// Error classes, codes and texts that a program adds.
#include "mpi/errors/table.h"

#include <cstring>
#include <new>

#include "mpi/any_time.h"
#include "mpi/errors/error.h"

namespace sterna::mpi {
namespace {

AddedError* find_added(AnyTime& its, int code) noexcept {
  const ErrorTable& table = its.errors;
  const int index = code - kFirstAdded;
  if (code < kFirstAdded || index >= table.count || !table.entries[index].is_present) {
    return nullptr;
  }
  return &table.entries[index];
}

bool grow(AnyTime& its) noexcept {
  ErrorTable& table = its.errors;
  if (table.count < table.capacity) {
    return true;
  }
  const int capacity = table.capacity == 0 ? 16 : 2 * table.capacity;
  auto* entries = its.allocate_array<AddedError>(static_cast<std::size_t>(capacity));
  if (entries == nullptr) {
    return false;
  }
  for (int i = 0; i < capacity; ++i) {
    ::new (&entries[i]) AddedError{i < table.count ? table.entries[i] : AddedError{}};
  }
  its.deallocate(table.entries);
  table.entries = entries;
  table.capacity = capacity;
  return true;
}

}  // namespace

int add_error(AnyTime& its, int error_class) noexcept {
  const SpinGuard guard{its.lock};
  ErrorTable& table = its.errors;
  if (table.free < 0 && !grow(its)) {
    return 0;
  }
  const int index = table.free < 0 ? table.count++ : table.free;
  if (index == table.free) {
    table.free = table.entries[index].next_free;
  }
  const int code = kFirstAdded + index;
  table.entries[index] = {.error_class = error_class < 0 ? code : error_class, .is_present = true};
  if (AddedError* const parent = find_added(its, error_class)) {
    ++parent->codes;
  }
  return code;
}

int remove_error(AnyTime& its, int code, bool is_class) noexcept {
  const SpinGuard guard{its.lock};
  AddedError* added = find_added(its, code);
  if (added == nullptr || (added->error_class == code) != is_class) {
    return MPI_ERR_ARG;
  }
  if (added->text != nullptr) {
    return MPI_ERR_OTHER;  // Its string is to be removed first.
  }
  if (added->codes != 0) {
    return MPI_ERR_OTHER;  // Codes of the class are left.
  }
  if (AddedError* const parent = is_class ? nullptr : find_added(its, added->error_class)) {
    --parent->codes;
  }
  *added = {.next_free = its.errors.free};
  its.errors.free = code - kFirstAdded;
  return MPI_SUCCESS;
}

int set_error_text(AnyTime& its, int code, const char* text) noexcept {
  const SpinGuard guard{its.lock};
  AddedError* added = find_added(its, code);
  if (added == nullptr) {
    return MPI_ERR_ARG;
  }
  char* copy = nullptr;
  if (text != nullptr) {
    const std::size_t bytes = strnlen(text, MPI_MAX_ERROR_STRING - 1);
    copy = its.allocate_array<char>(bytes + 1);
    if (copy == nullptr) {
      return MPI_ERR_NO_MEM;
    }
    std::memcpy(copy, text, bytes);
    copy[bytes] = '\0';
  }
  its.deallocate(added->text);
  added->text = copy;
  return MPI_SUCCESS;
}

int last_used_code(AnyTime& its) noexcept {
  const SpinGuard guard{its.lock};
  return MPI_ERR_LASTCODE + its.errors.count;
}

int class_of_code(int code) noexcept {
  if (text_of_class(code) != nullptr) {
    return code;
  }
  AnyTime& its = any_time();
  const SpinGuard guard{its.lock};
  const AddedError* added = find_added(its, code);
  return added == nullptr ? -1 : added->error_class;
}

bool text_of_code(int code, char* text) noexcept {
  const char* known = text_of_class(code);
  if (known == nullptr) {
    AnyTime& its = any_time();
    const SpinGuard guard{its.lock};
    const AddedError* added = find_added(its, code);
    if (added == nullptr) {
      return false;
    }
    // Copied under the lock: another thread may give it another text.
    std::strcpy(text, added->text == nullptr ? "" : added->text);
    return true;
  }
  std::strcpy(text, known);
  return true;
}

}  // namespace sterna::mpi
