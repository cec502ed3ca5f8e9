// What migration needs of those who run ranks (program/, runtime/): an interface owned here and
// implemented above.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/function_ref.h"
#include "base/result.h"
#include "memory/rank_slot.h"

namespace sterna::migration {

class RankHost {
 public:
  /// Empty: the rank holds nothing of this process. Else what it holds. On the rank's own stack.
  virtual std::string describe_blockers(memory::RankSlot& slot) noexcept = 0;

  /// Bytes of the slot that are alive beyond header, stack, thread-local block and heaps.
  virtual void for_each_image_extent(memory::RankSlot& slot,
                                     FunctionRef<void(std::span<std::byte>)> visit) noexcept = 0;

  /// The slot of a rank that may come is mapped: does all that needs none of its bytes, and touches
  /// none, for the rank may still run where it is. Of memory that is copied: after the bytes.
  virtual Result<> prepare(std::uint32_t rank) noexcept = 0;

  /// The rank is here, prepared: makes right what belongs to this process. It does not run yet.
  virtual void arrive(memory::RankSlot& slot) noexcept = 0;

  /// This node gives the rank to `node` with its next word, the COMMIT: `move` counts the moves of
  /// the rank so far, this one included. Called again with this node and a higher count if the
  /// word could not be said and the rank is still here.
  virtual void handing_over(std::uint32_t rank, std::uint32_t node,
                            std::uint64_t move) noexcept = 0;

  /// All that was left in this node of ranks that have left it is handed over: the answer to
  /// Flush::order(number).
  virtual void flushed(std::uint32_t number) noexcept = 0;

  /// A rank that was asked to move did not. For reports.
  virtual void stayed(std::uint32_t rank, std::uint32_t node,
                      const std::string& reason) noexcept = 0;

 protected:
  ~RankHost() = default;
};

}  // namespace sterna::migration
