// See packed.h.
#include "mpi/p2p/packed.h"

#include <cstring>

#include "memory/kept_blocks.h"
#include "mpi/rank_state.h"

namespace sterna::mpi {
namespace {

// In front of a block that is used again: its bytes, as they were asked for.
constexpr std::size_t kHeadBytes = 16;

}  // namespace

std::byte* allocate_packed(RankState& state, std::uint64_t bytes) noexcept {
  if (!state.heap().is_process()) {
    return state.allocate_array<std::byte>(bytes);
  }
  const std::size_t whole = bytes + kHeadBytes;
  if (whole < bytes) {
    return nullptr;
  }
  auto* const head = static_cast<std::byte*>(memory::KeptBlocks::of_process().allocate(whole));
  if (head == nullptr) {
    return nullptr;
  }
  std::memcpy(head, &whole, sizeof whole);
  return head + kHeadBytes;
}

void deallocate_packed(RankState& state, std::byte* block) noexcept {
  if (block == nullptr || !state.heap().is_process()) {
    state.deallocate(block);
    return;
  }
  std::byte* const head = block - kHeadBytes;
  std::size_t whole = 0;
  std::memcpy(&whole, head, sizeof whole);
  memory::KeptBlocks::of_process().deallocate(head, whole);
}

}  // namespace sterna::mpi
