// What a trace file is made of: one header, then chunks of records. Written by base/trace.cc while
// the program runs, in mapped memory; read by src/trace, which trusts none of it.
//
// A record is complete when its kind is not `none`: the kind is written last. What comes after a
// crash of the process is therefore a file with some records of kind `none`, nothing worse.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace sterna::trace {

inline constexpr std::uint64_t kFileMagic = 0x314543415254'5453;   // "STTRACE1"
inline constexpr std::uint64_t kChunkMagic = 0x314b4e554843'5453;  // "STCHUNK1"
inline constexpr std::size_t kFileHeaderBytes = 4096;
inline constexpr std::size_t kChunkBytes = std::size_t{256} << 10;
inline constexpr std::size_t kHostNameBytes = 64;
inline constexpr std::uint16_t kNoWorker = 0xffff;

/// What happened. `subject`, `value` and `extra` mean, in this order:
enum class Kind : std::uint8_t {
  none,      // Not written, or not to the end.
  name,      // A key; 8 bytes of its name; 4 more. `part` counts such records of one name.
  born,      // Thread; the thread that made it.
  ended,     // Thread.
  runs,      // Thread (kNobody: none) that its worker runs from now on; who ran before.
  wakes,     // Thread that became runnable; who did it.
  queued,    // Thread; the place whose run queue it joins.
  taken,     // Thread; the place whose run queue it leaves.
  stolen,    // Thread, taken from the private queue of another worker; which.
  sleeps,    // The worker sleeps in the kernel, until `awakes`.
  awakes,    // See `sleeps`.
  polled,    // -; events that a poll of the network found.
  sends,     // Sender and receiver (message_subject); message_value; the tag.
  receives,  // The same, where the message met its receive.
  calls,     // Thread or rank; the function that it enters.
  returns,   // Thread or rank; the function that it leaves.
  leaves,    // Rank that is on its way; to which node.
  arrives,   // Rank that is here now; from which node.
  stays,     // Rank that was on its way and goes on where it was; to which node it did not go.
  joins,     // Thread or bubble; the bubble that holds it from now on (kNobody: none).
  placed,    // Bubble (its end is `ended`); the place where what it holds goes, if not elsewhere.
};
inline constexpr std::uint8_t kKindLast = static_cast<std::uint8_t>(Kind::placed);

struct Record {
  std::uint64_t ticks;  // sterna::cycles().
  std::uint64_t subject;
  std::uint64_t value;
  std::uint32_t extra;
  std::uint16_t worker;  // Of the team; kNoWorker: another kernel thread.
  std::uint8_t part;
  std::uint8_t kind;  // Written last (release).
};
static_assert(sizeof(Record) == 32);

/// Keys name what records are about: the class in the top byte.
enum class KeyClass : std::uint8_t { thread = 1, rank, function, place, bubble };
[[nodiscard]] constexpr std::uint64_t key_of(KeyClass key_class, std::uint64_t number) noexcept {
  return (std::uint64_t{static_cast<std::uint8_t>(key_class)} << 56) |
         (number & ((std::uint64_t{1} << 56) - 1));
}
[[nodiscard]] constexpr KeyClass class_of(std::uint64_t key) noexcept {
  return static_cast<KeyClass>(key >> 56);
}
[[nodiscard]] constexpr std::uint64_t number_of(std::uint64_t key) noexcept {
  return key & ((std::uint64_t{1} << 56) - 1);
}
inline constexpr std::uint64_t kNobody = 0;

[[nodiscard]] constexpr std::uint64_t message_subject(std::uint32_t source,
                                                      std::uint32_t destination) noexcept {
  return (std::uint64_t{source} << 32) | destination;
}
/// Bytes of the message, and a part of its context, enough to tell communicators apart.
[[nodiscard]] constexpr std::uint64_t message_value(std::uint64_t bytes,
                                                    std::uint32_t context) noexcept {
  constexpr std::uint64_t kBytesMask = (std::uint64_t{1} << 40) - 1;
  return (bytes < kBytesMask ? bytes : kBytesMask) | (std::uint64_t{context} << 40);
}
[[nodiscard]] constexpr std::uint64_t message_bytes(std::uint64_t value) noexcept {
  return value & ((std::uint64_t{1} << 40) - 1);
}

/// When the cycle counter and CLOCK_MONOTONIC showed what at the same moment.
struct ClockPair {
  std::uint64_t ticks;
  std::uint64_t ns;
};

struct FileHeader {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t node;
  std::uint32_t node_count;
  std::uint32_t rank_count;
  std::uint32_t pid;
  std::uint32_t worker_count;  // 0: not known yet.
  ClockPair begin;
  double ns_per_tick;         // As calibrated at the start.
  std::uint64_t wired_up_ns;  // When all nodes had met: about the same moment in all of them.
  // Not 0: records are missing; the file would have become too large, or the disk was full.
  std::uint64_t refused_chunks;
  char host[kHostNameBytes];
  char boot_id[kHostNameBytes];  // Equal on two nodes: they have one clock.
};
inline constexpr std::uint32_t kFormatVersion = 1;
static_assert(sizeof(FileHeader) <= kFileHeaderBytes);

/// Records follow up to kChunkBytes.
struct ChunkHeader {
  std::uint64_t magic;
  std::uint32_t node;
  std::uint32_t lane;
  ClockPair begin;
};
static_assert(sizeof(ChunkHeader) == 32);

}  // namespace sterna::trace
