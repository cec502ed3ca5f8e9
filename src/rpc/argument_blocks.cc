// Blocks of arguments: lists of free ones, by size.
#include "rpc/argument_blocks.h"

#include <bit>
#include <new>
#include <utility>

namespace sterna::rpc {
namespace {

/// Of the list of blocks that hold so many, kBytesMax at most.
std::size_t index_of(std::size_t bytes) noexcept {
  return bytes <= ArgumentBlocks::kBytesMin
             ? 0
             : static_cast<std::size_t>(std::bit_width(bytes - 1)) -
                   static_cast<std::size_t>(std::countr_zero(ArgumentBlocks::kBytesMin));
}

}  // namespace

ArgumentBlocks::~ArgumentBlocks() {
  for (Free* list : free_) {
    while (list != nullptr) {
      ::operator delete(std::exchange(list, list->next));
    }
  }
}

ArgumentBlocks::Block ArgumentBlocks::take(std::size_t bytes) {
  std::size_t block_bytes = bytes;
  if (bytes <= kBytesMax) {
    const std::size_t index = index_of(bytes);
    block_bytes = kBytesMin << index;
    const SpinGuard guard{lock_};
    if (Free* const block = free_[index]; block != nullptr) {
      free_[index] = block->next;
      kept_bytes_ -= block_bytes;
      return {reinterpret_cast<std::byte*>(block), GiveBack{this, bytes}};
    }
  }
  return {static_cast<std::byte*>(::operator new(block_bytes)), GiveBack{this, bytes}};
}

void ArgumentBlocks::give_back(std::byte* block, std::size_t bytes) noexcept {
  if (bytes <= kBytesMax) {
    const std::size_t index = index_of(bytes);
    const SpinGuard guard{lock_};
    if (kept_bytes_ + (kBytesMin << index) <= kKeptBytesMax) {
      kept_bytes_ += kBytesMin << index;
      free_[index] = ::new (block) Free{free_[index]};
      return;
    }
  }
  ::operator delete(block);
}

std::size_t ArgumentBlocks::kept_bytes() noexcept {
  const SpinGuard guard{lock_};
  return kept_bytes_;
}

}  // namespace sterna::rpc
