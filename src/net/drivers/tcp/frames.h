// Packets in a byte stream: a 32-bit little-endian length, then the bytes; kEndMark as length says
// that the sender closes in good order. Packets are handed over where they were received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>

#include "base/check.h"
#include "net/driver.h"

namespace sterna::net::tcp {

inline constexpr std::size_t kLengthBytes = 4;
inline constexpr std::uint32_t kEndMark = 0xffffffff;

/// The receiving end of one stream. One thread at a time.
class FrameReader {
 public:
  enum class Next : std::uint8_t {
    packet,     // One more packet.
    more,       // The rest has not arrived.
    end,        // The sender has closed in good order.
    malformed,  // Not our format: nothing of this stream can be trusted any more.
  };

  FrameReader() noexcept = default;

  /// False: no memory. `packet_bytes_max` is the bound that both sides keep.
  /// Again: a new stream.
  [[nodiscard]] bool init(std::size_t packet_bytes_max) noexcept {
    begin_ = end_ = 0;
    if (memory_ != nullptr && packet_bytes_max == packet_bytes_max_) {
      return true;
    }
    packet_bytes_max_ = packet_bytes_max;
    capacity_ = 2 * (packet_bytes_max + kLengthBytes);
    memory_.reset(new (std::nothrow) std::byte[capacity_]);  // Not touched before it is needed.
    return memory_ != nullptr;
  }

  /// Where to receive to; never empty after next() has said `more`.
  [[nodiscard]] std::span<std::byte> room() noexcept {
    if (begin_ == end_) {
      begin_ = end_ = 0;  // Small packets stay in the same few cache lines.
    } else if (capacity_ - begin_ < packet_bytes_max_ + kLengthBytes) {
      std::memmove(memory_.get(), memory_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    return {memory_.get() + end_, capacity_ - end_};
  }
  void filled(std::size_t bytes) noexcept {
    check(bytes <= capacity_ - end_, "no more is received than there was room for");
    end_ += bytes;
  }

  /// Takes the next packet; it is valid until the next room().
  [[nodiscard]] Next next(Packet& packet) noexcept {
    if (end_ - begin_ < kLengthBytes) {
      return Next::more;
    }
    std::uint32_t bytes;
    std::memcpy(&bytes, memory_.get() + begin_, kLengthBytes);
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
    return Next::packet;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t capacity_ = 0;
  std::size_t packet_bytes_max_ = 0;
  std::size_t begin_ = 0;  // Bytes [begin_, end_) are received and not handed over.
  std::size_t end_ = 0;
};

}  // namespace sterna::net::tcp
