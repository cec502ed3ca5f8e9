// Attributes: values that a program caches on communicators, datatypes and windows under a key, and
// the functions that copy and delete them.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "mpi/rank_state.h"

namespace sterna::mpi {

/// What an attribute is cached on. A key serves one kind.
enum class AttributeOwner : std::uint8_t { communicator, datatype, window };

/// How the value was given: MPI_Attr_get of old programs and Fortran differ, C does not.
struct Keyval final : Object {
  Keyval() noexcept : Object{ObjectKind::keyval} {}

  Keyval* next = nullptr;  // Guard: RankState::lock.
  int number = 0;
  AttributeOwner owner = AttributeOwner::communicator;
  bool is_freed = false;  // MPI_Comm_free_keyval was called; attributes still hold it.
  // The signatures of all three kinds agree but for the handle's type, a pointer in each.
  int (*copy)(void* handle, int keyval, void* extra, void* in, void* out, int* flag) = nullptr;
  int (*remove)(void* handle, int keyval, void* value, void* extra) = nullptr;
  void* extra_state = nullptr;
};

struct Attribute {
  Attribute* next;
  Keyval* keyval;  // One reference.
  void* value;
};

/// The attributes of one object, newest first. Guard: the program must not race its own calls on
/// one object; no lock is held while functions of the program run.
struct AttributeSet {
  Attribute* newest = nullptr;
};

/// Create and free keys; results are error classes.
int create_keyval(RankState& state, AttributeOwner owner, void* copy, void* remove, void* extra,
                  int* number) noexcept;
int free_keyval(RankState& state, AttributeOwner owner, int* number) noexcept;

/// `handle` is what the program's functions get. Results: MPI_SUCCESS, MPI_ERR_KEYVAL, or what a
/// function of the program returned. May switch (they run functions of the program).
int set_attribute(RankState& state, AttributeOwner owner, void* handle, AttributeSet& set,
                  int number, void* value) noexcept;
int delete_attribute(RankState& state, AttributeOwner owner, void* handle, AttributeSet& set,
                     int number) noexcept;
int get_attribute(RankState& state, AttributeOwner owner, const AttributeSet& set, int number,
                  void** value, bool* is_set) noexcept;
/// Runs the copy functions; on an error what was copied is deleted again.
int copy_attributes(RankState& state, void* old_handle, const AttributeSet& from, void* new_handle,
                    AttributeSet& into) noexcept;
int delete_all_attributes(RankState& state, void* handle, AttributeSet& set) noexcept;

}  // namespace sterna::mpi
