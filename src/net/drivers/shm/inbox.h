// The inbox of a node: a bounded ring of cells with many producers and one consumer, lock-free.
//
// Producers: all nodes of the host. Consumer: the poller of the owner. Guarantee: a packet is taken
// once, whole; packets of one producer in the order sent; a producer that finds no room is told
// so at once. Source: the bounded queue of D. Vyukov, changed in one point: room is told by one
// counter of the consumer instead of a word in every cell, so the consumer never writes to a cell
// and a producer never reads one. A small packet then moves one cache line once.
//
// Tickets are numbers modulo 2^32; ticket t uses cell t % kCellCount. Memory order:
//   A: a producer that has won ticket t on `tail` writes cell t and stores its header with release;
//      the consumer loads it with acquire and sees turn t + 1: the payload is complete.
//   B: the consumer stores `taken` with release after it is done with the cells before it; a
//      producer that claims ticket t has loaded with acquire a `taken` > t - kCellCount: nobody
//      reads the cell any more.
//   C: a producer stores "I claim t" before its compare-exchange on `tail`, which releases it, and
//      takes that back, with release, after A. The consumer that finds ticket t taken and not
//      filled loads `tail` with acquire: whoever has won t shows its claim, or has filled the cell.
// A producer that is killed between claim and publish leaves a hole, at which the inbox stops. When
// the consumer knows of a death, the hole is nobody's that lives if no living producer claims it
// and the cell is still not filled: then it is passed over (ShmDriver::skip_abandoned).
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "base/other_process.h"
#include "net/drivers/shm/segment.h"

namespace sterna::net::shm {

/// The producing side towards one inbox. One thread at a time; one object a producer.
class InboxSender {
 public:
  /// `claim`: where this producer says what it is about to fill (Segment::claims of its own).
  InboxSender(Segment& segment, std::atomic<std::uint64_t>& claim) noexcept
      : segment_{&segment}, claim_{&claim} {}

  /// A hint: what it says may be over at once.
  [[nodiscard]] bool has_room() noexcept {
    return !is_full(segment_->tail.load(std::memory_order_relaxed));
  }

  /// Takes the next ticket; false: the inbox is full. publish() must follow.
  [[nodiscard]] bool try_claim(std::uint32_t& ticket) noexcept {
    std::uint32_t tail = segment_->tail.load(std::memory_order_relaxed);
    do {
      if (is_full(tail)) [[unlikely]] {
        claim_->store(0, std::memory_order_relaxed);
        return false;
      }
      claim_->store(kClaimed | tail, std::memory_order_relaxed);
    } while (!segment_->tail.compare_exchange_weak(tail, tail + 1, std::memory_order_release,  // C.
                                                   std::memory_order_relaxed));
    ticket = tail;
    return true;
  }
  /// By who sends packets like this one behind each other: calls the lines of a cell that comes
  /// soon here, from the cache of the consumer, which has read it: the locked instruction of a
  /// claim waits for all stores before it. Not for answers: the consumer looks at its next cell
  /// already, and what it looks at would only go to and fro once more.
  void fetch_after(std::uint32_t ticket, std::uint32_t kind) noexcept {
    const Cell& cell = segment_->cell(ticket + kWrittenAhead);
    for (std::uint32_t line = 0; line < lines_of(kind); ++line) {
      fetch_for_writing(reinterpret_cast<const std::byte*>(&cell) + line * kCacheLineBytes);
    }
  }

  /// By who is answered: the lines of the next cell behind its first one, which alone the consumer
  /// looks at before it is filled.
  void fetch_rest(std::uint32_t ticket, std::uint32_t kind) noexcept {
    const Cell& cell = segment_->cell(ticket + 1);
    for (std::uint32_t line = 1; line < lines_of(kind); ++line) {
      fetch_for_writing(reinterpret_cast<const std::byte*>(&cell) + line * kCacheLineBytes);
    }
  }

  /// Where the claimed ticket's payload goes.
  [[nodiscard]] std::byte* payload(std::uint32_t ticket) noexcept {
    return segment_->cell(ticket).payload.data();
  }

  /// `kind` is the number of inline bytes, or kBulk.
  void publish(std::uint32_t ticket, std::uint32_t sender, std::uint32_t kind) noexcept {
    const std::uint64_t header =
        (ticket + 1U) | (std::uint64_t{sender} << 32) | (static_cast<std::uint64_t>(kind) << 48);
    note_sent();
    segment_->cell(ticket).header.store(header, std::memory_order_release);  // A.
    claim_->store(0, std::memory_order_release);                             // C.
  }

 private:
  static constexpr std::uint32_t kWrittenAhead = 4;
  [[nodiscard]] bool is_full(std::uint32_t tail) noexcept {
    // Signed: a stale `tail` may lie behind `taken`; then the exchange fails and we look again.
    const auto used = [&] { return static_cast<std::int32_t>(tail - taken_seen_); };
    if (used() < static_cast<std::int32_t>(kCellCount)) [[likely]] {
      return false;
    }
    taken_seen_ = segment_->taken.load(std::memory_order_acquire);  // Pairs with B.
    return used() >= static_cast<std::int32_t>(kCellCount);
  }

  Segment* segment_;
  std::atomic<std::uint64_t>* claim_;
  std::uint32_t taken_seen_ = 0;  // A past value of segment_->taken.
};

/// The consuming side. One thread at a time; one object an inbox.
class InboxReceiver {
 public:
  struct Head {
    std::uint32_t sender;  // Local index; not checked.
    std::uint32_t kind;    // Inline bytes, or kBulk; not checked.
    const std::byte* payload;
  };

  explicit InboxReceiver(Segment& segment) noexcept
      : segment_{&segment}, taken_{segment.taken.load(std::memory_order_relaxed)} {}

  /// Looks at the oldest packet; false: there is none.
  [[nodiscard]] bool peek(Head& head) const noexcept {
    const Cell& cell = segment_->cell(taken_);
    const std::uint64_t header = cell.header.load(std::memory_order_acquire);  // Pairs with A.
    if (static_cast<std::uint32_t>(header) != taken_ + 1) {
      return false;
    }
    note_received();
    head = {.sender = static_cast<std::uint32_t>(header >> 32) & 0xffff,
            .kind = static_cast<std::uint32_t>(header >> 48),
            .payload = cell.payload.data()};
    // All its lines, and the first of the next one, are on their way while this one is read.
    fetch_for_reading(&segment_->cell(taken_ + 1));
    for (std::uint32_t line = 1; line < lines_of(head.kind); ++line) {
      fetch_for_reading(reinterpret_cast<const std::byte*>(&cell) + line * kCacheLineBytes);
    }
    return true;
  }

  /// Calls the packet here that comes so many after the oldest one, and has been written: by its
  /// first lines, as many as that one has.
  void fetch_ahead(std::uint32_t cells, std::uint32_t kind) const noexcept {
    const Cell& cell = segment_->cell(taken_ + cells);
    for (std::uint32_t line = 0; line < std::min(lines_of(kind), kLinesAhead); ++line) {
      fetch_for_reading(reinterpret_cast<const std::byte*>(&cell) + line * kCacheLineBytes);
    }
  }

  /// The ticket that comes next.
  [[nodiscard]] std::uint32_t place() const noexcept { return taken_; }

  /// Done with the packet that peek() showed. Room is told with publish_room().
  void pop() noexcept { ++taken_; }

  void publish_room() noexcept {
    segment_->taken.store(taken_, std::memory_order_release);  // B.
  }

  /// The oldest ticket, if a producer has taken it and not filled its cell.
  [[nodiscard]] bool find_hole(std::uint32_t& ticket) const noexcept {
    ticket = taken_;
    Head head;
    return segment_->tail.load(std::memory_order_acquire) != taken_ && !peek(head);  // C.
  }

  /// Nobody of ours takes tickets beyond the cells that are free: another process has written here.
  [[nodiscard]] bool is_overrun() const noexcept {
    // Acquire: as find_hole(). A sender has loaded `taken`, which is never ahead of taken_.
    return segment_->tail.load(std::memory_order_acquire) - taken_ > kCellCount;
  }

  /// False: what senders read of our room was written by somebody else.
  [[nodiscard]] bool has_told_room() const noexcept {
    return segment_->taken.load(std::memory_order_relaxed) == taken_;
  }

  /// Whether every ticket before `ticket` is done.
  [[nodiscard]] bool has_passed(std::uint32_t ticket) const noexcept {
    return static_cast<std::int32_t>(taken_ - ticket) >= 0;
  }

  /// The next ticket that a sender will take.
  [[nodiscard]] std::uint32_t tail() const noexcept {
    return segment_->tail.load(std::memory_order_relaxed);
  }
  /// The same, no further than a ticket can be that is not done.
  [[nodiscard]] std::uint32_t bounded_tail() const noexcept {
    return taken_ + std::min(tail() - taken_, kCellCount);
  }

 private:
  static constexpr std::uint32_t kLinesAhead = 2;  // The first ones; for more there is time.

  Segment* segment_;
  std::uint32_t taken_;  // The truth; segment_->taken follows it.
};

}  // namespace sterna::net::shm
