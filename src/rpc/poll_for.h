// Waiting for long pieces, and for what is told once they are there, without leaving the processor.
#pragma once

#include <cstdint>

namespace sterna::progress {
class Completion;
class Progress;
}  // namespace sterna::progress

namespace sterna::rpc {

/// Before a wait for `done`, of who has a worker for itself: polls for as long as `part_bytes` may
/// take on their way. What comes then finds the thread here, and needs no way through a queue and a
/// search for work. Returns at once where others, or timers, could want that worker meanwhile. Does
/// not switch.
void poll_for(progress::Progress& progress, const progress::Completion& done,
              std::uint64_t part_bytes) noexcept;

}  // namespace sterna::rpc
