// Memory for the arguments of requests that threads serve, used again. They come in bursts, and go
// while the next burst comes, in other threads than they came in: malloc() gives the end of its
// memory back to the system each time, and has it made anew, page by page, in the poll. Posts of
// 8000 bytes took 3.5 to 7.5 us for that, half of it in the kernel.
//
// Blocks of powers of two, up to kKeptBytesMax that nobody uses; longer ones are malloc's, as are
// those beyond that. Any thread; no thread is switched while the lock is held.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/annotate.h"
#include "base/spin_lock.h"

namespace sterna::rpc {

class ArgumentBlocks {
 public:
  static constexpr std::size_t kBytesMin = 2 << 10;
  static constexpr std::size_t kBytesMax = 64 << 10;
  static constexpr std::size_t kKeptBytesMax = 4 << 20;

  struct GiveBack {
    ArgumentBlocks* from = nullptr;
    std::size_t bytes = 0;
    void operator()(std::byte* block) const noexcept { from->give_back(block, bytes); }
  };
  using Block = std::unique_ptr<std::byte[], GiveBack>;

  ArgumentBlocks() = default;
  ~ArgumentBlocks();
  ArgumentBlocks(const ArgumentBlocks&) = delete;
  ArgumentBlocks& operator=(const ArgumentBlocks&) = delete;

  /// Of at least so many bytes, not cleared, aligned for any type. Throws bad_alloc.
  [[nodiscard]] Block take(std::size_t bytes);
  /// So many bytes are kept, and nobody uses them.
  [[nodiscard]] std::size_t kept_bytes() noexcept;

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kSizes = 6;
  static_assert(kBytesMin << (kSizes - 1) == kBytesMax);

  void give_back(std::byte* block, std::size_t bytes) noexcept;

  SpinLock lock_;
  std::array<Free*, kSizes> free_ STERNA_GUARDED_BY(lock_) = {};
  std::size_t kept_bytes_ STERNA_GUARDED_BY(lock_) = 0;
};

}  // namespace sterna::rpc
