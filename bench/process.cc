// Spawns, waits, reads.
#include "bench/process.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/preferred.h"
#include "launch/spawn.h"

namespace sterna::bench {
namespace {

constexpr int kMeanwhileMs = 2;

std::string read_file(const std::string& path) {
  std::ifstream file{path};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

FileDescriptor create_file(const std::string& path) {
  return FileDescriptor{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
}

/// A word that is a number belongs to the word before it.
Readings parse(const std::string& output) {
  Readings readings;
  std::istringstream words{output};
  std::string name;
  for (std::string word; words >> word;) {
    double value = 0;
    const char* const end = word.data() + word.size();
    if (std::from_chars(word.data(), end, value).ptr == end && !name.empty()) {
      readings[name] = value;
      name.clear();
    } else {
      name = word;
    }
  }
  return readings;
}

/// The last lines, as one.
std::string last_words(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  constexpr std::size_t kBytes = 300;
  if (text.size() > kBytes) {
    text.erase(0, text.size() - kBytes);
  }
  for (char& c : text) {
    c = c == '\n' ? ' ' : c;
  }
  return text;
}

/// Ours, with `added` in the place of variables of the same names.
std::vector<std::string> environment_with(std::vector<std::string> added) {
  const std::size_t added_count = added.size();
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    const std::string_view own = *variable;
    const std::string_view name = own.substr(0, own.find('=') + 1);
    if (std::none_of(added.begin(), added.begin() + static_cast<std::ptrdiff_t>(added_count),
                     [&](const std::string& one) { return one.starts_with(name); })) {
      added.emplace_back(own);
    }
  }
  return added;
}

/// Waits until `pid` has ended or `deadline` has passed: then it is killed and false returned.
bool wait_for(pid_t pid, std::uint64_t deadline, const std::string& output_path,
              const Meanwhile& meanwhile) {
  FileDescriptor process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  pollfd ready{.fd = process.get(), .events = POLLIN, .revents = 0};
  for (;;) {
    const std::uint64_t now = now_ns();
    if (now >= deadline) {
      ::kill(-pid, SIGKILL);
      return false;
    }
    const int rest_ms = static_cast<int>((deadline - now) / 1'000'000) + 1;
    if (::poll(&ready, 1, meanwhile ? kMeanwhileMs : rest_ms) > 0) {
      return true;
    }
    if (meanwhile) {
      meanwhile(pid, read_file(output_path));
    }
  }
}

}  // namespace

Result<Readings> run_command(const Command& command, const std::string& work_folder,
                             const Meanwhile& meanwhile) {
  const std::string output_path = work_folder + "/output";
  const std::string error_path = work_folder + "/errors";
  const FileDescriptor output = create_file(output_path);
  const FileDescriptor errors = create_file(error_path);
  const std::vector<std::string> environment = environment_with(command.environment);
  const std::uint64_t begin = now_ns();
  std::optional<Preferred> preferred;
  if (command.is_preferred) {
    preferred.emplace();
  }
  Result<pid_t> pid = launch::spawn({.arguments = &command.words,
                                     .environment = &environment,
                                     .directory = work_folder,
                                     .output_fd = output.get(),
                                     .error_fd = errors.get(),
                                     .inherited_fds = {}});
  preferred.reset();
  if (!pid) {
    return pid.error();
  }
  const auto limit = static_cast<std::uint64_t>(command.seconds_max * 1e9);
  const bool in_time = wait_for(pid.value(), begin + limit, output_path, meanwhile);
  const std::uint64_t end = now_ns();
  int status = 0;
  static_cast<void>(system_call([&] { return ::waitpid(pid.value(), &status, 0); }));
  const std::string text = read_file(output_path);
  if (!in_time) {
    return Error{Errc::timed_out, fmt::format("{} did not end within {} s", command.words.front(),
                                              command.seconds_max)};
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{Errc::system, fmt::format("{} failed: {}", command.words.front(),
                                           last_words(read_file(error_path) + text))};
  }
  Readings readings = parse(text);
  readings["wall"] = static_cast<double>(end - begin) / 1e9;
  return readings;
}

}  // namespace sterna::bench
