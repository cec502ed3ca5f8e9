// FILEs, directories, processes: they work as ever, and are noted as what holds a rank here.
#include <cerrno>
#include <cstdio>

#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/streams.h"

namespace sterna::program {
namespace {

std::FILE* note(std::FILE* file, const char* name) noexcept {
  if (file != nullptr) {
    add_blocker(calling_data(), BlockerKind::file, blocker_key(file), "file %s is open", name);
  }
  return file;
}

std::FILE* shim_fopen(const char* path, const char* mode) {
  return note(std::fopen(path, mode), path);
}

std::FILE* shim_fdopen(int fd, const char* mode) {
  RankData& data = calling_data();
  const bool is_standard = fd >= 0 && fd <= 2;
  std::FILE* file = is_standard ? open_on_stream(data, fd, mode) : ::fdopen(fd, mode);
  if (file != nullptr) {
    // fclose() closes both.
    remove_blocker(data, BlockerKind::file, static_cast<std::uint64_t>(fd));
  }
  return note(file, "(by fdopen)");
}

std::FILE* shim_freopen(const char* path, const char* mode, std::FILE* file) {
  RankData& data = calling_data();
  if (stream_of(file) >= 0) {
    return reopen_stream(data, file, path, mode);
  }
  remove_blocker(data, BlockerKind::file, blocker_key(file));
  return note(std::freopen(path, mode, file), path != nullptr ? path : "(reopened)");
}

std::FILE* shim_tmpfile() {
  return note(std::tmpfile(), "(temporary)");
}

int shim_fclose(std::FILE* file) {
  RankData& data = calling_data();
  if (is_standard_stream(data, file)) {
    return close_stream(data, file);
  }
  remove_blocker(data, BlockerKind::file, blocker_key(file));
  return std::fclose(file);
}

/// libc's closes the files of other ranks, too.
int shim_fcloseall() {
  return flush_all(calling_data());
}

DIR* note(DIR* directory, const char* name) noexcept {
  if (directory != nullptr) {
    add_blocker(calling_data(), BlockerKind::file, blocker_key(directory), "directory %s is open",
                name);
  }
  return directory;
}

DIR* shim_opendir(const char* path) {
  return note(::opendir(path), path);
}

DIR* shim_fdopendir(int fd) {
  remove_blocker(calling_data(), BlockerKind::file, static_cast<std::uint64_t>(fd));
  return note(::fdopendir(fd), "(by fdopendir)");
}

int shim_closedir(DIR* directory) {
  remove_blocker(calling_data(), BlockerKind::file, blocker_key(directory));
  return ::closedir(directory);
}

/// The rank's memory is shared with other processes of the job: a copy of the process would write
/// into it. (posix_spawn, system, popen and vfork work: the caller waits until exec.)
pid_t shim_fork() {
  write_output(calling_data(), OutputStream::err,
               "sterna: a mobile rank cannot fork(): use posix_spawn() or run it with one process "
               "a rank (mpiexec)\n");
  set_last_error_number(ENOSYS);
  return -1;
}

}  // namespace

std::span<const Shim> file_shims() {
  static const Shim shims[] = {
      function_shim("fopen", shim_fopen),       function_shim("fopen64", shim_fopen),
      function_shim("fdopen", shim_fdopen),     function_shim("freopen", shim_freopen),
      function_shim("freopen64", shim_freopen), function_shim("tmpfile", shim_tmpfile),
      function_shim("tmpfile64", shim_tmpfile), function_shim("fclose", shim_fclose),
      function_shim("opendir", shim_opendir),   function_shim("fdopendir", shim_fdopendir),
      function_shim("closedir", shim_closedir), function_shim("fork", shim_fork),
      function_shim("__fork", shim_fork),       function_shim("fcloseall", shim_fcloseall),
  };
  return shims;
}

}  // namespace sterna::program
