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

/// The descriptor, 0, 1 or 2, that this FILE of the rank writes to or reads from: it is one of its
/// standard streams or made by open_on_stream(). -1: it is a FILE of libc.
[[nodiscard]] inline int stream_of(const std::FILE* file) noexcept {
  return file->_fileno >= 0 && file->_fileno <= 2 ? file->_fileno : -1;
}
/// Whether the rank began with it.
[[nodiscard]] bool is_standard_stream(const RankData& data, const std::FILE* file) noexcept;

/// Descriptor 0, 1 or 2 of the rank is `fd` from now on, which the rank owns; -1: the host's again.
void redirect_stream(RankData& data, int stream, int fd) noexcept;

/// freopen() of a FILE that has a stream_of(): libc's does not work on those of fopencookie.
[[nodiscard]] std::FILE* reopen_stream(RankData& data, std::FILE* file, const char* path,
                                       const char* mode) noexcept;
/// fclose() of one that is_standard_stream(): the FILE stays.
int close_stream(RankData& data, std::FILE* file) noexcept;
/// fdopen() of descriptor 0, 1 or 2.
[[nodiscard]] std::FILE* open_on_stream(RankData& data, int stream, const char* mode) noexcept;

}  // namespace sterna::program
