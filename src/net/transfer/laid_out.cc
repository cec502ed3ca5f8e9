// Long messages with a layout: what is sent is packed a packet at a time, while the peer reads the
// one before; what is read is unpacked a part at a time, while it is in the cache. Nobody has
// memory for all of it.
#include <algorithm>

#include "net/buffer.h"
#include "net/core.h"
#include "net/transfer/job.h"

namespace sterna::net {
namespace {

constexpr std::size_t kPartBytes = 64 << 10;

}  // namespace

// Within a host, where what would come eagerly ends: over networks an announced message has its
// first bytes with it, which is worth more.
bool Transport::takes_layout(const Endpoint& from, std::uint32_t to_rank,
                             std::uint64_t bytes) const noexcept {
  const std::uint32_t route = core_->ranks_[to_rank].route.load(std::memory_order_relaxed);
  return from.is_fixed && route != RankEntry::kNoRoute && route != core_->node_ &&
         core_->gates_[route].is_direct() && bytes > core_->gates_[route].eager_bytes();
}

bool Transport::waits_at_once() const noexcept {
  return core_->is_serial_ && core_->habits_.of_sends().waits_at_once();
}

std::uint32_t TransferJob::pieces(std::uint64_t from, std::uint64_t most, std::span<Piece> into,
                                  std::uint64_t& taken_bytes) noexcept {
  const Layout* const layout = local.layout();
  if (layout == nullptr) [[likely]] {
    return pieces_of(local, from, most, into, taken_bytes);
  }
  if (packed == nullptr) {
    packed = memory::KeptBlocks::of_process().make(kPartBytes);
  }
  std::byte* const place = packed != nullptr ? packed.get() : few_packed.data();
  taken_bytes = std::min<std::uint64_t>(most, packed != nullptr ? kPartBytes : few_packed.size());
  // A packet for which there was no room is asked for again.
  if (packed_from != from || packed_bytes < taken_bytes) {
    packed_from = from;
    packed_bytes = taken_bytes;
    layout->copy_out(from, place, taken_bytes);
  }
  into[0] = {place, taken_bytes};
  return 1;
}

Result<> read_into(const Layout& layout, std::uint64_t offset, RemotePiece from,
                   Channel& channel) noexcept {
  std::array<std::byte, 256> few;
  const memory::KeptBlocks::Block part = memory::KeptBlocks::of_process().make(kPartBytes);
  std::byte* const place = part != nullptr ? part.get() : few.data();
  while (from.bytes != 0) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(from.bytes, part != nullptr ? kPartBytes : few.size());
    if (Result<> read = channel.read_remote(place, {from.address, bytes}); !read) {
      return read;
    }
    layout.copy_in(offset, place, bytes);
    offset += bytes;
    from.address += bytes;
    from.bytes -= bytes;
  }
  return Done{};
}

}  // namespace sterna::net
