// A whole trace as a file that Perfetto opens (ui.perfetto.dev), and that Reader reads again: the
// records themselves lie in packets of their own, in fields that Perfetto does not know and skips.
//
// Tracks: a process for each node with a track for each worker (who runs there, when it sleeps) and
// a counter for each run queue; a process for the ranks, each with its state and its calls of MPI;
// a process for the other threads of each node. Messages are flows from the sender's track to the
// receiver's. Field numbers are those of protos/perfetto/trace/trace_packet.proto and
// track_event.proto of Perfetto.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>

#include "trace/timeline.h"

namespace sterna::trace {

inline constexpr std::uint32_t kTracePacketField = 1;
inline constexpr std::uint32_t kRawHeaderField = 7017;
inline constexpr std::uint32_t kRawChunkField = 7018;

/// Writes the tracks of `timeline`.
void write_tracks(const Timeline& timeline, std::ostream& to);
/// Writes the records of a file that Reader takes, of a node or a whole one, as they are.
void write_records(std::span<const std::byte> file, std::ostream& to);

}  // namespace sterna::trace
