// What a node needs of the layer that runs programs as ranks (program/): an interface owned here.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/rank_slot.h"
#include "threads/thread.h"

namespace sterna::runtime {

/// One a node. Calls come on the worker's thread pointer.
class RankRunner {
 public:
  /// Reads the program, once, before the first create().
  virtual Result<> open() noexcept = 0;
  /// Bytes of a slot's image region that a rank uses; known after open().
  [[nodiscard]] virtual std::size_t image_bytes() const noexcept = 0;
  /// Whether ranks make kernel threads, for which they may wait in the kernel; known after open().
  [[nodiscard]] virtual bool creates_threads() const noexcept = 0;
  /// Fills a mapped slot, whose images region has image_bytes(), so that entry(&slot) starts the
  /// program as this rank.
  virtual Result<> create(memory::RankSlot& slot) noexcept = 0;
  [[nodiscard]] virtual threads::Entry entry() const noexcept = 0;
  /// A rank has ended here. True: its slot may be unmapped now. False: kernel threads that it has
  /// left behind still use it, so it stays mapped until the process ends.
  [[nodiscard]] virtual bool forget(memory::RankSlot& slot) noexcept = 0;

  /// Equal on two nodes exactly when a rank can move between them; 0: no rank can move from here.
  [[nodiscard]] virtual std::uint64_t fingerprint() const noexcept = 0;
  /// What differs or why nothing moves, in lines, for the log.
  [[nodiscard]] virtual std::string describe() const = 0;

  /// See migration/rank_host.h.
  virtual std::string describe_blockers(memory::RankSlot& slot) noexcept = 0;
  virtual void for_each_image_extent(memory::RankSlot& slot,
                                     FunctionRef<void(std::span<std::byte>)> visit) noexcept = 0;
  virtual Result<> prepare(std::uint32_t rank) noexcept = 0;

 protected:
  ~RankRunner() = default;
};

}  // namespace sterna::runtime
