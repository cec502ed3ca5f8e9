// The FILEs are libc's own, made by fopencookie: so every function of stdio works on them.
#include "program/streams.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"

namespace sterna::program {
namespace {

constexpr std::uint32_t kHeldBytesFirst = 256;
constexpr std::uint32_t kHeldBytesMax = 64 * 1024;
constexpr std::size_t kOpenFilesAtOnce = 64;

/// What libc exports but does not declare. Constant after prepare_streams().
struct LibcStreams {
  void (*unlink)(std::FILE*) = nullptr;
  void (*lock_list)() = nullptr;
  void (*unlock_list)() = nullptr;
  std::FILE** list = nullptr;
};
constinit LibcStreams libc_streams;

HeldLine& held_line(RankData& data, OutputStream stream) noexcept {
  return data.held_lines[stream == OutputStream::out ? 0 : 1];
}

void emit(RankData& data, OutputStream stream, std::string_view lines) noexcept {
  if (!lines.empty()) {
    on_worker(data, [&] { host_calls().write_output(*data.slot, stream, lines); });
  }
}

/// Adds to a held line. False: it is as long as it may be, or there is no memory.
bool hold(RankData& data, HeldLine& line, std::string_view bytes) noexcept {
  if (bytes.size() > kHeldBytesMax - line.used) {
    return false;
  }
  const auto needed = static_cast<std::uint32_t>(line.used + bytes.size());
  if (needed > line.capacity) {
    std::uint32_t capacity = line.capacity == 0 ? kHeldBytesFirst : line.capacity;
    while (capacity < needed) {
      capacity *= 2;
    }
    auto* grown = static_cast<char*>(rank_reallocate(*data.slot, line.bytes, capacity));
    if (grown == nullptr) {
      return false;
    }
    line.bytes = grown;
    line.capacity = capacity;
  }
  std::memcpy(line.bytes + line.used, bytes.data(), bytes.size());
  line.used = needed;
  return true;
}

/// Takes the held line out of the rank's data, so that the host is called without its lock.
HeldLine take(HeldLine& line) noexcept {
  return std::exchange(line, {});
}

void emit_and_free(RankData& data, OutputStream stream, const HeldLine& line) noexcept {
  emit(data, stream, {line.bytes, line.used});
  if (line.bytes != nullptr) {
    rank_free(*data.slot, line.bytes);
  }
}

template <OutputStream stream>
ssize_t write_cookie(void* cookie, const char* bytes, std::size_t count) {
  auto& data = *static_cast<RankData*>(cookie);
  if (const int fd = data.redirected[static_cast<int>(stream)]; fd >= 0) {
    return ::write(fd, bytes, count);
  }
  write_output(data, stream, {bytes, count});
  return static_cast<ssize_t>(count);
}

ssize_t read_cookie(void* cookie, char* bytes, std::size_t count) {
  auto& data = *static_cast<RankData*>(cookie);
  if (data.redirected[0] >= 0) {
    return ::read(data.redirected[0], bytes, count);
  }
  const long got = on_worker(data, [&] {
    return host_calls().read_input(*data.slot, {bytes, count});
  });
  if (got < 0) {
    set_last_error_number(static_cast<int>(-got));
    return -1;
  }
  return got;
}

template <int fd>
int close_cookie(void* cookie) {
  redirect_stream(*static_cast<RankData*>(cookie), fd, -1);
  return 0;
}

std::FILE* create_stream(RankData& data, int fd, int buffering) noexcept {
  std::FILE* file = open_on_stream(data, fd, fd == 0 ? "r" : "w");
  if (file != nullptr) {
    libc_streams.unlink(file);
    ::setvbuf(file, nullptr, buffering, 0);
    data.streams[fd] = file;
  }
  return file;
}

/// What open() takes for a mode of fopen(). -1: it is none.
int open_flags(const char* mode) noexcept {
  constexpr int kCreate = O_WRONLY | O_CREAT;
  int flags = *mode == 'r'   ? O_RDONLY
              : *mode == 'w' ? kCreate | O_TRUNC
              : *mode == 'a' ? kCreate | O_APPEND
                             : -1;
  for (const char* more = mode; flags >= 0 && *more != '\0' && *more != ','; ++more) {
    if (*more == '+') {
      flags = (flags & ~O_ACCMODE) | O_RDWR;
    } else if (*more == 'x') {
      flags |= O_EXCL;
    }
  }
  return flags;
}

/// Some of libc's FILEs that lie in the slot.
std::size_t find_open_files(const memory::RankSlot& slot,
                            std::array<std::FILE*, kOpenFilesAtOnce>& files) noexcept {
  std::size_t count = 0;
  libc_streams.lock_list();
  for (std::FILE* file = *libc_streams.list; file != nullptr && count < files.size();
       file = file->_chain) {
    if (memory::rank_slot_of(file) == &slot) {
      files[count++] = file;
    }
  }
  libc_streams.unlock_list();
  return count;
}

}  // namespace

Result<> prepare_streams() {
  const auto find = [](auto& to, const char* name) {
    to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(::dlsym(RTLD_DEFAULT, name));
    return to != nullptr;
  };
  if (!find(libc_streams.unlink, "_IO_un_link") || !find(libc_streams.list, "_IO_list_all") ||
      !find(libc_streams.lock_list, "_IO_list_lock") ||
      !find(libc_streams.unlock_list, "_IO_list_unlock")) {
    return Error{Errc::unsupported,
                 "this C library does not show its list of FILEs: ranks need glibc"};
  }
  return Done{};
}

bool create_streams(RankData& data) noexcept {
  RankVariables& variables = data.variables;
  variables.standard_input = create_stream(data, 0, _IOFBF);
  variables.standard_output = create_stream(data, 1, _IOLBF);
  variables.standard_error = create_stream(data, 2, _IONBF);
  return variables.standard_input != nullptr && variables.standard_output != nullptr &&
         variables.standard_error != nullptr;
}

void write_output(RankData& data, OutputStream stream, std::string_view bytes) noexcept {
  const std::size_t line_end = bytes.rfind('\n');
  const std::size_t whole = line_end == std::string_view::npos ? 0 : line_end + 1;
  HeldLine before;
  bool is_held = true;
  {
    const SpinGuard guard{data.lock};
    HeldLine& line = held_line(data, stream);
    if (whole != 0 && line.used != 0) {
      const std::size_t first = bytes.find('\n') + 1;
      if (hold(data, line, bytes.substr(0, first))) {
        bytes.remove_prefix(first);
      }
      before = take(line);
    } else if (whole == 0 && !(is_held = hold(data, line, bytes))) {
      before = take(line);
    }
    const std::size_t left = bytes.rfind('\n');
    if (whole != 0 && left + 1 != bytes.size()) {
      if (hold(data, line, bytes.substr(left + 1))) {
        bytes = bytes.substr(0, left + 1);
      }
    }
  }
  emit_and_free(data, stream, before);
  if (whole != 0 || !is_held) {
    emit(data, stream, bytes);
  }
}

void write_held_lines(RankData& data) noexcept {
  for (const OutputStream stream : {OutputStream::out, OutputStream::err}) {
    HeldLine line;
    {
      const SpinGuard guard{data.lock};
      line = take(held_line(data, stream));
    }
    emit_and_free(data, stream, line);
  }
}

void release_open_files(memory::RankSlot& slot) noexcept {
  std::array<std::FILE*, kOpenFilesAtOnce> files;
  while (const std::size_t count = find_open_files(slot, files)) {
    for (std::size_t index = 0; index < count; ++index) {
      ::fflush(files[index]);
      const int fd = ::fileno(files[index]);
      libc_streams.unlink(files[index]);
      if (fd > 2) {
        ::close(fd);
      }
    }
  }
  for (const int stream : {0, 1, 2}) {
    redirect_stream(data_of(slot), stream, -1);
  }
}

bool is_standard_stream(const RankData& data, const std::FILE* file) noexcept {
  return std::find(std::begin(data.streams), std::end(data.streams), file) !=
         std::end(data.streams);
}

void redirect_stream(RankData& data, int stream, int fd) noexcept {
  if (const int before = std::exchange(data.redirected[stream], fd); before >= 0) {
    remove_blocker(data, BlockerKind::file, static_cast<std::uint64_t>(before));
    ::close(before);
  }
}

std::FILE* reopen_stream(RankData& data, std::FILE* file, const char* path,
                         const char* mode) noexcept {
  const int stream = stream_of(file);
  if (stream == 0) {
    ::__fpurge(file);
  } else {
    ::fflush(file);
  }
  const int flags = open_flags(mode);
  if (flags < 0) {
    set_last_error_number(EINVAL);
    return nullptr;
  }
  // Without a path it is the mode that changes; who reads from or writes to the host has one.
  const int before = data.redirected[stream];
  const std::string again = path == nullptr ? "/proc/self/fd/" + std::to_string(before) : "";
  if (path != nullptr || before >= 0) {
    const int fd = ::open(path != nullptr ? path : again.c_str(), flags | O_CLOEXEC, 0666);
    if (fd < 0) {
      return nullptr;
    }
    add_blocker(data, BlockerKind::file, static_cast<std::uint64_t>(fd), "file %s is open",
                path != nullptr ? path : "(reopened)");
    redirect_stream(data, stream, fd);
    if (stream == 1) {
      ::setvbuf(file, nullptr, ::isatty(fd) == 1 ? _IOLBF : _IOFBF, 0);
    }
  }
  std::clearerr(file);
  data.orientations[stream] = 0;
  return file;
}

int close_stream(RankData& data, std::FILE* file) noexcept {
  const int stream = stream_of(file);
  const int result = stream == 0 ? 0 : ::fflush(file);
  redirect_stream(data, stream, -1);
  return result;
}

std::FILE* open_on_stream(RankData& data, int stream, const char* mode) noexcept {
  constexpr cookie_io_functions_t kFunctions[3] = {
      {read_cookie, nullptr, nullptr, close_cookie<0>},
      {nullptr, write_cookie<OutputStream::out>, nullptr, close_cookie<1>},
      {nullptr, write_cookie<OutputStream::err>, nullptr, close_cookie<2>}};
  std::FILE* file = ::fopencookie(&data, mode, kFunctions[stream]);
  if (file != nullptr) {
    file->_fileno = stream;
  }
  return file;
}

int flush_all(RankData& data) noexcept {
  int result = 0;
  for (std::FILE* file : {data.streams[1], data.streams[2]}) {
    if (file != nullptr && ::fflush(file) != 0) {
      result = EOF;
    }
  }
  std::array<std::FILE*, kOpenFilesAtOnce> files;
  const std::size_t count = find_open_files(*data.slot, files);
  for (std::size_t index = 0; index < count; ++index) {
    if (::fflush(files[index]) != 0) {
      result = EOF;
    }
  }
  return result;
}

}  // namespace sterna::program
