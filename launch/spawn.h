// Starting one process with everything that ties its life to ours.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "base/syscall.h"

namespace sterna::launch {

struct SpawnOptions {
  const std::vector<std::string>* arguments = nullptr;
  const std::vector<std::string>* environment = nullptr;
  std::string directory;
  int input_fd = -1;  // -1: /dev/null.
  int output_fd = 1;
  int error_fd = 2;
  std::span<const int> inherited_fds;  // Stay open, with their numbers.
  pid_t group = 0;                     // Process group to join.
};

/// Forks and executes. The child dies with this process. What fails in the child (a directory or a
/// program that is not there) is the error returned.
[[nodiscard]] Result<pid_t> spawn(const SpawnOptions& options);

/// A process that does nothing but lead a process group and, when this process has ended in
/// whatever way, kill all of the group: ranks and what they have started.
class Guardian {
 public:
  [[nodiscard]] static Result<Guardian> start();
  /// The group, and the process that leads it.
  [[nodiscard]] pid_t group() const noexcept { return group_; }
  void signal_group(int number) const noexcept;

 private:
  Guardian(pid_t group, FileDescriptor life) : group_{group}, life_{std::move(life)} {}
  pid_t group_;
  FileDescriptor life_;  // Its other end is read by the guardian: the end of us is its end.
};

/// Lets this process open as many descriptors as the system allows; children get the old limit.
void raise_descriptor_limit();

/// What a shell would find for `program`, or empty.
[[nodiscard]] std::string find_program(const std::string& program, std::string_view path);

/// Folder of the running executable, and its own path.
[[nodiscard]] std::string own_path();
[[nodiscard]] std::string own_folder();

}  // namespace sterna::launch
