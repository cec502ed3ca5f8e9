// Waiting: every blocking call of MPI ends up here. A wait lets the network and the rank's
// non-blocking collectives advance, and is a place where the rank may be moved.
#pragma once

#include <mpi.h>

#include "mpi/rank_state.h"
#include "net/message.h"
#include "progress/completion.h"

namespace sterna::mpi {

struct Request;

/// Until `done` is. Switches; may move the rank.
void wait_done_slowly(RankState& state, progress::Completion& done) noexcept;
inline void wait_done(RankState& state, progress::Completion& done) noexcept {
  if (!done.done()) {
    wait_done_slowly(state, done);
  }
}

/// Sleeps until one of the requests may have ended (null and inactive ones are passed over), or a
/// collective of the rank may advance; advances it. May return for no reason. Switches; may move
/// the rank.
void wait_for_one(RankState& state, const MPI_Request* handles, int count) noexcept;

/// Between two looks at something that no completion announces: lets others run and the
/// network advance; after many rounds sleeps a little. Switches; may move the rank.
void wait_a_little(RankState& state, std::uint32_t round) noexcept;

/// The network and the collectives of the rank advance, once. Does not switch but for operators of
/// the program.
void poll_once(RankState& state) noexcept;

/// The error class of a message that failed.
[[nodiscard]] int class_of_fault(net::Fault fault) noexcept;

}  // namespace sterna::mpi
