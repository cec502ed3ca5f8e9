// The wire format of calls and replies between nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/wire.h"

namespace sterna::rpc {

inline constexpr std::uint32_t kNoRank = ~std::uint32_t{0};
inline constexpr std::size_t kErrorTextBytesMax = 4096;

enum class MessageKind : std::uint8_t { request = 1, reply = 2, error = 3 };

/// Who gets the reply: an id of the calling node, or the address of a call in a rank's slot.
struct ReplyTo {
  std::uint32_t node = 0;
  std::uint32_t rank = kNoRank;  // kNoRank: the node.
  std::uint64_t id = 0;          // 0: nobody.
  std::uint64_t cookie = 0;      // Of a rank's call: proves that the address is still that call.
};

/// `body` of a request: the arguments; of a reply: its bytes; of an error: code and text.
struct Message {
  MessageKind kind = MessageKind::request;
  std::uint64_t service = 0;  // Request: hash of the name.
  ReplyTo reply_to;           // Request, reply and error: `id` and so on.
  std::span<const std::byte> body;
};

[[nodiscard]] std::vector<std::byte> encode(const Message& message);
/// malformed if it is none; `body` points into `bytes`.
[[nodiscard]] Result<Message> decode(std::span<const std::byte> bytes) noexcept;

[[nodiscard]] std::vector<std::byte> encode_error(const Error& error);
/// Whatever the bytes are, an Error comes out.
[[nodiscard]] Error decode_error(std::span<const std::byte> body);

}  // namespace sterna::rpc
