// Standard output, error and input of a rank: FILEs that live in its slot and belong to no list of
// libc, so that they move with it. What is written comes out as whole lines at the host.
#pragma once

#include <string_view>

#include "base/result.h"
#include "program/rank_data.h"

namespace sterna::program {

/// Once a process: finds what is needed in this libc.
Result<> prepare_streams();

/// On the rank's thread pointer. False: no memory.
[[nodiscard]] bool create_streams(RankData& data) noexcept;

/// Output of the rank, in pieces: whole lines go to the host, the rest is held. From any thread of
/// the rank. May not be called with `data.lock`.
void write_output(RankData& data, OutputStream stream, std::string_view bytes) noexcept;

/// What is held goes out: the rank ends.
void write_held_lines(RankData& data) noexcept;

/// Flushes the FILEs that the rank has opened and takes them off libc's list: their memory goes.
void release_open_files(memory::RankSlot& slot) noexcept;

/// fflush(NULL) of a rank: its standard streams and its files.
int flush_all(RankData& data) noexcept;

}  // namespace sterna::program
