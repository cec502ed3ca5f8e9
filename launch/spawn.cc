// fork and exec, the guardian, and where programs are.
#include "launch/spawn.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/loop.h"

namespace sterna::launch {
namespace {

rlimit& old_limit() noexcept {
  static constinit rlimit limit{};  // Set once, before the first child.
  return limit;
}

enum class Step : int { directory, program };

struct Failure {
  Step step;
  int number;
};

Error fork_error(const char* what, int number) {
  return system_error(std::string{what} + (number == EAGAIN ? " (fork; raise the limit of "
                                                              "processes, 'ulimit -u')"
                                                            : " (fork)"),
                      number);
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// What a child is to become.
struct Image {
  const SpawnOptions& options;
  const char* binary;  // Null: to be looked for, or given to the shell.
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  int failure_fd;
};

/// In the child: does all there is to do before exec. Async-signal-safe, and changes no memory but
/// its stack and errno: the parent has it, too.
[[noreturn]] void become(const Image& image) noexcept {
  const auto& [options, binary, arguments, environment, parent, failure_fd] = image;
  Loop::restore_signals();
  ::setpgid(0, options.group);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) {
    ::_exit(127);  // The launcher ended before the line above.
  }
  const int input = options.input_fd >= 0 ? options.input_fd : ::open("/dev/null", O_RDONLY);
  ::dup2(input, 0);
  ::dup2(options.output_fd, 1);
  ::dup2(options.error_fd, 2);
  for (const int fd : options.inherited_fds) {
    ::fcntl(fd, F_SETFD, 0);
  }
  if (old_limit().rlim_cur != 0) {
    ::setrlimit(RLIMIT_NOFILE, &old_limit());
  }
  Failure failure{Step::program, 0};
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) {
    failure = {Step::directory, last_error_number()};
  } else {
    if (binary != nullptr) {
      ::execve(binary, arguments, environment);
    } else {
      ::execvpe(arguments[0], arguments, environment);
    }
    failure.number = last_error_number();
  }
  static_cast<void>(!::write(failure_fd, &failure, sizeof failure));
  ::_exit(failure.number == ENOENT ? 127 : 126);
}

/// Not fork: to copy the launcher's page tables only to drop them in exec is a third of what a
/// process costs it. The caller stands still until exec, which it would wait for anyway. By itself:
/// a function that a child leaves by exec keeps no variables across vfork.
[[gnu::noinline]] pid_t start(const Image& image) noexcept {
  const pid_t pid = ::vfork();
  if (pid == 0) {
    become(image);
  }
  return pid;
}

/// Where the program is, from here; empty: nowhere.
std::string place_of(const SpawnOptions& options) {
  const std::string& name = options.arguments->front();
  if (name.find('/') == std::string::npos) {
    constexpr std::string_view kPath = "PATH=";
    for (const std::string& variable : *options.environment) {
      if (variable.starts_with(kPath)) {
        return find_program(name, std::string_view{variable}.substr(kPath.size()));
      }
    }
    return find_program(name, "/bin:/usr/bin");
  }
  return find_program(
      name.front() == '/' || options.directory.empty() ? name : options.directory + "/" + name, "");
}

/// A program in the format of this system, whatever it was built for. (execvp gives what the system
/// cannot run to the shell, which reads it as a script.)
bool is_binary(const std::string& place) {
  std::array<char, 4> magic{};
  const FileDescriptor file{
      static_cast<int>(system_call([&] { return ::open(place.c_str(), O_RDONLY | O_CLOEXEC); }))};
  return file.is_open() &&
         system_call([&] { return ::read(file.get(), magic.data(), magic.size()); }) == 4 &&
         std::string_view{magic.data(), magic.size()} == "\177ELF";
}

Error cannot_run(const SpawnOptions& options, const Failure& failure, bool is_there) {
  if (failure.step == Step::directory) {
    return system_error("cannot change to the folder " + options.directory, failure.number);
  }
  Error error = system_error("cannot run " + options.arguments->front(), failure.number);
  if (failure.number == ENOEXEC) {
    error.text += " (built for another kind of machine, or damaged)";
  } else if (failure.number == ENOENT && is_there) {
    error.text += " (the file is there, but not the interpreter or loader that it names)";
  }
  return error;
}

/// In a forked child: `fd` becomes its 0, and it has nothing else of ours.
void keep_only(int fd) noexcept {
  ::dup2(fd, 0);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, 1);
  ::dup2(nothing, 2);
  if (::close_range(3, ~0U, 0) == 0) {
    return;
  }
  if (DIR* const folder = ::opendir("/proc/self/fd"); folder != nullptr) {  // Before Linux 5.9.
    while (const dirent* const entry = ::readdir(folder)) {
      const int open = std::atoi(entry->d_name);
      if (open > 2 && open != ::dirfd(folder)) {
        ::close(open);
      }
    }
    ::closedir(folder);
  }
}

}  // namespace

Result<pid_t> spawn(const SpawnOptions& options) {
  const std::vector<char*> arguments = pointers_to(*options.arguments);
  const std::vector<char*> environment = pointers_to(*options.environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("cannot start a process (pipe)", last_error_number());
  }
  FileDescriptor failure_reader{ends[0]};
  FileDescriptor failure_writer{ends[1]};
  const std::string place = place_of(options);
  // The child looks for a relative name from its own folder.
  const char* const binary =
      is_binary(place) ? (options.arguments->front().find('/') != std::string::npos ? arguments[0]
                                                                                    : place.c_str())
                       : nullptr;
  const pid_t pid = start({options, binary, arguments.data(), environment.data(), ::getpid(),
                           failure_writer.get()});
  if (pid < 0) {
    return fork_error("cannot start a process", last_error_number());
  }
  failure_writer = FileDescriptor{};
  Failure failure{};
  const long count =
      system_call([&] { return ::read(failure_reader.get(), &failure, sizeof failure); });
  if (count == static_cast<long>(sizeof failure)) {
    return cannot_run(options, failure, !place.empty());
  }
  return pid;
}

Result<Guardian> Guardian::start() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("cannot start the guardian (pipe)", last_error_number());
  }
  FileDescriptor reader{ends[0]};
  FileDescriptor writer{ends[1]};
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fork_error("cannot start the guardian", last_error_number());
  }
  if (pid == 0) {
    // The handled signals are blocked (Loop). It must hold nothing of ours open: whoever reads a
    // pipe of ours, an agent or a rank, waits for its end.
    ::setpgid(0, 0);
    ::prctl(PR_SET_NAME, "sterna-guard");
    ::close(writer.get());
    keep_only(reader.get());
    char byte = 0;
    static_cast<void>(system_call([&] { return ::read(0, &byte, 1); }));
    ::kill(0, SIGKILL);
    ::_exit(0);
  }
  ::setpgid(pid, pid);
  return Guardian{pid, std::move(writer)};
}

void Guardian::signal_group(int number) const noexcept {
  ::kill(-group_, number);
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && old_limit().rlim_cur == 0) {
    old_limit() = limit;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::string find_program(const std::string& program, std::string_view path) {
  const auto is_program = [](const std::string& file) {
    struct stat status {};
    return ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(file.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) {
    return is_program(program) ? program : std::string{};
  }
  while (!path.empty()) {
    const std::string_view folder = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), folder.size() + 1));
    const std::string file = (folder.empty() ? "." : std::string{folder}) + "/" + program;
    if (is_program(file)) {
      return file;
    }
  }
  return {};
}

std::string own_path() {
  std::array<char, 4096> path{};
  const long count =
      system_call([&] { return ::readlink("/proc/self/exe", path.data(), path.size()); });
  return count > 0 ? std::string{path.data(), static_cast<std::size_t>(count)} : "sterna";
}

std::string own_folder() {
  const std::string path = own_path();
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace sterna::launch
