// A request on its way to a thread of its own. Internal to rpc/.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "memory/kept_blocks.h"
#include "rpc/rpc.h"

namespace sterna::rpc {

// Longer pieces for a quick service, together, are worth a thread where they come in packets.
inline constexpr std::uint64_t kGatheredBytesMax = 64 << 10;

/// One allocation with its parts and its arguments behind it: made inside a poll, while a sender
/// waits. Arguments that would make that a slow one have one of their own.
struct Rpc::Work {
  /// Null, or bad_alloc: there is no memory.
  [[nodiscard]] static std::unique_ptr<Work> make(Rpc& rpc, const ServiceEntry& entry,
                                                  const Message& message, std::uint32_t from_node);
  static void operator delete(void* memory) noexcept { ::operator delete(memory); }

  Rpc* rpc;
  const ServiceEntry* entry;
  ThreadWish wish;
  ReplyTo reply_to;
  Incoming incoming;
  std::span<const std::byte> arguments;  // Aligned for any type.
  ThreadBody body;
  memory::KeptBlocks::Block own_arguments = nullptr;

  /// The arguments with the long pieces in their places; closed, out_of_memory. Switches.
  Result<> gather();
  /// Memory for all of them; null: there is none.
  [[nodiscard]] std::byte* make_room() noexcept;
  [[nodiscard]] Error no_room() const;
  /// Calls `receive(index, buffer)` for each long piece, and copies what lies between them.
  template <typename Receive>
  void place(Receive&& receive);
  /// A piece that was received: closed, if it is not what the request has promised.
  [[nodiscard]] Result<> check_part(std::size_t index, const net::RecvRequest& receive) const;
  memory::KeptBlocks::Block gathered = nullptr;  // What make_room() has made, not cleared first.
  std::size_t gathered_bytes = 0;
};

/// On the stack of its thread.
struct Rpc::Serving {
  std::unique_ptr<Work> work;
  Answer given;
};

}  // namespace sterna::rpc
