// rpc.h of the program: what its parts share.
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sterna/rpc.h>

#include "memory/kept_blocks.h"
#include "rpc/rpc.h"
#include "runtime/capi/program.h"

namespace sterna::runtime::capi {

inline constexpr std::uint64_t kServiceSpace = 0x5e41'1ce5;  // Not the runtime's own names.
inline constexpr std::size_t kRpcShortBytes = rpc::kReplyInlineBytes;  // Longer pieces go alone.
inline constexpr std::size_t kRpcBlockBytesMax = 15 << 20;             // Of all short pieces.
inline constexpr std::size_t kRpcFewBytes = 192;  // Of all short pieces of most calls.
inline constexpr std::uint32_t kRpcFewParts = 2;  // Long ones of most calls.

[[nodiscard]] inline std::uint64_t number_of_service(const char* name) noexcept {
  return rpc::service_number(name, kServiceSpace);
}

/// The arguments of one call on their way. Its parts hold their memory until they are sent, which
/// may be after the call has ended.
class OutBox {
 public:
  OutBox() noexcept {}  // Which leaves few_bytes_ as they are.
  OutBox(const OutBox&) = delete;
  OutBox& operator=(const OutBox&) = delete;

  /// Adds a piece of `bytes` bytes; throws bad_alloc. `is_copied`: it may be changed at once.
  void add(const void* data, std::size_t bytes, bool is_copied);
  /// A short piece that is read by fill(); a long one is as any that is not copied.
  void add_later(const void* data, std::size_t bytes);
  void fill() noexcept;
  /// False: another long piece, or so many bytes, would be too much.
  [[nodiscard]] bool has_room(std::size_t bytes) const noexcept;

  [[nodiscard]] std::span<const std::byte> block() const noexcept {
    return outer_.data() != nullptr ? outer_ : std::span<const std::byte>{block_, block_bytes_};
  }
  /// One piece, not copied where the call does that itself.
  void set(std::span<const std::byte> bytes, bool is_copied);
  [[nodiscard]] std::span<rpc::OutPart> parts() noexcept { return {parts_, part_count_}; }
  [[nodiscard]] std::uint64_t part_bytes() const noexcept;
  /// Before the call starts: its caller waits until all parts are sent, and does nothing else.
  void will_be_awaited() noexcept;
  /// All parts have been sent, or never will be.
  [[nodiscard]] bool is_sent() const noexcept;
  /// Waits for that. Switches.
  void await_sent(progress::Progress& progress) noexcept;
  /// Frees it once they are.
  static void release(std::unique_ptr<OutBox> box) noexcept;
  /// How many of those are not yet.
  [[nodiscard]] static std::uint32_t waiting_count() noexcept;

 private:
  struct LaterPiece {
    const void* data;
    std::size_t bytes;
    std::size_t offset;  // In the block.
  };
  struct Waiting;

  void use_many_bytes(std::size_t bytes_more);
  void add_to_block(const std::byte* data, std::size_t bytes);

  std::span<const std::byte> outer_;  // Or the block, memory of the caller.
  // Most calls have few pieces: a box is one allocation then.
  std::array<std::byte, kRpcFewBytes> few_bytes_;  // Not cleared first.
  std::array<rpc::OutPart, kRpcFewParts> few_parts_;
  std::byte* block_ = few_bytes_.data();
  std::size_t block_bytes_ = 0;
  rpc::Bytes many_bytes_;  // The block, once it is longer.
  rpc::OutPart* parts_ = few_parts_.data();
  std::unique_ptr<rpc::OutPart[]> many_parts_;
  std::uint32_t part_count_ = 0;
  std::uint32_t part_capacity_ = kRpcFewParts;
  std::vector<memory::KeptBlocks::Block> copies_;
  std::vector<LaterPiece> later_;
};

/// A reply that has come goes where it belongs: what the call returns, with a text.
sterna_status finish_call(rpc::Rpc& rpc, rpc::PendingCall& call, void* reply, std::size_t bytes_max,
                          std::size_t* bytes, const char* entry_point) noexcept;

/// Whether the caller may call; `may_wait`: and wait, which a quick service may not.
sterna_status check_caller(const char* call, bool may_wait) noexcept;
sterna_status check_call(std::uint32_t node, const char* name, const void* arguments,
                         std::size_t bytes, const char* call, bool may_wait) noexcept;

}  // namespace sterna::runtime::capi

struct sterna_rpc_call {
  sterna::rpc::PendingCall call;
  std::unique_ptr<sterna::runtime::capi::OutBox> box;
};
