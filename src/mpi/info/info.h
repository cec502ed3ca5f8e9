// Info objects: an ordered list of pairs of strings.
#pragma once

#include <mpi.h>

#include "mpi/heap_user.h"
#include "mpi/object.h"

namespace sterna::mpi {

struct InfoPair {
  InfoPair* next;
  char* key;  // Both in one block with the pair.
  char* value;
};

/// Guard: the program must not race its own calls on one object.
struct Info final : Object {
  Info() noexcept : Object{ObjectKind::info} {}

  InfoPair* first = nullptr;
};

/// Null: no info object, or no memory for MPI_INFO_ENV.
[[nodiscard]] Info* find_info(MPI_Info handle) noexcept;
/// Null: no memory.
[[nodiscard]] Info* create_info(HeapUser& heap) noexcept;
[[nodiscard]] Info* copy_info(HeapUser& heap, const Info& from) noexcept;
void destroy_info(HeapUser& heap, Info* info) noexcept;
/// False: no memory.
[[nodiscard]] bool set_info(HeapUser& heap, Info& info, const char* key,
                            const char* value) noexcept;
/// False: there is no such key.
[[nodiscard]] bool remove_info(HeapUser& heap, Info& info, const char* key) noexcept;
/// The value, or null.
[[nodiscard]] const char* get_info(const Info& info, const char* key) noexcept;

}  // namespace sterna::mpi
