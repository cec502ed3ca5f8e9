// Copies between buffers of one or several extents, at any offset.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "net/driver.h"
#include "net/message.h"

namespace sterna::net {

/// Up to so many memcpy is loops of vectors everywhere: see buffer.cc.
inline constexpr std::size_t kLoopBytes = 1984;

/// memcpy, of many bytes.
void copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// memcpy, in line where the bytes are few: a call would cost more than the copy.
[[gnu::always_inline]] inline void copy_bytes(std::byte* to, const std::byte* from,
                                              std::size_t bytes) noexcept {
  // The end first: into a cell of shared memory the beginning, at which its receiver looks all the
  // time, is written when the lines behind it are here.
  const auto both_ends = [&](auto part) __attribute__((always_inline)) {
    decltype(part) last;
    std::memcpy(&part, from, sizeof part);
    std::memcpy(&last, from + bytes - sizeof last, sizeof last);
    std::memcpy(to + bytes - sizeof last, &last, sizeof last);
    std::memcpy(to, &part, sizeof part);
  };
  if (bytes > 64) {
    copy_long(to, from, bytes);
  } else if (bytes >= 32) {
    both_ends(std::array<std::byte, 32>{});
  } else if (bytes >= 16) {
    both_ends(std::array<std::byte, 16>{});
  } else if (bytes >= 8) {
    both_ends(std::uint64_t{});
  } else if (bytes >= 4) {
    both_ends(std::uint32_t{});
  } else if (bytes != 0) {
    to[0] = from[0];
    to[bytes / 2] = from[bytes / 2];
    to[bytes - 1] = from[bytes - 1];
  }
}

/// Calls visit(address, bytes) for the parts of [offset, offset + bytes) of `buffer`, in order,
/// while it returns true. Of one with a layout none are known.
template <typename Visit>
void for_each_part(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes, Visit&& visit) {
  if (buffer.extents == nullptr) {
    if (bytes != 0) {
      (void)visit(buffer.address + offset, bytes);
    }
    return;
  }
  if (buffer.layout() != nullptr) {
    return;
  }
  for (std::uint32_t i = 0; i < buffer.extent_count && bytes != 0; ++i) {
    const Extent& extent = buffer.extents[i];
    if (offset >= extent.bytes) {
      offset -= extent.bytes;
      continue;
    }
    const std::uint64_t part = std::min(extent.bytes - offset, bytes);
    if (!visit(extent.address + offset, part)) {
      return;
    }
    offset = 0;
    bytes -= part;
  }
}

/// Into a layout. laid_out_copies() counts them, of this process.
void copy_in_layout(const Layout& to, std::uint64_t offset, const std::byte* from,
                    std::uint64_t bytes) noexcept;
[[nodiscard]] std::uint32_t laid_out_copies() noexcept;

/// Stores `bytes` bytes at `offset` of `to`, which has room for them.
inline void copy_in(const Buffer& to, std::uint64_t offset, const std::byte* from,
                    std::uint64_t bytes) noexcept {
  if (const Layout* const layout = to.layout()) [[unlikely]] {
    copy_in_layout(*layout, offset, from, bytes);
    return;
  }
  for_each_part(to, offset, bytes, [&](std::byte* address, std::uint64_t part) {
    copy_bytes(address, from, part);
    from += part;
    return true;
  });
}

inline void copy_out(const Buffer& from, std::uint64_t offset, std::byte* to,
                     std::uint64_t bytes) noexcept {
  if (const Layout* const layout = from.layout()) [[unlikely]] {
    layout->copy_out(offset, to, bytes);
    return;
  }
  for_each_part(from, offset, bytes, [&](std::byte* address, std::uint64_t part) {
    copy_long(to, address, part);
    to += part;
    return true;
  });
}

/// The first `bytes` bytes; both have so many.
inline void copy_between(const Buffer& to, const Buffer& from, std::uint64_t bytes) noexcept {
  if (to.extents == nullptr) [[likely]] {
    copy_out(from, 0, to.address, bytes);
    return;
  }
  std::uint64_t offset = 0;
  if (from.layout() != nullptr) {
    std::array<std::byte, 2048> some;  // On a stack that may be small.
    for (std::uint64_t part = 0; offset != bytes; offset += part) {
      part = std::min<std::uint64_t>(some.size(), bytes - offset);
      copy_out(from, offset, some.data(), part);
      copy_in(to, offset, some.data(), part);
    }
    return;
  }
  for_each_part(from, 0, bytes, [&](std::byte* address, std::uint64_t part) {
    copy_in(to, offset, address, part);
    offset += part;
    return true;
  });
}

/// The parts of [offset, offset + bytes) as pieces, as many as there is room for. Returns how many;
/// `taken_bytes` says what they hold.
inline std::uint32_t pieces_of(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                               std::span<Piece> pieces, std::uint64_t& taken_bytes) noexcept {
  std::uint32_t count = 0;
  taken_bytes = 0;
  for_each_part(buffer, offset, bytes, [&](std::byte* address, std::uint64_t part) {
    if (count == pieces.size()) {
      return false;
    }
    pieces[count++] = {address, part};
    taken_bytes += part;
    return true;
  });
  return count;
}

}  // namespace sterna::net
