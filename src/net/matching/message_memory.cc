// The memory of messages that wait for their receive: short ones lie in blocks of one size, which
// their rank uses again; long ones of a rank that never moves come from blocks of the process.
#include <algorithm>
#include <new>

#include "memory/heap.h"
#include "memory/kept_blocks.h"
#include "net/matching/matching.h"

namespace sterna::net {
namespace {

std::size_t message_bytes(std::uint64_t payload_bytes) noexcept {
  return sizeof(Message) + std::max<std::uint64_t>(payload_bytes, kSmallMessageBytes);
}

/// Its memory is not used again here.
void give_back(Endpoint& endpoint, Message* message) noexcept {
  if (endpoint.blocks != nullptr) {
    endpoint.blocks->deallocate(message, message_bytes(message->held_bytes));
  } else {
    endpoint.heap->deallocate(message);
  }
}

}  // namespace

Message* create_message(Endpoint& endpoint, std::uint64_t payload_bytes) noexcept {
  const bool is_small = payload_bytes <= kSmallMessageBytes;
  void* memory = nullptr;
  if (is_small && endpoint.free_messages != nullptr) {
    memory = endpoint.free_messages;
    endpoint.free_messages = endpoint.free_messages->all_next;
    --endpoint.free_message_count;
  } else {
    const std::size_t bytes = message_bytes(payload_bytes);
    memory = endpoint.blocks != nullptr ? endpoint.blocks->allocate(bytes)
                                        : endpoint.heap->allocate(bytes);
  }
  if (memory == nullptr) {
    return nullptr;
  }
  auto* message = ::new (memory) Message;
  message->is_small = is_small;
  message->payload = payload_bytes != 0 ? reinterpret_cast<std::byte*>(message + 1) : nullptr;
  message->held_bytes = payload_bytes;
  endpoint.unexpected_bytes += payload_bytes;
  if (endpoint.unexpected_bytes > endpoint.unexpected_bytes_peak) {
    endpoint.unexpected_bytes_peak = endpoint.unexpected_bytes;
  }
  return message;
}

void free_message(Endpoint& endpoint, Message* message) noexcept {
  constexpr std::uint32_t kFreeCountMax = 256;
  endpoint.unexpected_bytes -= message->held_bytes;
  if (message->is_small && endpoint.free_message_count < kFreeCountMax) {
    message->all_next = endpoint.free_messages;
    endpoint.free_messages = message;
    ++endpoint.free_message_count;
    return;
  }
  give_back(endpoint, message);
}

void forget_free_messages(Endpoint& endpoint) noexcept {
  while (endpoint.free_messages != nullptr) {
    Message* message = endpoint.free_messages;
    endpoint.free_messages = message->all_next;
    give_back(endpoint, message);
  }
}

}  // namespace sterna::net
