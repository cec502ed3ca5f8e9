// Gathering and merging traces after a job.
#include "launch/trace_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/syscall.h"
#include "launch/remote_crew.h"
#include "runtime/settings.h"
#include "trace/perfetto.h"
#include "trace/reader.h"

namespace sterna::launch {
namespace {

namespace fs = std::filesystem;

std::string node_file(const std::string& path, std::uint32_t node) {
  return fmt::format("{}.node-{}", path, node);
}

/// What a job left that was killed with its launcher: it is not of the job that begins.
void remove_old_node_files(const fs::path& path) {
  const std::string prefix = path.filename().string() + ".node-";
  std::error_code bad;
  for (fs::directory_iterator at{path.parent_path(), bad}, end; !bad && at != end;
       at.increment(bad)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix) && name.size() > prefix.size() &&
        name.find_first_not_of("0123456789", prefix.size()) == std::string::npos) {
      ::unlink(at->path().c_str());
    }
  }
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    result += c == '\'' ? "'\\''" : std::string{c};
  }
  return result + "'";
}

/// Copies a file of another host to the same path here, and removes it there.
Result<> fetch(const std::string& ssh, const std::string& host, const std::string& path) {
  std::vector<std::string> words = remote_command(ssh, host);
  words.push_back(fmt::format("cat {0} && rm -f {0}", quoted(path)));
  std::vector<char*> arguments;
  std::ranges::transform(words, std::back_inserter(arguments),
                         [](std::string& word) { return word.data(); });
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 1;
  if (error == 0) {
    (void)system_call([&] { return ::waitpid(child, &status, 0); });
  }
  if (error != 0 || status != 0) {
    ::unlink(path.c_str());
    return Error{Errc::unreachable,
                 fmt::format("{} of host {} cannot be fetched; copy it and the others into one "
                             "folder, then: sterna trace FILES... -o FILE",
                             path, host)};
  }
  return Done{};
}

struct Input {
  std::string path;
  std::vector<char> bytes;
};

Result<> write_whole(const std::vector<Input>& inputs, const std::string& path) {
  trace::Reader reader;
  for (const Input& input : inputs) {
    if (Result<> added = reader.add(std::as_bytes(std::span{input.bytes}), input.path); !added) {
      return added;
    }
  }
  Result<trace::Timeline> timeline = reader.finish();
  if (!timeline) {
    return timeline.error();
  }
  std::ofstream file{path, std::ios::binary | std::ios::trunc};
  trace::write_tracks(timeline.value(), file);
  for (const Input& input : inputs) {
    trace::write_records(std::as_bytes(std::span{input.bytes}), file);
  }
  file.close();
  if (!file) {
    return Error{Errc::system, path + ": cannot be written (is the disk full?)"};
  }
  return Done{};
}

}  // namespace

std::string choose_trace(RunOptions& options) {
  Settings settings{runtime::all_tunables()};
  if (Result<> loaded = settings.load(environ); !loaded) {
    return {};  // make_plan says what is wrong with it.
  }
  std::string path{settings.text(runtime::kTrace)};
  for (const auto& [name, value] : options.settings) {
    path = name == runtime::kTrace.name ? value : path;
  }
  if (path.empty()) {
    return path;
  }
  std::error_code no_folder;  // Ours is gone: prepare_trace() says that nothing can be written.
  if (const fs::path whole = fs::absolute(path, no_folder); !no_folder) {
    path = whole.lexically_normal();
  }
  std::erase_if(options.settings,
                [](const auto& setting) { return setting.first == runtime::kTrace.name; });
  options.settings.emplace_back(runtime::kTrace.name, path);
  return path;
}

Result<> prepare_trace(const std::string& path) {
  const long fd =
      system_call([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600); });
  if (fd < 0) {
    return system_error("--trace: cannot write " + path, static_cast<int>(-fd));
  }
  ::close(static_cast<int>(fd));
  remove_old_node_files(path);
  return Done{};
}

Result<> finish_trace(const JobPlan& plan, const std::string& path,
                      std::vector<std::string>& warnings) {
  std::vector<Input> inputs;
  for (const CrewOrder& crew : plan.crews) {
    for (const ProcessOrder& order : crew.processes) {
      const std::string file = node_file(path, order.node);
      if (!fs::exists(file) && !is_this_host(crew.host)) {
        if (Result<> fetched = fetch(plan.options.ssh, crew.host, file); !fetched) {
          warnings.push_back(fetched.error().text);
          continue;
        }
      }
      Result<std::vector<char>> bytes = trace::load_file(file);
      if (!bytes || bytes.value().empty()) {
        // A program that does not use MPI has none.
        warnings.push_back(fmt::format("node {} left no trace", order.node));
        continue;
      }
      inputs.push_back({file, std::move(bytes.value())});
    }
  }
  if (inputs.empty()) {
    return Error{Errc::closed, "no node left a trace: only programs that use MPI or sterna.h do"};
  }
  if (Result<> written = write_whole(inputs, path); !written) {
    return written;
  }
  for (const Input& input : inputs) {
    ::unlink(input.path.c_str());
  }
  return Done{};
}

Result<> merge_traces(const std::vector<std::string>& files, const std::string& path) {
  std::vector<Input> inputs;
  for (const std::string& file : files) {
    Result<std::vector<char>> bytes = trace::load_file(file);
    if (!bytes) {
      return bytes.error();
    }
    inputs.push_back({file, std::move(bytes.value())});
  }
  return write_whole(inputs, path);
}

}  // namespace sterna::launch
