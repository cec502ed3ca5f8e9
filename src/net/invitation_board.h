// Receives that their senders may fill by themselves, as a node tells its peers in memory that they
// see (Driver::invitations). See transfer/invitations.h.
//
// A slot is free, open or taken, and counts its lives. Its owner opens it, and closes it; a peer
// takes it. Who changes `state` from open to something else, by compare-exchange, has the receive:
// the owner when another message is for it, or it is cancelled; the peer to write into it.
//
// A: open() writes the words, then `state` (release). A peer that reads `state` (acquire) sees
// those words, or words of a later life: then the slot was closed before, by the owner, and its
// exchange, which names the life, fails. What the program read from its buffer before it posted
// the receive is before A, and what the peer writes there after its exchange.
// All zero is a valid board without invitations. Its owner reads nothing of it but whether it was
// taken, so that a peer that goes wrong can spoil the job, but not the memory of this process.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/cpu.h"

namespace sterna::net {

/// What a sender needs to know that its message is the one for a receive, and to write it there.
struct Invitation {
  std::uint32_t receiver = 0;  // Ranks.
  std::uint32_t sender = 0;
  std::uint32_t context = 0;
  std::int32_t tag = 0;
  // Of the pair: messages before it were not for this receive. Of those from it on the first of
  // this context and tag is.
  std::uint32_t sequence = 0;
  std::uint32_t unused = 0;
  std::uint64_t address = 0;  // In the process of the receiver: room for `bytes` bytes.
  std::uint64_t bytes = 0;
  std::uint64_t receive_id = 0;  // In Endpoint::pending.
};

class InvitationBoard {
 public:
  static constexpr std::uint32_t kSlots = 16;

  // By the owner, one thread at a time.

  /// The slot is not open.
  void open(std::uint32_t slot, const Invitation& invitation) noexcept {
    Slot& at = slots_[slot];
    const auto words = std::bit_cast<Words>(invitation);
    for (std::size_t i = 0; i < words.size(); ++i) {
      at.words[i].store(words[i], std::memory_order_relaxed);
    }
    const std::uint64_t life = (at.state.load(std::memory_order_relaxed) | kStateMask) + 1;
    at.state.store(life | kOpen, std::memory_order_release);  // A
    opened_.store(opened_.load(std::memory_order_relaxed) | 1U << slot, std::memory_order_release);
  }
  /// The slot was opened. False: a peer has taken it. Either way it is open no more.
  [[nodiscard]] bool close(std::uint32_t slot) noexcept {
    opened_.store(opened_.load(std::memory_order_relaxed) & ~(1U << slot),
                  std::memory_order_relaxed);
    // Acquire, also in vain: who has taken it has read the words before they are written again.
    std::uint64_t state = slots_[slot].state.load(std::memory_order_acquire);
    return (state & kStateMask) == kOpen &&
           slots_[slot].state.compare_exchange_strong(
               state, state & ~kStateMask, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  // By peers, any thread.

  /// A hint.
  [[nodiscard]] bool is_empty() const noexcept {
    return opened_.load(std::memory_order_relaxed) == 0;
  }
  /// Takes the first invitation that `fits`. False: there is none.
  template <typename Fits>
  [[nodiscard]] bool take(Fits fits, Invitation& taken) noexcept {
    for (std::uint32_t left = opened_.load(std::memory_order_acquire); left != 0;
         left &= left - 1) {
      Slot& at = slots_[static_cast<std::uint32_t>(std::countr_zero(left)) % kSlots];
      std::uint64_t state = at.state.load(std::memory_order_acquire);
      if ((state & kStateMask) != kOpen) {
        continue;
      }
      Words words;
      for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = at.words[i].load(std::memory_order_relaxed);
      }
      taken = std::bit_cast<Invitation>(words);
      if (fits(taken) &&
          at.state.compare_exchange_strong(state, (state & ~kStateMask) | kTaken,
                                           std::memory_order_acq_rel, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr std::uint64_t kOpen = 1;
  static constexpr std::uint64_t kTaken = 2;
  static constexpr std::uint64_t kStateMask = 3;  // The life is above.
  using Words = std::array<std::uint64_t, sizeof(Invitation) / sizeof(std::uint64_t)>;
  static_assert(sizeof(Invitation) == sizeof(Words));

  struct alignas(kCacheLineBytes) Slot {
    std::atomic<std::uint64_t> state;
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words;
  };

  alignas(kCacheLineBytes) std::atomic<std::uint32_t> opened_;  // Bits. Written by the owner.
  std::array<Slot, kSlots> slots_;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace sterna::net
