// Blocks that are used again: lists of free ones, by size.
#include "memory/kept_blocks.h"

#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

namespace sterna::memory {
namespace {

struct Size {
  std::size_t index;
  std::size_t bytes;
};

/// The least one that holds so many, more than kBytesMin and kBytesMax at most: by the three
/// leading bits of the last byte's index.
Size size_of(std::size_t bytes) noexcept {
  constexpr auto kWidthMin = static_cast<std::size_t>(std::bit_width(KeptBlocks::kBytesMin));
  const auto width = static_cast<std::size_t>(std::bit_width(bytes - 1));
  const std::size_t leading = (bytes - 1) >> (width - 3);  // 4 to 7.
  return {(width - kWidthMin) * 4 + leading - 4, (leading + 1) << (width - 3)};
}

bool is_kept(std::size_t bytes) noexcept {
  return bytes > KeptBlocks::kBytesMin && bytes <= KeptBlocks::kBytesMax;
}

}  // namespace

KeptBlocks& KeptBlocks::of_process() noexcept {
  // Never destroyed: what uses it may end later than any static object.
  static KeptBlocks& blocks = *::new (std::malloc(sizeof(KeptBlocks))) KeptBlocks;
  return blocks;
}

KeptBlocks::~KeptBlocks() {
  for (Free* list : free_) {
    while (list != nullptr) {
      std::free(std::exchange(list, list->next));
    }
  }
}

void* KeptBlocks::allocate(std::size_t bytes) noexcept {
  if (!is_kept(bytes)) {
    return std::malloc(bytes);
  }
  const Size size = size_of(bytes);
  {
    const SpinGuard guard{lock_};
    if (Free* const block = free_[size.index]; block != nullptr) {
      free_[size.index] = block->next;
      kept_bytes_ -= size.bytes;
      return block;
    }
  }
  return std::malloc(size.bytes);
}

void KeptBlocks::deallocate(void* block, std::size_t bytes) noexcept {
  if (is_kept(bytes) && block != nullptr) {
    const Size size = size_of(bytes);
    const SpinGuard guard{lock_};
    if (kept_bytes_ + size.bytes <= kKeptBytesMax) {
      kept_bytes_ += size.bytes;
      free_[size.index] = ::new (block) Free{free_[size.index]};
      return;
    }
  }
  std::free(block);
}

KeptBlocks::Block KeptBlocks::make_or_throw(std::size_t bytes) {
  Block block = make(bytes);
  if (block == nullptr) [[unlikely]] {
    (void)std::allocator<std::byte>{}.allocate(~std::size_t{0});
  }
  return block;
}

std::size_t KeptBlocks::kept_bytes() noexcept {
  const SpinGuard guard{lock_};
  return kept_bytes_;
}

}  // namespace sterna::memory
