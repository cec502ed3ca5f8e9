// A call of a mobile rank: the reply finds the rank wherever it is when the reply comes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/rank_slot.h"
#include "progress/completion.h"

namespace sterna::rpc {

/// In the slot of the rank that calls, on its stack or in its system heap, at one address from
/// Rpc::start to Rpc::take; between the two the rank may move. Used by that rank only, with the Rpc
/// of the node where it is at the moment.
class RankCall {
 public:
  explicit RankCall(memory::RankSlot& slot) noexcept : slot_{&slot} {}
  /// The call was never started, or taken.
  ~RankCall();
  RankCall(const RankCall&) = delete;
  RankCall& operator=(const RankCall&) = delete;

  /// The reply is here. Of a lost node Rpc::wait tells.
  [[nodiscard]] bool done() const noexcept { return done_.done(); }

 private:
  friend class Rpc;

  // Nothing of it points into node memory while nobody waits. Guard of what follows from start to
  // `done_` or the withdrawal: Rpc::notes_lock_ of the node where the rank is; it is not in here
  // because a late note would take it in a frame that is not there any more. From one node to the
  // next the move orders: a rank does not leave while a note is being stored in it.
  progress::Completion done_;
  memory::RankSlot* slot_;
  std::uint64_t cookie_ = 0;        // Drawn by start; 0: no note is for this call.
  std::uint64_t reply_number_ = 0;  // Of the first note: parts of another reply are not counted.
  std::uint32_t to_node_ = 0;
  std::uint32_t total_ = 0;
  std::uint32_t received_ = 0;
  bool is_error_ = false;
  std::byte* reply_ = nullptr;  // In the system heap of the rank; null before the first note.
};

}  // namespace sterna::rpc
