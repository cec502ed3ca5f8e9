// There: the shape and the extents of a rank, an empty one last. Back: what it wrote, and the rank
// again or its status. The receiver starts each turn with its fingerprint.
#include "program/testhost/move.h"

#include <cstring>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "threads/thread.h"

namespace sterna::program {
namespace {

void write_all(int fd, const void* bytes, std::size_t count) {
  for (const char* at = static_cast<const char*>(bytes); count != 0;) {
    const ssize_t done = ::write(fd, at, count);
    check(done > 0, "the other process reads");
    at += done;
    count -= static_cast<std::size_t>(done);
  }
}

void read_all(int fd, void* bytes, std::size_t count) {
  for (char* at = static_cast<char*>(bytes); count != 0;) {
    const ssize_t done = ::read(fd, at, count);
    check(done > 0, "the other process writes");
    at += done;
    count -= static_cast<std::size_t>(done);
  }
}

template <typename T>
void put(int fd, const T& value) {
  write_all(fd, &value, sizeof value);
}

template <typename T>
T get(int fd) {
  T value;
  read_all(fd, &value, sizeof value);
  return value;
}

void put_text(int fd, const std::string& text) {
  put(fd, text.size());
  write_all(fd, text.data(), text.size());
}

std::string get_text(int fd) {
  std::string text(get<std::size_t>(fd), '\0');
  read_all(fd, text.data(), text.size());
  return text;
}

void send_rank(TestHost& host, std::uint32_t rank, int fd) {
  memory::RankSlot& slot = host.slot(rank);
  put(fd, memory::shape_of(slot));
  const auto stack_pointer = reinterpret_cast<std::uintptr_t>(slot.thread->context.stack);
  // Collected first: nothing may change while it is walked.
  std::vector<memory::Extent> extents;
  const auto add = [&](std::span<std::byte> bytes) {
    extents.push_back({reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size()});
  };
  memory::for_each_live_extent(slot, stack_pointer, add);
  host.program().for_each_image_extent(slot, add);
  for (const memory::Extent& extent : extents) {
    put(fd, extent);
    write_all(fd, reinterpret_cast<const void*>(extent.base), extent.bytes);
  }
  put(fd, memory::Extent{});
  host.let_go(rank);
}

std::uint32_t receive_rank(TestHost& host, int fd) {
  const auto shape = get<memory::RankShape>(fd);
  auto adopted = host.space().adopt_rank(shape);
  check(adopted.has_value(), adopted.has_value() ? "" : adopted.error().text.c_str());
  for (;;) {
    const auto extent = get<memory::Extent>(fd);
    if (extent.bytes == 0) {
      break;
    }
    read_all(fd, reinterpret_cast<void*>(extent.base), extent.bytes);
  }
  return shape.rank;
}

}  // namespace

OtherProcess::OtherProcess(const std::string& program, std::uint32_t rank_count) {
  int fds[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "a socket pair opens");
  const std::string fd = std::to_string(fds[1]);
  const std::string ranks = std::to_string(rank_count);
  const char* arguments[] = {"program_tests", "--receive",   fd.c_str(),
                             program.c_str(), ranks.c_str(), nullptr};
  pid_t process = -1;
  check(::posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments),
                      environ) == 0,
        "the test starts itself again");
  ::close(fds[1]);
  fd_ = fds[0];
  process_ = process;
}

OtherProcess::~OtherProcess() {
  // It may be about to write: read until it has seen the end.
  ::shutdown(fd_, SHUT_WR);
  for (char rest[64]; ::read(fd_, rest, sizeof rest) > 0;) {
  }
  ::close(fd_);
  int status = 0;
  ::waitpid(process_, &status, 0);
  check(status == 0, "the other process ends well");
}

void OtherProcess::send(TestHost& host, std::uint32_t rank) {
  check(get<std::uint64_t>(fd_) == host.program().fingerprint(),
        "both processes have the program at the same addresses");
  send_rank(host, rank, fd_);
}

bool OtherProcess::run_and_return(TestHost& host, std::uint32_t rank) {
  const bool has_ended = get<bool>(fd_);
  RankOutcome& outcome = host.outcome(rank);
  outcome.out += get_text(fd_);
  outcome.err += get_text(fd_);
  if (has_ended) {
    outcome.has_ended = true;
    outcome.status = get<int>(fd_);
    return false;
  }
  check(receive_rank(host, fd_) == rank, "the rank that was sent comes back");
  host.take_in(host.slot(rank));
  return true;
}

int run_on_two(TestHost& host, const std::string& name, std::vector<std::string> arguments) {
  OtherProcess other{kTestPrograms + name, 1};
  host.run(name, std::move(arguments), {"HOME=/nowhere"});
  int moves = 0;
  while (!host.outcome(0).has_ended) {
    check(!host.paused().empty(), "a rank that has not ended is at a pause");
    other.send(host, 0);
    ++moves;
    if (!other.run_and_return(host, 0)) {
      break;
    }
    ++moves;
    host.run();
  }
  return moves;
}

int receive_and_run(int fd, const std::string& program, std::uint32_t rank_count) {
  TestHost host{{.rank_count = rank_count}};
  auto opened = host.open(program);
  check(opened.has_value(), "the second process opens the program too");
  for (;;) {
    put(fd, host.program().fingerprint());
    char next = 0;
    if (::recv(fd, &next, 1, MSG_PEEK) <= 0) {
      return 0;
    }
    const std::uint32_t rank = receive_rank(host, fd);
    host.take_in(host.slot(rank));
    host.run();
    RankOutcome outcome = std::exchange(host.outcome(rank), {});
    put(fd, outcome.has_ended);
    put_text(fd, outcome.out);
    put_text(fd, outcome.err);
    if (outcome.has_ended) {
      put(fd, outcome.status);
    } else {
      send_rank(host, rank, fd);
    }
  }
}

}  // namespace sterna::program
