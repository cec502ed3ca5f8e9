// Where the bytes of a message of the C API lie: one range, or pieces that are described in one of
// three ways.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sterna/message.h>

#include "memory/heap.h"
#include "net/message.h"

namespace sterna::runtime::capi {

/// All that a process can address; sums of pieces beyond it are mistakes.
inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 47;

/// As the program describes them.
struct MessageData {
  enum class Kind : std::uint8_t {
    range,    // `bytes` bytes at `address`.
    pieces,   // `count` of them at `pieces`.
    strided,  // `count` blocks of `bytes` bytes, the first at `address`, `stride` bytes apart.
    layout,   // What next(layout, index) says.
  } kind = Kind::range;
  void* address = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  std::int64_t stride = 0;
  const sterna_piece* pieces = nullptr;
  sterna_next_piece next = nullptr;
  const void* layout = nullptr;
};

/// The same as the transport takes them, while a message is under way. What it holds is memory of
/// the heap that it was given.
struct MessageBytes {
  net::Buffer buffer;
  void* held = nullptr;    // The array of extents, or the copy. Null: none.
  bool is_copied = false;  // `held` is a copy of many pieces.
};

/// Few pieces go as they are; many are copied into one range (from the program, for a send).
/// INVALID_ARGUMENT: a piece without address, or more bytes than there can be; REFUSED: a layout
/// that says something else each time; OUT_OF_MEMORY.
[[nodiscard]] sterna_status open_bytes(const MessageData& data, bool is_send, memory::Heap& heap,
                                       MessageBytes& bytes) noexcept;

/// Gives back what `bytes` holds, after the first `stored` bytes of a copy went to their pieces.
void close_bytes(const MessageData& data, std::uint64_t stored, memory::Heap& heap,
                 MessageBytes& bytes) noexcept;

}  // namespace sterna::runtime::capi
