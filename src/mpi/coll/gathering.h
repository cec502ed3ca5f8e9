// A meeting in memory that processes share: each brings a few bytes, the last to come makes a
// result of them, all take it. Nobody sends anything, and who waits is waited for by nobody.
//
//   member: writes its seat; arrived + 1 (A); reads `ended` until it has changed (B); takes
//   last:   sees that all have arrived (A); writes the result; arrived = 0; ended + 1 (B)
//
// There are two sets of seats and results, used in turn: who comes to the next meeting has taken
// the result of this one, and the next but one does not begin before all have come to the next. So
// nothing is written while somebody may read it.
//
// No pointer lies here. What another process wrote is copied, never followed. More arrivals than
// there are members say that a process has written here which should not (is_spoilt): then nobody
// lets go, and who waits leaves with an error, as who comes later.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/cpu.h"

namespace sterna::mpi {

/// All zero: a gathering of nobody.
class Gathering {
 public:
  static constexpr std::uint32_t kMembersMax = 128;
  static constexpr std::uint32_t kBytesMax = 48;

  /// The one of the members that agree on `key`, found or taken; null: all are taken. What it says
  /// once it says always, to all members: a gathering that was taken stays so.
  [[nodiscard]] static Gathering* find(std::span<Gathering> all, std::uint32_t key) noexcept {
    for (Gathering& one : all) {
      // Relaxed: all that its members read of it is zero, or they have written it.
      std::uint32_t owner = one.owner_.load(std::memory_order_relaxed);
      if (owner == 0 &&
          one.owner_.compare_exchange_strong(owner, key + 1, std::memory_order_relaxed)) {
        return &one;
      }
      if (owner == key + 1) {
        return &one;
      }
    }
    return nullptr;
  }

  struct Arrival {
    std::uint32_t number;  // Of the meeting, to be given to the functions below.
    bool is_last;          // Makes the result, and lets the others go.
  };
  /// `what`: equal in all members, else they do not agree. `bytes` has at most kBytesMax.
  Arrival arrive(std::uint32_t member, std::uint32_t count, std::uint32_t what,
                 std::span<const std::byte> bytes) noexcept {
    // Relaxed: it does not change before we have arrived, and we saw the last change (B).
    const std::uint32_t number = ended_.load(std::memory_order_relaxed);
    Seat& seat = seats_[number % 2][member];
    seat.what = what;
    copy(seat.bytes.data(), bytes.data(), bytes.size());
    seat.is_asleep.store(0, std::memory_order_relaxed);
    const bool is_last = arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count;  // A
    return {number, is_last};
  }

  /// Nothing of `count` members looks so. At any time.
  [[nodiscard]] bool is_spoilt(std::uint32_t count) const noexcept {
    return arrived_.load(std::memory_order_relaxed) > count;
  }

  // Of the last one, before let_go().
  [[nodiscard]] std::uint32_t what_of(std::uint32_t number, std::uint32_t member) const noexcept {
    return seats_[number % 2][member].what;
  }
  void copy_bytes_of(std::uint32_t number, std::uint32_t member,
                     std::span<std::byte> into) const noexcept {
    copy(into.data(), seats_[number % 2][member].bytes.data(), into.size());
  }
  void set_result(std::uint32_t number, std::uint32_t error,
                  std::span<const std::byte> bytes) noexcept {
    results_[number % 2].error = error;
    copy(results_[number % 2].bytes.data(), bytes.data(), bytes.size());
  }
  /// Calls `wake(member)` for all that sleep.
  template <typename Wake>
  void let_go(std::uint32_t number, std::uint32_t count, Wake&& wake) noexcept {
    arrived_.store(0, std::memory_order_relaxed);  // Before B: nobody comes again earlier.
    // B; and sequentially consistent, against one that says it sleeps and then looks once more.
    ended_.store(number + 1, std::memory_order_seq_cst);
    for (std::uint32_t member = 0; member < count; ++member) {
      if (seats_[number % 2][member].is_asleep.load(std::memory_order_seq_cst) != 0) {
        wake(member);
      }
    }
  }

  // Of the others.
  [[nodiscard]] bool has_ended(std::uint32_t number) const noexcept {
    return ended_.load(std::memory_order_acquire) != number;  // B
  }
  /// From now on the last one wakes us. Then sleep, unless word() is not `number` any more.
  void say_asleep(std::uint32_t number, std::uint32_t member) noexcept {
    seats_[number % 2][member].is_asleep.store(1, std::memory_order_seq_cst);
  }
  [[nodiscard]] const std::atomic<std::uint32_t>& word() const noexcept { return ended_; }
  /// After the end, also by the last one. Returns the error.
  std::uint32_t take(std::uint32_t number, std::span<std::byte> into) const noexcept {
    copy(into.data(), results_[number % 2].bytes.data(), into.size());
    return results_[number % 2].error;
  }

 private:
  /// Members may bring nothing, from nowhere.
  static void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes != 0) {
      std::memcpy(to, from, bytes);
    }
  }

  struct alignas(kCacheLineBytes) Seat {
    std::uint32_t what;  // The member's, until it arrives.
    std::atomic<std::uint32_t> is_asleep;
    std::array<std::byte, kBytesMax> bytes;
  };
  struct alignas(kCacheLineBytes) Result {
    std::uint32_t error;  // The last one's, until it lets go.
    std::array<std::byte, kBytesMax> bytes;
  };

  alignas(kCacheLineBytes) std::atomic<std::uint32_t> owner_;
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> arrived_;
  alignas(kCacheLineBytes) std::atomic<std::uint32_t> ended_;
  std::array<Result, 2> results_;
  std::array<std::array<Seat, kMembersMax>, 2> seats_;
};

}  // namespace sterna::mpi
