// Two ranks of a node that talk to each other all the time, on two workers: a message that is
// waited for takes eight times as long there as on one worker, where it is a direct one (direct.h).
// So one of them goes to the other.
//
// All the time: one wait for the other rank after the other, nearly all within kCloseNs of the one
// before it; in less time there is no work between them that two workers would share. Each of the
// two would go where the other one was: only the higher one goes. Who has gone and is taken back to
// an idle worker goes again after twice as many waits.
#pragma once

#include <cstdint>

namespace sterna::mpi {

struct CloseWaits;
struct RankState;

/// A wait for `source` at `now_ns`: whether the rank should go there now.
[[nodiscard]] bool add_wait(CloseWaits& waits, std::uint32_t source, std::uint64_t now_ns) noexcept;
/// It has gone.
void double_limit(CloseWaits& waits) noexcept;

/// The rank, on its main thread, is about to wait for a message of the rank `source` of the job.
/// Switches, perhaps to another worker.
void gather_for(RankState& state, std::uint32_t source) noexcept;

}  // namespace sterna::mpi
