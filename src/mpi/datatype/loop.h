// Where the bytes of a datatype lie: loops over contiguous blocks, compiled so that walking them
// costs little and can start at any byte of the stream.
//
// A plan is an array of loops and an array of places; the loops that stand at the top are visited
// in order. A loop repeats, with a stride or at places of its own, a body: one contiguous block, a
// row of inner loops (adjacent in the array), or blocks of unlike lengths at places. So what is
// irregular costs 4 bytes a repetition where all are alike, 8 a block where they are not, not a
// loop each. Several loops may name the same row, and the same places.
//
// Invariants that the builder keeps: no loop has zero bytes; loops are nested at most 63 deep, for
// a type at least doubles the bytes of what it nests deeper; a loop over adjacent blocks is one
// block.
#pragma once

#include <cstdint>
#include <span>

namespace sterna::mpi {

enum class Basic : std::uint8_t;

struct Loop {
  std::int64_t displacement;  // Of the first repetition, from the place of what contains the loop.
  std::int64_t stride;        // From one repetition to the next. 0: there is one, or places say it.
  std::uint64_t count;        // Repetitions, at least 1.
  std::uint64_t block_bytes;  // Data bytes of one repetition, at least 1.
  std::uint64_t start;        // Data bytes of the loops before it in its row.
  std::uint32_t inner_first;  // Index in the plan: of a loop, or with has_blocks of a place.
  std::uint32_t inner_count;  // Loops or blocks of the body. 0: a contiguous block.
  Basic basic;                // What the block is made of; in a plan for copies it says nothing.
  bool is_listed = false;     // Repetition i is at places[places_first + i], not at i * stride.
  // The body is blocks: inner_count displacements, from the place of the body, then as many starts
  // in its bytes and the end of the last, as unsigned numbers.
  bool has_blocks = false;
  std::uint32_t places_first = 0;

  [[nodiscard]] constexpr std::uint64_t bytes() const noexcept { return count * block_bytes; }
};

/// One instance of a datatype. The loops belong to the datatype (or are static).
struct Plan {
  const Loop* loops = nullptr;
  std::uint32_t loop_count = 0;
  std::uint32_t top_first = 0;  // The top stands at the end: top_first + top_count == loop_count.
  std::uint32_t top_count = 0;
  std::uint64_t bytes = 0;  // Data bytes of one instance.
  const std::int32_t* places = nullptr;
  std::uint32_t place_count = 0;

  /// Loops without inner ones.
  [[nodiscard]] static constexpr Plan of(std::span<const Loop> row, std::int64_t bytes) noexcept {
    const auto count = static_cast<std::uint32_t>(row.size());
    return {row.data(), count, 0, count, static_cast<std::uint64_t>(bytes)};
  }
};

}  // namespace sterna::mpi
