// Attributes: keys, and values under them.
#include "mpi/attribute/attribute.h"

#include "runtime/scope.h"

namespace sterna::mpi {
namespace {

constexpr int kFirstKeyval = 0x1000;  // Above the ABI's predefined keys.

using CopyFunction = int (*)(void*, int, void*, void*, void*, int*);
using RemoveFunction = int (*)(void*, int, void*, void*);

// The ABI's MPI_COMM_DUP_FN and its kin, of all owners, old and new: the constant 1.
bool is_dup_function(CopyFunction function) noexcept {
  return reinterpret_cast<std::uintptr_t>(function) == 1;
}

/// Also one that the program has freed, while values are under it: they may be read and deleted by
/// its number (MPI-4.1, 7.7.2, on MPI_Comm_free_keyval).
Keyval* find_used_keyval(RankState& state, AttributeOwner owner, int number) noexcept {
  StateGuard guard{state};
  for (Keyval* keyval = state.keyvals; keyval != nullptr; keyval = keyval->next) {
    if (keyval->number == number) {
      return keyval->owner == owner ? keyval : nullptr;
    }
  }
  return nullptr;
}

Keyval* find_keyval(RankState& state, AttributeOwner owner, int number) noexcept {
  Keyval* const keyval = find_used_keyval(state, owner, number);
  return keyval != nullptr && !keyval->is_freed ? keyval : nullptr;
}

void release_keyval(RankState& state, Keyval* keyval) noexcept {
  if (!keyval->release()) {
    return;
  }
  {
    StateGuard guard{state};
    Keyval** link = &state.keyvals;
    while (*link != keyval) {
      link = &(*link)->next;
    }
    *link = keyval->next;
  }
  state.destroy(keyval);
}

int run_remove(const Keyval& keyval, void* handle, void* value) noexcept {
  if (keyval.remove == nullptr) {
    return MPI_SUCCESS;
  }
  runtime::UserScope user;
  return keyval.remove(handle, keyval.number, value, keyval.extra_state);
}

Attribute** find_link(AttributeSet& set, const Keyval* keyval) noexcept {
  Attribute** link = &set.newest;
  while (*link != nullptr && (*link)->keyval != keyval) {
    link = &(*link)->next;
  }
  return link;
}

/// The program's function may delete other values of the set, and this one, too.
int remove_value(RankState& state, void* handle, AttributeSet& set,
                 const Attribute& attribute) noexcept {
  Keyval* const keyval = attribute.keyval;
  keyval->retain();
  const int error = run_remove(*keyval, handle, attribute.value);
  if (Attribute** const link = find_link(set, keyval); error == MPI_SUCCESS && *link != nullptr) {
    Attribute* const left = *link;
    *link = left->next;
    release_keyval(state, keyval);
    state.deallocate(left);
  }
  release_keyval(state, keyval);
  return error;
}

bool push(RankState& state, AttributeSet& set, Keyval* keyval, void* value) noexcept {
  void* place = state.allocate(sizeof(Attribute));
  if (place == nullptr) {
    return false;
  }
  keyval->retain();
  set.newest = ::new (place) Attribute{set.newest, keyval, value};
  return true;
}

}  // namespace

int create_keyval(RankState& state, AttributeOwner owner, void* copy, void* remove, void* extra,
                  int* number) noexcept {
  Keyval* keyval = state.create<Keyval>();
  if (keyval == nullptr) {
    return MPI_ERR_NO_MEM;
  }
  keyval->owner = owner;
  keyval->copy = reinterpret_cast<CopyFunction>(copy);
  keyval->remove = reinterpret_cast<RemoveFunction>(remove);
  keyval->extra_state = extra;
  StateGuard guard{state};
  keyval->number = kFirstKeyval + state.next_keyval++;
  keyval->next = state.keyvals;
  state.keyvals = keyval;
  *number = keyval->number;
  return MPI_SUCCESS;
}

int free_keyval(RankState& state, AttributeOwner owner, int* number) noexcept {
  Keyval* keyval = find_keyval(state, owner, *number);
  if (keyval == nullptr) {
    return MPI_ERR_KEYVAL;
  }
  keyval->is_freed = true;
  *number = MPI_KEYVAL_INVALID;
  release_keyval(state, keyval);
  return MPI_SUCCESS;
}

int set_attribute(RankState& state, AttributeOwner owner, void* handle, AttributeSet& set,
                  int number, void* value) noexcept {
  Keyval* keyval = find_keyval(state, owner, number);
  if (keyval == nullptr) {
    return MPI_ERR_KEYVAL;
  }
  const Attribute* const old = *find_link(set, keyval);
  if (old == nullptr) {
    return push(state, set, keyval, value) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
  }
  keyval->retain();
  int error = run_remove(*keyval, handle, old->value);
  if (error == MPI_SUCCESS) {
    if (Attribute* const left = *find_link(set, keyval)) {
      left->value = value;
    } else {  // The program has deleted it.
      error = push(state, set, keyval, value) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
  }
  release_keyval(state, keyval);
  return error;
}

int delete_attribute(RankState& state, AttributeOwner owner, void* handle, AttributeSet& set,
                     int number) noexcept {
  Keyval* keyval = find_used_keyval(state, owner, number);
  if (keyval == nullptr) {
    return MPI_ERR_KEYVAL;
  }
  const Attribute* const attribute = *find_link(set, keyval);
  return attribute == nullptr ? MPI_ERR_KEYVAL : remove_value(state, handle, set, *attribute);
}

int get_attribute(RankState& state, AttributeOwner owner, const AttributeSet& set, int number,
                  void** value, bool* is_set) noexcept {
  Keyval* keyval = find_used_keyval(state, owner, number);
  if (keyval == nullptr) {
    return MPI_ERR_KEYVAL;
  }
  const Attribute* attribute = set.newest;
  while (attribute != nullptr && attribute->keyval != keyval) {
    attribute = attribute->next;
  }
  *is_set = attribute != nullptr;
  if (*is_set) {
    *value = attribute->value;
  }
  return MPI_SUCCESS;
}

namespace {

// Oldest first, so that the copy lists them in the order of the original.
int copy_from(RankState& state, void* old_handle, const Attribute* attribute, void* new_handle,
              AttributeSet& into) noexcept {
  if (attribute == nullptr) {
    return MPI_SUCCESS;
  }
  const int error = copy_from(state, old_handle, attribute->next, new_handle, into);
  Keyval* keyval = attribute->keyval;
  if (error != MPI_SUCCESS || keyval->copy == nullptr) {
    return error;
  }
  void* value = attribute->value;
  if (!is_dup_function(keyval->copy)) {
    int wanted = 0;
    void* copied = nullptr;
    int result = MPI_SUCCESS;
    {
      runtime::UserScope user;
      result = keyval->copy(old_handle, keyval->number, keyval->extra_state, attribute->value,
                            &copied, &wanted);
    }
    if (result != MPI_SUCCESS || wanted == 0) {
      return result;
    }
    value = copied;
  }
  return push(state, into, keyval, value) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

}  // namespace

int copy_attributes(RankState& state, void* old_handle, const AttributeSet& from, void* new_handle,
                    AttributeSet& into) noexcept {
  const int error = copy_from(state, old_handle, from.newest, new_handle, into);
  if (error != MPI_SUCCESS) {
    (void)delete_all_attributes(state, new_handle, into);
  }
  return error;
}

int delete_all_attributes(RankState& state, void* handle, AttributeSet& set) noexcept {
  while (set.newest != nullptr) {
    const int error = remove_value(state, handle, set, *set.newest);
    if (error != MPI_SUCCESS) {
      return error;
    }
  }
  return MPI_SUCCESS;
}

}  // namespace sterna::mpi
