// Kernel threads of the runtime itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <pthread.h>

namespace sterna::threads {

/// What a new kernel thread of the runtime does with signals.
enum class Signals : std::uint8_t {
  of_maker,  // As who makes it: it runs the program's threads.
  faults,  // Those that its own instructions raise, no others: they are for the program's threads.
};

/// As sched_setaffinity takes it.
using ProcessorMask = std::array<std::uint64_t, 8192 / 64>;

/// A kernel thread to be made.
struct KernelThread {
  std::size_t stack_bytes;
  void* (*main)(void*);
  void* argument;
  Signals signals = Signals::of_maker;
  // It never runs elsewhere: one that has to bind itself first may wait for that where a worker of
  // real-time priority computes. None, or not allowed: those of its maker.
  std::optional<ProcessorMask> processors = {};
};

/// Makes one, to be joined. Returns 0, or the error of pthread_create; `made` is then undefined.
[[nodiscard]] int start_kernel_thread(pthread_t& made, const KernelThread& thread) noexcept;

}  // namespace sterna::threads
