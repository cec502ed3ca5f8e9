// The frames of messages between nodes, as they are made and read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "net/buffer.h"
#include "net/packets/packet.h"

namespace sterna::net {

/// The head of a short message as the handler gets it; at the sender, of up to kWordsBytes bytes.
/// Word by word: a copy of what was just written in parts would wait for them.
class HeadWords {
 public:
  explicit HeadWords(std::span<const std::byte> head) noexcept : bytes_{head.size()} {
    if (bytes_ == kWordsBytes) [[likely]] {
      std::memcpy(&words_[0], head.data(), 8);
      std::memcpy(&words_[1], head.data() + 8, 8);
    } else if (bytes_ == 8) {
      std::memcpy(&words_[0], head.data(), 8);
    } else {
      auto* const to = reinterpret_cast<std::byte*>(words_);
      for (std::size_t i = 0; i < std::min(bytes_, kWordsBytes); ++i) {
        to[i] = head[i];
      }
    }
  }
  explicit HeadWords(const FrameHeader& header) noexcept : bytes_{header.credit} {
    words_[0] = header.total_bytes;
    words_[1] = header.context | std::uint64_t{static_cast<std::uint32_t>(header.tag)} << 32;
  }
  void store(FrameHeader& header) const noexcept {
    header.flags = kFrameHasWords;
    header.credit = static_cast<std::uint32_t>(bytes_);
    header.total_bytes = words_[0];
    header.context = static_cast<std::uint32_t>(words_[1]);
    header.tag = static_cast<std::int32_t>(words_[1] >> 32);
  }
  /// Of a packet that has one. Its size is to be checked.
  [[nodiscard]] static HeadWords of(Packet packet) noexcept {
    HeadWords head;
    std::uint32_t count = 0;
    std::memcpy(&count, packet.data() + offsetof(FrameHeader, credit), sizeof count);
    std::memcpy(&head.words_[0], packet.data() + offsetof(FrameHeader, total_bytes), 8);
    std::memcpy(&head.words_[1], packet.data() + offsetof(FrameHeader, context), 8);
    head.bytes_ = count;
    return head;
  }
  [[nodiscard]] bool has_right_size() const noexcept { return bytes_ - 1 < kWordsBytes; }
  [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(bytes_); }
  [[nodiscard]] std::uint64_t word(int i) const noexcept { return words_[i]; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span{words_}).first(bytes_);
  }

 private:
  HeadWords() noexcept : bytes_{0} {}

  std::uint64_t words_[2] = {};
  std::size_t bytes_;
};
static_assert(sizeof(std::uint64_t[2]) == kWordsBytes);

struct NodeTarget {
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t handler;
};

/// The header of a whole message whose head lies in it (kFrameHasWords), written and read in words,
/// where fields are neighbours: what it begins with is known before it has come.
class WordsFrame {
 public:
  WordsFrame(std::uint32_t from, std::uint32_t to, std::uint32_t sequence) noexcept
      : begin_{word_of(std::uint32_t{static_cast<std::uint8_t>(FrameKind::node)} |
                           (std::uint32_t{kFrameHasWords} << 8),
                       from)},
        order_{word_of(to, sequence)} {}

  void write(std::byte* place, std::uint32_t handler, const HeadWords& head,
             std::uint32_t payload_bytes) const noexcept {
    put(place, 0, begin_);
    put(place, offsetof(FrameHeader, destination), order_);
    put(place, offsetof(FrameHeader, credit), head.count());
    put(place, offsetof(FrameHeader, context), head.word(1));
    put(place, offsetof(FrameHeader, payload_bytes), payload_bytes);
    put(place, offsetof(FrameHeader, total_bytes), head.word(0));
    put(place, offsetof(FrameHeader, cookie), std::uint64_t{handler});
  }

  /// Of that kind, from there, not forwarded.
  [[nodiscard]] bool begins(Packet packet) const noexcept {
    return packet.size() >= kHeaderBytes && get<std::uint64_t>(packet, 0) == begin_;
  }
  /// Of one that begins so: it is the next, and whole.
  [[nodiscard]] bool is_next(Packet packet) const noexcept {
    return get<std::uint64_t>(packet, offsetof(FrameHeader, destination)) == order_ &&
           get<std::uint32_t>(packet, offsetof(FrameHeader, payload_bytes)) ==
               packet.size() - kHeaderBytes;
  }
  [[nodiscard]] static std::uint64_t handler_of(Packet packet) noexcept {
    return get<std::uint64_t>(packet, offsetof(FrameHeader, cookie));
  }
  /// Of a message of one word: that, as far as it is one.
  [[nodiscard]] static bool is_word(Packet packet, std::uint64_t word) noexcept {
    return get<std::uint32_t>(packet, offsetof(FrameHeader, credit)) == sizeof word &&
           get<std::uint64_t>(packet, offsetof(FrameHeader, total_bytes)) == word;
  }

 private:
  [[nodiscard]] static std::uint64_t word_of(std::uint32_t low, std::uint32_t high) noexcept {
    return low | (std::uint64_t{high} << 32);
  }
  template <typename Word>
  static void put(std::byte* place, std::size_t at, Word word) noexcept {
    std::memcpy(place + at, &word, sizeof word);
  }
  template <typename Word>
  [[nodiscard]] static Word get(Packet packet, std::size_t at) noexcept {
    Word word;
    std::memcpy(&word, packet.data() + at, sizeof word);
    return word;
  }

  std::uint64_t begin_;
  std::uint64_t order_;
};
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(FrameHeader, source) == 4 && offsetof(FrameHeader, sequence) == 12 &&
              offsetof(FrameHeader, tag) == offsetof(FrameHeader, context) + 4);

/// The header of a frame of a message of `bytes` bytes, but for its number and its payload's
/// length.
[[gnu::always_inline]] inline void describe(FrameHeader& header, const NodeTarget& target,
                                            std::span<const std::byte> head, std::size_t bytes,
                                            bool has_words) noexcept {
  header.kind = FrameKind::node;
  header.source = target.from;
  header.destination = target.to;
  header.cookie = target.handler;
  if (has_words) [[likely]] {
    HeadWords{head}.store(header);
  } else {
    header.total_bytes = bytes;
  }
}

}  // namespace sterna::net
