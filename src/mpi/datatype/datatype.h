// Datatypes: what the buffers of MPI calls are made of, and how their bytes become a stream and
// back.
//
// A predefined type is found by its handle in a constant table; a derived one lies in the system
// heap of its rank and moves with it as bytes. Children are kept as handles, so that nothing in a
// rank points into the library's tables. Engine only: the functions of MPI are in api/datatype.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <mpi.h>

#include "memory/heap.h"
#include "mpi/attribute/attribute.h"
#include "mpi/datatype/basic.h"
#include "mpi/datatype/loop.h"
#include "mpi/object.h"

namespace sterna::mpi {

/// How a derived type was made: what MPI_Type_get_envelope and _contents give back. `values` are
/// the arguments in the order of the int form: integers, then addresses; the large form says which
/// of them are large counts (recipe.h).
struct Recipe {
  int combiner = MPI_COMBINER_NAMED;
  bool is_large = false;  // Made by a _c function.
  std::uint32_t value_count = 0;
  std::uint32_t type_count = 0;
  std::int64_t* values = nullptr;
  MPI_Datatype* types = nullptr;  // One reference each.
};

struct Datatype final : Object {
  /// What a predefined type is made of (predefined.cc).
  struct Predefined {
    const char* name;
    Basic basic;
    std::int64_t bytes;
    std::int64_t extent;
    std::int64_t true_extent;
    std::uint32_t element_count;
    std::uint32_t alignment;
    std::span<const Loop> elements;
    std::span<const Loop> copies;
  };

  constexpr Datatype() noexcept : Object{ObjectKind::datatype} {}
  constexpr explicit Datatype(const Predefined& what) noexcept
      : Object{ObjectKind::datatype},
        bytes{what.bytes},
        extent{what.extent},
        true_extent{what.true_extent},
        element_count{what.element_count},
        alignment{what.alignment},
        basic{what.basic},
        is_predefined{true},
        is_committed{true},
        is_dense{what.bytes == what.extent},
        is_one_run{what.copies.size() == 1},
        copies{Plan::of(what.copies, what.bytes)},
        elements{Plan::of(what.elements, what.bytes)} {
    for (std::size_t i = 0; what.name[i] != 0; ++i) {
      name[i] = what.name[i];
    }
  }

  // All but name, attributes and is_committed are constant once the type is made.
  std::int64_t bytes = 0;  // MPI_Type_size: data of one instance.
  std::int64_t lb = 0;
  std::int64_t extent = 0;
  std::int64_t true_lb = 0;
  std::int64_t true_extent = 0;
  std::uint64_t element_count = 0;  // Basic elements in one instance.
  std::uint32_t alignment = 1;      // The strictest of its elements.
  Basic basic = Basic::none;        // What all elements are, or none: mixed.
  bool is_predefined = false;
  bool is_reducible = false;  // Not predefined, but predefined operations take it as `basic`.
  bool is_committed = false;
  bool is_dense = false;     // Any number of instances is one run of bytes that starts at true_lb.
  bool is_one_run = false;   // One instance is one run.
  bool has_markers = false;  // lb and extent were set by the program (resized, subarray, darray).
  Plan copies;               // To copy bytes: blocks of different elements are merged.
  Plan elements;  // To convert and count: every block is of one basic type. May share `copies`.
  Recipe recipe;
  AttributeSet attributes;  // Of derived types; see predefined_attributes() for the others.
  char name[MPI_MAX_OBJECT_NAME] = {};
};

inline constexpr std::size_t kPredefinedCount = 71;
/// By the low 9 bits of the handle; 0: none.
extern const std::array<std::uint8_t, 512> kPredefinedIndex;
/// By the same bits: bytes of a predefined type any number of which is one run; 0: of no such type.
[[gnu::visibility("hidden")]] extern const std::array<std::uint8_t, 512> kDenseBytes;
extern const std::array<Datatype, kPredefinedCount> kPredefinedTypes;
/// The handle of an entry of kPredefinedTypes (of two names for one type, one).
[[nodiscard]] MPI_Datatype predefined_handle(std::size_t index) noexcept;

/// The type behind a handle. Null: MPI_DATATYPE_NULL, or no datatype.
[[nodiscard]] inline const Datatype* find_datatype(MPI_Datatype handle) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value - 0x200 < 0x200) [[likely]] {
    const std::uint8_t index = kPredefinedIndex[value & 0x1ff];
    return index == 0 ? nullptr : &kPredefinedTypes[index];
  }
  return is_object(handle, ObjectKind::datatype) ? reinterpret_cast<const Datatype*>(handle)
                                                 : nullptr;
}

[[nodiscard]] inline bool is_predefined(MPI_Datatype handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) <= kPredefinedHandleMax;
}

/// A reference of an operation or of another type. Predefined types are not counted.
inline void retain_datatype(MPI_Datatype handle) noexcept {
  if (!is_predefined(handle)) {
    reinterpret_cast<Datatype*>(handle)->retain();
  }
}
/// The last one frees the type and gives up its references to its children. The attributes must be
/// gone: MPI_Type_free deletes them first.
void release_datatype(memory::Heap& heap, MPI_Datatype handle) noexcept;

/// A stretch of memory that the elements of a buffer occupy.
struct Run {
  std::byte* address;
  std::uint64_t bytes;
};

/// `count` instances of a type at an address: what most MPI functions are given. `address` is MPI's
/// buffer argument; nothing but the data bytes of the type is ever read or written there. The type
/// outlives the object: retain it where it must.
struct TypedBuffer {
  std::byte* address;
  std::uint64_t count;
  const Datatype* type;

  [[nodiscard]] static TypedBuffer of(const void* address, MPI_Count count,
                                      const Datatype& type) noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(address)), static_cast<std::uint64_t>(count),
            &type};
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return count * static_cast<std::uint64_t>(type->bytes);
  }
  /// All data is one run (then first_byte() and bytes() are it). True when there is no data.
  [[nodiscard]] bool is_one_run() const noexcept {
    return type->is_dense || count == 0 || (count == 1 && type->is_one_run);
  }
  [[nodiscard]] std::byte* first_byte() const noexcept {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) +
                                        static_cast<std::uintptr_t>(type->true_lb));
  }
};

/// Copies the bytes [offset, offset + stream.size()) of the stream of data that the buffer makes
/// into `stream`, or fewer at its end. Returns how many.
std::uint64_t pack(const TypedBuffer& from, std::uint64_t offset,
                   std::span<std::byte> stream) noexcept;
/// The reverse: writes them into the buffer.
std::uint64_t unpack(const TypedBuffer& into, std::uint64_t offset,
                     std::span<const std::byte> stream) noexcept;
/// The runs of the stream from byte `offset` on, in order, as many as fit. Returns their number and
/// adds their bytes to `offset`: call again with it for more. 0: the end.
std::uint32_t collect_runs(const TypedBuffer& buffer, std::uint64_t& offset,
                           std::span<Run> runs) noexcept;
/// Copies from one typed buffer into another, min(from.bytes(), into.bytes()) bytes; returns how
/// many. The data must not overlap.
std::uint64_t copy_typed(const TypedBuffer& from, const TypedBuffer& into) noexcept;

/// Whole basic elements in the first `bytes` bytes of a stream of instances, for
/// MPI_Get_elements; kNotWhole: the bytes end inside of an element.
inline constexpr std::uint64_t kNotWhole = ~std::uint64_t{0};
[[nodiscard]] std::uint64_t count_elements(const Datatype& type, std::uint64_t bytes) noexcept;
/// The reverse: bytes of the first `elements` basic elements of a stream of instances.
[[nodiscard]] std::uint64_t bytes_of_elements(const Datatype& type,
                                              std::uint64_t elements) noexcept;

}  // namespace sterna::mpi
