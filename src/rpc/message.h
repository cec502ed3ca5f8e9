// The wire format of calls and replies between nodes.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/wire.h"

namespace sterna::rpc {

inline constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
inline constexpr std::size_t kErrorTextBytesMax = 4096;
inline constexpr std::uint32_t kPartsMax = 256;  // Of one call.
inline constexpr std::uint64_t kPartBytesMax = std::uint64_t{1} << 46;
inline constexpr std::uint8_t kAsRegistered = 0xff;
// A longer reply goes alone, from where it lies to where the caller wants it: that costs a message
// more, and saves two copies. The same holds for pieces of arguments.
inline constexpr std::size_t kReplyInlineBytes = 8192;

enum class MessageKind : std::uint8_t {
  request = 1,
  reply = 2,
  error = 3,
  begun = 4,  // How much has begun of what was posted: the total, in the place of an id.
  wanted = 5,  // The long pieces of a request, from `number` on, shall be sent after all.
};

// The other bits of the first word of a message, whose lowest byte says what it is.
inline constexpr int kIdBits = 56;

/// Who gets the reply: an id of the calling node, or the address of a call in a rank's slot.
struct ReplyTo {
  std::uint32_t node = 0;        // Not on the wire: who sent the request.
  std::uint32_t rank = kNoRank;  // kNoRank: the node.
  std::uint64_t id = 0;          // 0: nobody. Of kIdBits. Of `begun`: the total.
  std::uint64_t cookie = 0;      // Of a rank's call: proves that the address is still that call.
};

/// What the caller wants of the service's thread.
struct ThreadWish {
  std::uint8_t priority = kAsRegistered;
  std::uint32_t stack_kib = 0;  // 0: as registered.
  [[nodiscard]] bool is_none() const noexcept {
    return priority == kAsRegistered && stack_kib == 0;
  }
};

/// A long piece, which comes alone, from where it lies: it was packed before byte `offset` of the
/// body.
struct Part {
  std::uint32_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;  // Of pieces that are read: in the process of the caller.
};

/// `body` of a request: the arguments; of a reply: its bytes; of an error: code and text.
struct Message {
  MessageKind kind = MessageKind::request;
  std::uint64_t service = 0;  // Request: hash of the name.
  ReplyTo reply_to = {};
  ThreadWish wish = {};              // Request.
  std::uint32_t status = 0;          // Reply: the service's own word, 0 if it has none,
  std::string_view text = {};        // and why; none without one.
  std::uint32_t number = 0;          // Of the parts, if there are any. Of `wanted`: the first.
  bool are_read = false;             // Request: its parts are, by whoever gets it, and not sent.
  std::uint32_t tail_bytes = 0;      // Request: so many at the end of the body are one long piece.
  std::span<const Part> parts = {};  // To be encoded.
  std::uint32_t part_count = 0;      // Decoded: see part_of().
  std::span<const std::byte> raw_parts = {};
  std::span<const std::byte> body = {};
};

/// Everything but the body, which follows it. Of a request without more to say it has 16 bytes: the
/// arguments lie where they are aligned for any type, if the packet does, and need no copy.
///
/// On the stack of who sends: as short as most are, so that what is called next finds its part of
/// the stack in the cache.
class MessageHead {
 public:
  /// Throws std::bad_alloc, of a message of many parts. A long text without memory is cut.
  explicit MessageHead(const Message& message);
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {long_ != nullptr ? long_.get() : short_.data(), bytes_};
  }

 private:
  void add_more(const Message& message, std::uint8_t flags);

  static constexpr std::size_t kFixedBytes = 64;  // At most, but for text and parts.
  static constexpr std::size_t kShortBytes = 192;
  std::array<std::byte, kShortBytes> short_;
  std::unique_ptr<std::byte[]> long_;
  std::size_t bytes_;
};

/// The head of a message with nothing more to say: a request without wishes and parts, a reply with
/// nothing but its bytes.
class PlainHead {
 public:
  static PlainHead of_request(std::uint64_t id, std::uint64_t service) noexcept {
    return {id, MessageKind::request, service, 2};
  }
  static PlainHead of_reply(std::uint64_t id) noexcept { return {id, MessageKind::reply, 0, 1}; }
  /// Of the total kIdBits are sent.
  static PlainHead of_begun(std::uint64_t total) noexcept {
    return {total, MessageKind::begun, 0, 1};
  }
  /// Of a head that came apart from its body. Neither request nor reply: bytes() is empty.
  static PlainHead of(std::span<const std::byte> bytes) noexcept {
    PlainHead head{0, MessageKind::error, 0, 0};
    if (bytes.size() == sizeof head.words_) {
      // One by one, as they were written.
      std::memcpy(&head.words_[0], bytes.data(), sizeof(std::uint64_t));
      std::memcpy(&head.words_[1], bytes.data() + sizeof(std::uint64_t), sizeof(std::uint64_t));
      head.count_ = head.is_request() ? 2 : 0;
    } else if (bytes.size() == sizeof(std::uint64_t)) {
      std::memcpy(&head.words_[0], bytes.data(), sizeof(std::uint64_t));
      head.count_ = head.is_reply() ? 1 : 0;
    }
    return head;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span{words_}.first(count_));
  }
  [[nodiscard]] std::uint64_t first_word() const noexcept { return words_[0]; }
  [[nodiscard]] bool is_request() const noexcept {
    return (words_[0] & 0xff) == static_cast<std::uint64_t>(MessageKind::request);
  }
  [[nodiscard]] bool is_reply() const noexcept {
    return (words_[0] & 0xff) == static_cast<std::uint64_t>(MessageKind::reply);
  }
  [[nodiscard]] std::uint64_t id() const noexcept { return words_[0] >> (64 - kIdBits); }
  [[nodiscard]] std::uint64_t service() const noexcept { return words_[1]; }

 private:
  PlainHead(std::uint64_t id, MessageKind kind, std::uint64_t service, std::size_t count) noexcept
      : words_{id << (64 - kIdBits) | static_cast<std::uint64_t>(kind), service}, count_{count} {}

  std::array<std::uint64_t, 2> words_;
  std::size_t count_;
};

/// Into `message`, as it was made. False: it is none. All spans point into `bytes`.
[[nodiscard]] bool decode(std::span<const std::byte> bytes, Message& message) noexcept;
/// The same of a message whose head came apart from its body, or, if `head` is empty, did not.
[[nodiscard]] bool decode(std::span<const std::byte> head, std::span<const std::byte> body,
                          Message& message) noexcept;
/// Of a decoded message; offsets ascend and lie in the body, bytes are bounded.
[[nodiscard]] Part part_of(const Message& message, std::uint32_t index) noexcept;

[[nodiscard]] std::vector<std::byte> encode_error(const Error& error);
/// Whatever the bytes are, an Error comes out.
[[nodiscard]] Error decode_error(std::span<const std::byte> body);

}  // namespace sterna::rpc
