// The guardian: what it keeps, and whom it kills.
#include "launch/spawn.h"

#include <array>
#include <csignal>
#include <optional>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sterna::launch {
namespace {

constexpr int kHangMs = 30'000;  // Only what hangs takes so long.

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader = FileDescriptor{ends[0]};
    writer = FileDescriptor{ends[1]};
  }
  FileDescriptor reader;
  FileDescriptor writer;
};

/// Everybody who could write has gone.
bool has_end(const FileDescriptor& reader) {
  pollfd one{.fd = reader.get(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, kHangMs) == 1 && (one.revents & POLLHUP) != 0;
}

std::optional<Guardian> begin() {
  Result<Guardian> started = Guardian::start();
  return started ? std::optional<Guardian>{std::move(started.value())} : std::nullopt;
}

TEST(Guardian, HoldsNoPipeOfOursOpen) {
  Pipe pipe;
  std::optional<Guardian> guardian = begin();
  pipe.writer = FileDescriptor{};
  EXPECT_TRUE(has_end(pipe.reader));
  const pid_t pid = guardian->group();
  EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0) << "it waits for our end";
  guardian.reset();
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(Guardian, KillsItsGroupWhenWeEnd) {
  Pipe pipe;
  std::optional<Guardian> guardian = begin();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setpgid(0, guardian->group());
    guardian.reset();  // Its copy of what the guardian reads.
    static_cast<void>(!::write(pipe.writer.get(), "x", 1));
    for (;;) {
      ::pause();
    }
  }
  pipe.writer = FileDescriptor{};
  char byte = 0;
  ASSERT_EQ(::read(pipe.reader.get(), &byte, 1), 1);
  const pid_t pid = guardian->group();
  guardian.reset();
  EXPECT_TRUE(has_end(pipe.reader));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace sterna::launch
