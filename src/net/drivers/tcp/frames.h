// Packets in a byte stream: a 32-bit little-endian length, then the bytes; kEndMark as length says
// that the sender closes in good order, kPaddingMark with a number below 256 in its last byte that
// so many bytes of nothing follow. Packets are handed over where they were received: in the memory
// of the reader or, if they are long and the sink knows it (PacketSink::place), where their bytes
// belong.
//
// For that the reader must not receive what it does not know yet: into an empty memory it takes few
// bytes, unless what came into it last was long and had no place; where that had one, as many as a
// short packet and the head of another; and behind a packet that has its place only as many as tell
// what the next one is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/check.h"
#include "net/buffer.h"
#include "net/driver.h"

namespace sterna::net::tcp {

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::uint32_t kEndMark = 0xffffffff;
inline constexpr std::uint32_t kPaddingMark = 0xfffe0000;
inline constexpr std::uint32_t kPaddingBytesMax = 0xff;           // Behind a mark.
inline constexpr std::size_t kStartBytesMax = 127 + kLengthBytes;  // Padding as we send it, length.
inline constexpr std::size_t kLeadBytes = 384;            // Of short packets before a long one.
inline constexpr std::size_t kFirstBytes = 20 << 10;      // Received into an empty memory at most,
inline constexpr std::size_t kFirstBytesMax = 128 << 10;  // or up to here: see first_bytes_.
inline constexpr std::size_t kPlacedBytesMin = 8 << 10;   // Shorter packets are copied.

/// How many bytes of padding, its mark among them, go before a packet of which a long piece lies at
/// `address` and is sent behind `before` other bytes; 0: none.
///
/// The kernel copies with `rep movsb`, which may take twice as long, on Zen 3 ten times, where its
/// target lies 1 to 63 bytes behind its source by the last 12 bits of their addresses: each load
/// then looks as if it hung on a store just before it. What is sent while nothing is under way
/// begins on a page; so memory of malloc's, 16 bytes behind the beginning of one, lies badly under
/// a packet's header. And who receives copies the other way, mostly to memory that lies like ours.
[[nodiscard]] inline std::size_t padding_before(std::size_t before,
                                                const std::byte* address) noexcept {
  constexpr std::size_t kNear = 64;
  constexpr std::size_t kPage = 4096;
  const std::size_t distance = (before - reinterpret_cast<std::uintptr_t>(address)) % kPage;
  if (distance == 0 || (distance >= kNear && distance <= kPage - kNear)) {
    return 0;
  }
  return std::max((kNear - distance) % kPage, kLengthBytes);
}

/// What goes before the bytes of a packet.
class FrameStart {
 public:
  /// `padding_bytes` as padding_before() has it.
  FrameStart(std::uint32_t packet_bytes, std::size_t padding_bytes) noexcept
      : bytes_{padding_bytes + kLengthBytes} {
    if (padding_bytes != 0) {
      const auto behind = static_cast<std::uint32_t>(padding_bytes - kLengthBytes);
      const std::uint32_t mark = kPaddingMark | behind;
      std::memcpy(memory_, &mark, kLengthBytes);
      std::memset(memory_ + kLengthBytes, 0, behind);
    }
    std::memcpy(memory_ + padding_bytes, &packet_bytes, kLengthBytes);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {memory_, bytes_}; }

 private:
  std::size_t bytes_;
  std::byte memory_[kStartBytesMax];  // The first bytes_ are set.
};

/// The receiving end of one stream. One thread at a time.
class FrameReader {
 public:
  enum class Next : std::uint8_t {
    packet,     // One more packet.
    placed,     // The packet that has a place of its own is there: end_placed().
    more,       // The rest has not arrived.
    end,        // The sender has closed in good order.
    malformed,  // Not our format: nothing of this stream can be trusted any more.
  };

  FrameReader() noexcept = default;

  /// False: no memory. `packet_bytes_max` is the bound that both sides keep.
  /// Again: a new stream.
  [[nodiscard]] bool init(std::size_t packet_bytes_max) noexcept {
    begin_ = end_ = 0;
    placed_bytes_ = 0;
    first_bytes_ = kFirstBytes;
    if (memory_ != nullptr && packet_bytes_max == packet_bytes_max_) {
      return true;
    }
    packet_bytes_max_ = packet_bytes_max;
    capacity_ = 2 * (packet_bytes_max + kLengthBytes);
    // Not touched before it is needed. On a page, as what comes when nothing was under way: see
    // padding_before().
    memory_.reset(static_cast<std::byte*>(::operator new(capacity_, kPage, std::nothrow)));
    return memory_ != nullptr;
  }

  /// Where to receive to; never empty after next() has said `more`. Not while has_place().
  [[nodiscard]] std::span<std::byte> room() noexcept {
    if (begin_ == end_) {
      begin_ = end_ = 0;  // Small packets stay in the same few cache lines.
      whole_bytes_ = 0;
      return {memory_.get(), std::min(capacity_, first_bytes_)};
    }
    if (capacity_ - begin_ < packet_bytes_max_ + kLengthBytes) {
      std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    std::size_t most = capacity_ - end_;
    if (end_ - begin_ >= kLengthBytes) {  // The rest of this packet, and the beginning of others.
      const std::size_t whole = kLengthBytes + std::size_t{begun_bytes()};
      most = std::min(most, whole - std::min(whole, end_ - begin_) + kFirstBytes);
    }
    return {memory_.get() + end_, most};
  }
  void filled(std::size_t bytes) noexcept {
    check(bytes <= capacity_ - end_, "no more is received than there was room for");
    end_ += bytes;
  }

  /// Takes the next packet; it is valid until the next room().
  [[nodiscard]] Next next(Packet& packet) noexcept {
    if (has_place()) {
      return missing_bytes() == 0 ? Next::placed : Next::more;
    }
    while (holds_padding()) {
      begin_ += kLengthBytes + begun_bytes();
    }
    if (end_ - begin_ < kLengthBytes) {
      return Next::more;
    }
    const std::uint32_t bytes = begun_word();
    if (is_padding(bytes)) {
      return Next::more;
    }
    if (bytes == kEndMark) {
      return Next::end;
    }
    if (bytes == 0 || bytes > packet_bytes_max_) {
      return Next::malformed;
    }
    if (end_ - begin_ < kLengthBytes + bytes) {
      return Next::more;
    }
    packet = {memory_.get() + begin_ + kLengthBytes, bytes};
    begin_ += kLengthBytes + bytes;
    whole_bytes_ += kStartBytesMax + bytes;
    if (whole_bytes_ > kLeadBytes) {
      first_bytes_ = std::clamp(whole_bytes_, kFirstBytes, kFirstBytesMax);
    }
    return Next::packet;
  }

  /// After `more`: the packet that has begun is long and its head is here. Then, and while
  /// has_place(), head() and packet_bytes() tell of it.
  [[nodiscard]] bool may_have_place() const noexcept {
    return !has_place() && end_ - begin_ >= kLengthBytes + kPacketHeadBytes &&
           begun_bytes() >= kPlacedBytesMin;
  }
  [[nodiscard]] bool has_place() const noexcept { return placed_bytes_ != 0; }
  [[nodiscard]] Packet head() const noexcept {
    return {has_place() ? head_ : memory_.get() + begin_ + kLengthBytes, kPacketHeadBytes};
  }
  [[nodiscard]] std::uint32_t packet_bytes() const noexcept {
    return has_place() ? placed_bytes_ : begun_bytes();
  }

  /// Gives what follows the head of the packet that has begun its place, which has room for it all.
  void begin_placed(std::span<std::byte> place) noexcept {
    check(place.size() == packet_bytes() - kPacketHeadBytes, "a place is as long as its bytes");
    const std::byte* const from = head().data();
    std::memcpy(head_, from, kPacketHeadBytes);
    placed_bytes_ = begun_bytes();
    arrived_bytes_ = end_ - begin_ - kLengthBytes - kPacketHeadBytes;
    copy_long(place.data(), from + kPacketHeadBytes, arrived_bytes_);
    begin_ = end_ = 0;
    whole_bytes_ = 0;
    first_bytes_ = kLeadBytes;
  }
  /// Of the packet with a place; they are not here yet.
  [[nodiscard]] std::size_t missing_bytes() const noexcept {
    return placed_bytes_ - kPacketHeadBytes - arrived_bytes_;
  }
  /// The part of the place that is still to be filled.
  [[nodiscard]] std::span<std::byte> missing(std::span<std::byte> place) const noexcept {
    check(place.size() == placed_bytes_ - kPacketHeadBytes, "a place is as long as its bytes");
    return place.subspan(arrived_bytes_);
  }
  /// Where to receive what comes behind the missing bytes.
  [[nodiscard]] std::span<std::byte> room_behind() noexcept {
    return {memory_.get(), kLengthBytes + kPacketHeadBytes};
  }
  /// So many bytes came, first to missing(), then to room_behind().
  void filled_placed(std::size_t bytes) noexcept {
    const std::size_t placed = std::min(bytes, missing_bytes());
    arrived_bytes_ += placed;
    filled(bytes - placed);
  }
  /// Where to receive missing bytes that go elsewhere from here, or nowhere.
  [[nodiscard]] std::span<std::byte> room_between() noexcept {
    return {memory_.get(), std::min(missing_bytes(), capacity_)};
  }
  void passed_between(std::size_t bytes) noexcept {
    check(bytes <= missing_bytes(), "only what is missing is passed on");
    arrived_bytes_ += bytes;
  }
  /// next() finds nothing before more is received.
  [[nodiscard]] bool holds_no_packet() const noexcept {
    const std::size_t held = end_ - begin_;
    return has_place() ? missing_bytes() != 0
                       : held < kLengthBytes || held < kLengthBytes + begun_bytes();
  }
  /// After `placed`: the stream goes on.
  void end_placed() noexcept { placed_bytes_ = 0; }

 private:
  [[nodiscard]] static bool is_padding(std::uint32_t word) noexcept {
    return (word & ~kPaddingBytesMax) == kPaddingMark;
  }
  [[nodiscard]] std::uint32_t begun_word() const noexcept {
    std::uint32_t word;
    std::memcpy(&word, memory_.get() + begin_, kLengthBytes);
    return word;
  }
  /// The length of the packet, or of the padding, at begin_, which next() has looked at.
  [[nodiscard]] std::uint32_t begun_bytes() const noexcept {
    const std::uint32_t word = begun_word();
    return is_padding(word) ? word & kPaddingBytesMax : word;
  }
  /// All of it is here.
  [[nodiscard]] bool holds_padding() const noexcept {
    const std::size_t held = end_ - begin_;
    return held >= kLengthBytes && is_padding(begun_word()) &&
           held >= kLengthBytes + begun_bytes();
  }

  static constexpr std::align_val_t kPage{4096};
  struct Delete {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, kPage); }
  };

  std::unique_ptr<std::byte[], Delete> memory_;
  std::size_t capacity_ = 0;
  std::size_t packet_bytes_max_ = 0;
  std::size_t begin_ = 0;  // Bytes [begin_, end_) are received and not handed over.
  std::size_t end_ = 0;
  // Received into an empty memory at most: as much as the packets that came there last had
  // together, if they had no places; one that is like them then takes a call less. After one with a
  // place kLeadBytes, while no more come: what is received before the next one is copied.
  std::size_t first_bytes_ = kFirstBytes;
  std::size_t whole_bytes_ = 0;  // Since the memory was empty.
  // Of the packet with a place; 0: there is none. Nothing else is in memory_ before all of it came.
  std::uint32_t placed_bytes_ = 0;
  std::size_t arrived_bytes_ = 0;  // Of those behind its head.
  std::byte head_[kPacketHeadBytes]{};
};

}  // namespace sterna::net::tcp
