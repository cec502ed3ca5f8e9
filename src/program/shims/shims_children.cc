// Child processes: system() and popen() with the rank's environment and its own standard streams;
// exec(), which would end the other ranks of the node, is refused.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include <alloca.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscall.h"
#include "program/blocker_table.h"
#include "program/rank_heap.h"
#include "program/shims/calling.h"
#include "program/shims/shims.h"
#include "program/streams.h"

namespace sterna::program {
namespace {

constexpr std::uint64_t kWaitNsMin = 50'000;
constexpr std::uint64_t kWaitNsMax = 2'000'000;

/// This process: a child of vfork() has another number. Written when a program is opened.
constinit pid_t node_process = 0;

char** environment_of(const RankData& data) noexcept {
  static char* nothing[] = {nullptr};
  char** const environment = variable<char**>(data, Variable::environment);
  return environment != nullptr ? environment : nothing;
}

/// What a child does before exec(): the rank's standard streams are its own.
class ChildActions {
 public:
  explicit ChildActions(const RankData& data) noexcept {
    ::posix_spawn_file_actions_init(&actions_);
    for (const int fd : {0, 1, 2}) {
      if (data.redirected[fd] >= 0) {
        replace(data.redirected[fd], fd);
      }
    }
  }
  ~ChildActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  ChildActions(const ChildActions&) = delete;
  ChildActions& operator=(const ChildActions&) = delete;

  void replace(int from, int to) noexcept {
    ::posix_spawn_file_actions_adddup2(&actions_, from, to);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// `sh -c command`. Zero or an error number.
int start_shell(const RankData& data, const char* command, const ChildActions& actions,
                pid_t& process) noexcept {
  const char* const arguments[] = {"sh", "-c", command, nullptr};
  return ::posix_spawn(&process, "/bin/sh", actions.get(), nullptr,
                       const_cast<char* const*>(arguments), environment_of(data));
}

/// Its status, or -1. Other ranks of the worker run meanwhile.
int wait_for(const RankData& data, pid_t process) noexcept {
  const bool is_main = is_main_of(data);
  int status = 0;
  std::uint64_t pause_ns = kWaitNsMin;
  for (;;) {
    const pid_t ended = ::waitpid(process, &status, is_main ? WNOHANG : 0);
    if (ended == process) {
      return status;
    }
    if (ended < 0 && last_error_number() != EINTR) {
      return -1;
    }
    if (ended == 0) {
      on_worker(data, [&] { host_calls().sleep_for(*data.slot, pause_ns); });
      pause_ns = std::min(2 * pause_ns, kWaitNsMax);
    }
  }
}

int shim_system(const char* command) {
  RankData& data = calling_data();
  if (command == nullptr) {
    return ::access("/bin/sh", X_OK) == 0 ? 1 : 0;
  }
  const auto key = blocker_key(&command);
  add_blocker(data, BlockerKind::process, key, "command %s is running", command);
  pid_t process = 0;
  // As a shell that cannot be started: the status of exit(127).
  const int status = start_shell(data, command, ChildActions{data}, process) == 0
                         ? wait_for(data, process)
                         : 127 << 8;
  remove_blocker(data, BlockerKind::process, key);
  return status;
}

/// Its end of the pipe closes at exec(): another child of this process that inherits it would keep
/// the command from seeing the end of its input.
std::FILE* open_child_stream(RankData& data, const char* command, bool is_input) noexcept {
  auto* const child = static_cast<ChildStream*>(rank_allocate(*data.slot, sizeof(ChildStream)));
  int ends[2];
  if (child == nullptr || ::pipe2(ends, O_CLOEXEC) != 0) {
    rank_free(*data.slot, child);
    return nullptr;
  }
  const int own = ends[is_input ? 0 : 1];
  const int other = ends[is_input ? 1 : 0];
  ChildActions actions{data};
  actions.replace(other, is_input ? 1 : 0);
  std::FILE* const file = ::fdopen(own, is_input ? "r" : "w");
  pid_t process = 0;
  const int number = file != nullptr ? start_shell(data, command, actions, process) : ENOMEM;
  ::close(other);
  if (number != 0) {
    file != nullptr ? std::fclose(file) : ::close(own);
    rank_free(*data.slot, child);
    set_last_error_number(number);
    return nullptr;
  }
  add_blocker(data, BlockerKind::process, blocker_key(file), "command %s is running", command);
  const SpinGuard guard{data.lock};
  *child = {file, process, data.libc.child_streams};
  data.libc.child_streams = child;
  return file;
}

std::FILE* shim_popen(const char* command, const char* mode) {
  if ((mode[0] != 'r' && mode[0] != 'w') || std::strspn(mode + 1, "e") != std::strlen(mode + 1)) {
    set_last_error_number(EINVAL);
    return nullptr;
  }
  return open_child_stream(calling_data(), command, mode[0] == 'r');
}

/// Takes it out of the list. Null: popen() has not made it.
ChildStream* take_child(RankData& data, const std::FILE* file) noexcept {
  const SpinGuard guard{data.lock};
  for (ChildStream** link = &data.libc.child_streams; *link != nullptr; link = &(*link)->next) {
    if ((*link)->file == file) {
      ChildStream* const found = *link;
      *link = found->next;
      return found;
    }
  }
  return nullptr;
}

int shim_pclose(std::FILE* file) {
  RankData& data = calling_data();
  ChildStream* const child = take_child(data, file);
  if (child == nullptr) {
    set_last_error_number(EINVAL);
    return -1;
  }
  const pid_t process = child->process;
  const std::uint64_t key = blocker_key(file);
  rank_free(*data.slot, child);
  std::fclose(file);
  const int status = wait_for(data, process);
  remove_blocker(data, BlockerKind::process, key);
  return status;
}

/// In a child of vfork() it does what it says; here it would take the other ranks with it.
template <typename Execute>
int execute(Execute execute) noexcept {
  RankData& data = calling_data();
  if (::getpid() != node_process) {
    return execute(environment_of(data));
  }
  write_output(data, OutputStream::err,
               "sterna: a mobile rank cannot exec(): use posix_spawn() or run it with one process "
               "a rank (mpiexec)\n");
  set_last_error_number(ENOSYS);
  return -1;
}

int shim_execve(const char* path, char* const* arguments, char* const* environment) {
  return execute([&](char**) { return ::execve(path, arguments, environment); });
}
int shim_execv(const char* path, char* const* arguments) {
  return execute([&](char** own) { return ::execve(path, arguments, own); });
}
int shim_execvp(const char* file, char* const* arguments) {
  return execute([&](char** own) { return ::execvpe(file, arguments, own); });
}
int shim_execvpe(const char* file, char* const* arguments, char* const* environment) {
  return execute([&](char**) { return ::execvpe(file, arguments, environment); });
}
int shim_fexecve(int fd, char* const* arguments, char* const* environment) {
  return execute([&](char**) { return ::fexecve(fd, arguments, environment); });
}

std::size_t count_arguments(va_list arguments) noexcept {
  va_list copy;
  va_copy(copy, arguments);
  std::size_t count = 1;  // The first, which is not among them.
  while (va_arg(copy, char*) != nullptr) {
    ++count;
  }
  va_end(copy);
  return count;
}

/// Writes `first`, the others and the null after them; leaves `arguments` behind that null.
void list_arguments(const char* first, va_list* arguments, std::size_t count,
                    char** list) noexcept {
  list[0] = const_cast<char*>(first);
  for (std::size_t index = 1; index <= count; ++index) {
    list[index] = va_arg(*arguments, char*);
  }
}

int shim_execl(const char* path, const char* first, ...) {
  va_list arguments;
  va_start(arguments, first);
  const std::size_t count = count_arguments(arguments);
  auto** const list = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  list_arguments(first, &arguments, count, list);
  va_end(arguments);
  return shim_execv(path, list);
}

int shim_execlp(const char* file, const char* first, ...) {
  va_list arguments;
  va_start(arguments, first);
  const std::size_t count = count_arguments(arguments);
  auto** const list = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  list_arguments(first, &arguments, count, list);
  va_end(arguments);
  return shim_execvp(file, list);
}

int shim_execle(const char* path, const char* first, ...) {
  va_list arguments;
  va_start(arguments, first);
  const std::size_t count = count_arguments(arguments);
  auto** const list = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  list_arguments(first, &arguments, count, list);
  auto** const environment = va_arg(arguments, char**);
  va_end(arguments);
  return shim_execve(path, list, environment);
}

}  // namespace

std::span<const Shim> child_shims() {
  node_process = ::getpid();
  static const Shim shims[] = {
      function_shim("system", shim_system),
      function_shim("popen", shim_popen),
      function_shim("pclose", shim_pclose),
      function_shim("execve", shim_execve),
      function_shim("execv", shim_execv),
      function_shim("execvp", shim_execvp),
      function_shim("execvpe", shim_execvpe),
      function_shim("fexecve", shim_fexecve),
      function_shim("execl", shim_execl),
      function_shim("execlp", shim_execlp),
      function_shim("execle", shim_execle),
  };
  return shims;
}

}  // namespace sterna::program
