// Recording what happens, for a timeline. Off, a trace point costs one load and a branch that is
// always predicted, or nothing at all where a branch was there already
// (threads/observation/traced.h).
//
// On, a record is a reading of the cycle counter, one compare-and-swap on a line that is the kernel
// thread's own as a rule, and 32 bytes written into a mapped file: about 20 ns. No lock, no
// allocation, nothing thread-local, no switch: right on any stack and any thread pointer. One in
// 8,000 records makes a system call, which reserves the next chunk of the disk. A process that is
// killed leaves all its records behind, for the file's pages belong to the kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/trace_format.h"

namespace sterna::trace {

namespace detail {
// One a process, since trace points are everywhere. Relaxed: who reads an old value records a
// little less.
extern constinit std::atomic<bool> is_on;
void write(Kind kind, std::uint16_t worker, std::uint64_t subject, std::uint64_t value,
           std::uint32_t extra) noexcept;
}  // namespace detail

[[nodiscard]] inline bool is_on() noexcept {
  return detail::is_on.load(std::memory_order_relaxed);
}

struct Options {
  std::string path;  // Of the file, which is made anew.
  std::uint64_t bytes_max = 0;
  std::uint32_t node = 0;
  std::uint32_t node_count = 1;
  std::uint32_t rank_count = 1;
};

/// From now on points record. Once a process at a time, by the kernel thread that opens the layers.
[[nodiscard]] Result<> start(const Options& options);
/// All nodes have met, right now: what clocks of different hosts are compared by.
void note_wire_up() noexcept;
void note_workers(std::uint32_t count) noexcept;
/// No more records. The file stays mapped: a kernel thread may just be writing its last one.
void stop() noexcept;

/// Call it when is_on() only, off the fast path.
[[gnu::cold, gnu::noinline]] inline void record(Kind kind, std::uint16_t worker,
                                                std::uint64_t subject, std::uint64_t value = 0,
                                                std::uint32_t extra = 0) noexcept {
  detail::write(kind, worker, subject, value, extra);
}
/// What people shall read for `key`; at most 120 bytes.
void name(std::uint64_t key, std::string_view text) noexcept;

}  // namespace sterna::trace
