// Error classes, codes and texts that a program adds, beside the predefined ones.
#pragma once

#include <mpi.h>

namespace sterna::mpi {

struct AnyTime;

/// One added class or code. Guard: AnyTime::lock.
struct AddedError {
  int error_class = 0;  // Its own number: it is a class.
  int codes = 0;        // Of a class: those of its codes that are present.
  int next_free = -1;   // Of an index that was removed: the one removed before it; -1: none.
  bool is_present = false;
  char* text = nullptr;  // Null: an empty string.
};

struct ErrorTable {
  AddedError* entries = nullptr;  // Code kFirstAdded + index.
  int count = 0;                  // Entries that are or were in use: MPI_LASTUSEDCODE.
  int capacity = 0;
  int free = -1;  // The index that was removed last, to be used first; -1: none.
};

inline constexpr int kFirstAdded = MPI_ERR_LASTCODE + 1;

/// Text of a predefined class, or null.
[[nodiscard]] const char* text_of_class(int error_class) noexcept;

/// A new class (`error_class` < 0) or a new code of a class. 0: no memory.
int add_error(AnyTime& its, int error_class) noexcept;
/// Results are error classes.
int remove_error(AnyTime& its, int code, bool is_class) noexcept;
int set_error_text(AnyTime& its, int code, const char* text) noexcept;
[[nodiscard]] int last_used_code(AnyTime& its) noexcept;

}  // namespace sterna::mpi
