// The format external32 of the standard: big-endian, IEEE, the same on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "mpi/datatype/datatype.h"

namespace sterna::mpi {

/// Bytes of one instance in external32.
[[nodiscard]] std::uint64_t external_bytes(const Datatype& type) noexcept;

/// Converts all of the buffer; `stream` must have room: count * external_bytes(). Returns what was
/// written.
std::uint64_t pack_external(const TypedBuffer& from, std::byte* stream) noexcept;
/// The reverse, from a stream of that length, whatever it holds.
std::uint64_t unpack_external(const TypedBuffer& into, const std::byte* stream) noexcept;

}  // namespace sterna::mpi
