// Reading the facts that doctor_judge.cc judges.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/result.h"
#include "base/syscall.h"
#include "base/system_file.h"
#include "base/tunable.h"
#include "launch/doctor.h"
#include "launch/remote_crew.h"
#include "launch/status_server.h"
#include "net/drivers/fabric/boards.h"
#include "runtime/settings.h"

namespace sterna::launch {
namespace {

template <typename Number>
std::optional<Number> number_in(const char* path) {
  std::ifstream file{path};
  Number number{};
  return file >> number ? std::optional{number} : std::nullopt;
}

std::uint64_t limit(int resource) {
  rlimit its{};
  return ::getrlimit(static_cast<__rlimit_resource_t>(resource), &its) != 0 ||
                 its.rlim_cur == RLIM_INFINITY
             ? kUnlimited
             : its.rlim_cur;
}

/// errno when one child of ours reads the memory of another one: what two ranks are to each other.
/// Nothing: there cannot be two children.
std::optional<int> read_of_sibling() {
  static std::uint64_t word = 0;
  word = 0x5740'1234;
  const pid_t victim = ::fork();
  if (victim == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::pause();
    ::_exit(0);
  }
  if (victim < 0) {
    return std::nullopt;
  }
  const pid_t reader = ::fork();
  if (reader == 0) {
    std::uint64_t copy = 0;
    const iovec here{&copy, sizeof copy};
    const iovec there{&word, sizeof word};
    const bool is_read = ::process_vm_readv(victim, &here, 1, &there, 1, 0) == sizeof copy;
    ::_exit(is_read && copy == word ? 0 : errno != 0 ? errno : EIO);
  }
  int status = 0;
  if (reader > 0) {
    (void)::waitpid(reader, &status, 0);
  }
  (void)::kill(victim, SIGKILL);
  (void)::waitpid(victim, nullptr, 0);
  if (reader < 0) {
    return std::nullopt;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

/// "max 100000" or "150000 100000": microseconds of each period. Of the first version two files.
std::optional<double> quota_in(const std::string& group) {
  double used = 0;
  double period = 0;
  std::ifstream both{group + "/cpu.max"};
  if (both >> used >> period && period > 0) {
    return used / period;
  }
  std::ifstream quota{group + "/cpu.cfs_quota_us"};
  std::ifstream periods{group + "/cpu.cfs_period_us"};
  const bool is_limited = quota >> used && periods >> period && used > 0 && period > 0;
  return is_limited ? std::optional{used / period} : std::nullopt;
}

std::string text_of(const char* path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Where the hierarchy of "4:cpu,cpuacct:/group" is, below the root of all; nothing: it does not
/// bound processor time.
std::optional<std::string> hierarchy_of(const std::string& controllers) {
  if (controllers.empty()) {
    return "";
  }
  std::istringstream words{controllers};
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "cpu") {
      return "/" + controllers;
    }
  }
  return std::nullopt;
}

std::uint32_t allowed_processors(std::uint32_t online) {
  // Larger than any machine that the kernel is built for.
  constexpr std::size_t kProcessors = 8192;
  cpu_set_t* const set = CPU_ALLOC(kProcessors);
  if (set == nullptr) {
    return online;
  }
  const std::size_t bytes = CPU_ALLOC_SIZE(kProcessors);
  const bool is_known = ::sched_getaffinity(0, bytes, set) == 0;
  const auto count = static_cast<std::uint32_t>(is_known ? CPU_COUNT_S(bytes, set) : 0);
  CPU_FREE(set);
  return count != 0 ? count : online;
}

std::optional<std::string> word_in_brackets(const char* path) {
  const std::optional<std::string> line = first_line_of(path);
  const std::size_t begin = line ? line->find('[') : std::string::npos;
  const std::size_t end = line ? line->find(']') : std::string::npos;
  return begin < end && end != std::string::npos
             ? std::optional{line->substr(begin + 1, end - begin - 1)}
             : std::nullopt;
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    result += c == '\'' ? "'\\''" : std::string{c};
  }
  return result + "'";
}

HostFact ask_host(const std::string& name, const std::string& shell) {
  HostFact fact;
  fact.name = name;
  std::array<char, 4096> own{};
  const ssize_t length = ::readlink("/proc/self/exe", own.data(), own.size() - 1);
  const std::string path = length > 0 ? std::string(own.data(), static_cast<std::size_t>(length))
                                      : std::string{"sterna"};
  std::string command;
  for (const std::string& word : remote_command(shell, name)) {
    command += quoted(word) + " ";
  }
  command += quoted("echo here; " + quoted(path) + " --version") + " </dev/null 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "re");
  std::vector<std::string> lines;
  for (std::array<char, 256> line{}; pipe != nullptr && std::fgets(line.data(), 256, pipe);) {
    lines.emplace_back(line.data());
    while (!lines.back().empty() && lines.back().back() == '\n') {
      lines.back().pop_back();
    }
  }
  const int status = pipe != nullptr ? ::pclose(pipe) : -1;
  const auto here = std::ranges::find(lines, "here");
  if (here == lines.end()) {
    fact.error = fmt::format("{} does not reach it without a question ({}): see that it works: {}",
                             shell, lines.empty() ? "no answer" : lines.back(), command);
  } else if (status == 0 && here + 1 != lines.end()) {
    fact.version = *(here + 1);
  }
  return fact;
}

/// By a child: providers of libfabric print, keep threads, and fail in ways of their own.
std::vector<std::string> boards_by_child() {
  constexpr unsigned kSecondsMax = 20;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {};
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::alarm(kSecondsMax);
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      (void)::dup2(nowhere, fd);
    }
    std::string text;
    for (const std::string& board : net::fabric::boards()) {
      text += board + "\n";
    }
    const bool is_told = ::write(ends[1], text.data(), text.size()) ==  // A pipe holds 64 KiB.
                         static_cast<ssize_t>(text.size());
    ::_exit(is_told ? 0 : 1);
  }
  (void)::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t bytes; child > 0 && (bytes = ::read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(bytes));
  }
  (void)::close(ends[0]);
  if (child > 0) {
    (void)::waitpid(child, nullptr, 0);
  }
  std::vector<std::string> boards;
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    boards.push_back(line);
  }
  return boards;
}

std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
    names.push_back(entry.path().filename());
  }
  return names;
}

/// As a job that is started from here would have it; what is wrong with the settings it would say.
std::string setting_of_drivers() {
  Settings settings{runtime::all_tunables()};
  (void)settings.load(environ);
  return std::string{settings.text(runtime::kDrivers)};
}

}  // namespace

std::optional<double> smallest_quota(const std::string& root, const std::string& groups) {
  std::optional<double> smallest;
  std::istringstream lines{groups};
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b", "4:cpu,cpuacct:/a"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const auto hierarchy = hierarchy_of(line.substr(first + 1, second - first - 1));
    std::string group = line.substr(second + 1);
    // Up to the root, which a container shows even where the path is that of the machine.
    for (bool is_over = !hierarchy; !is_over;) {
      group.erase(group.find_last_not_of('/') + 1);
      if (const auto quota = quota_in(root + *hierarchy + group)) {
        smallest = smallest ? std::min(*smallest, *quota) : quota;
      }
      is_over = group.empty();
      group.erase(group.empty() ? 0 : group.find_last_of('/'));
    }
  }
  return smallest;
}

MachineFacts examine(const std::vector<std::string>& hosts, const std::string& shell) {
  MachineFacts facts;
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    facts.shm_bytes_total = std::uint64_t{shm.f_blocks} * shm.f_frsize;
    facts.shm_bytes_free = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  }
  facts.huge_pages = word_in_brackets("/sys/kernel/mm/transparent_hugepage/enabled");
  facts.ptrace_scope = number_in<int>("/proc/sys/kernel/yama/ptrace_scope");
  facts.sibling_read_error = read_of_sibling();
  facts.barrier_error =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 ? 0 : errno;
  facts.online = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.allowed = allowed_processors(facts.online);
  facts.quota = smallest_quota("/sys/fs/cgroup", text_of("/proc/self/cgroup"));
  facts.address_limit = limit(RLIMIT_AS);
  facts.process_limit = limit(RLIMIT_NPROC);
  facts.file_limit = limit(RLIMIT_NOFILE);
  facts.map_count_max = number_in<std::uint64_t>("/proc/sys/vm/max_map_count");
  facts.overcommit = number_in<int>("/proc/sys/vm/overcommit_memory");
  if (Result<std::string> folder = status_folder(); !folder) {
    facts.folder_error = folder.error().text;
  } else if (::access(folder.value().c_str(), W_OK | X_OK) != 0) {
    facts.folder_error = system_error("cannot write to " + folder.value(), errno).text;
  }
  facts.boards = boards_by_child();
  facts.interfaces = names_in("/sys/class/net");
  facts.drivers = setting_of_drivers();
  for (const std::string& host : hosts) {
    facts.hosts.push_back(ask_host(host, shell));
  }
  return facts;
}

}  // namespace sterna::launch
