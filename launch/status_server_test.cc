// The status socket of a job that has no descriptor left: who asks waits, and the launcher does
// not turn round for him meanwhile.
#include "launch/status_server.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "launch/played_job.h"

namespace sterna::launch {
namespace {

FileDescriptor connect_to(const std::string& path) {
  FileDescriptor client{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  return client;
}

/// As long as it lives, the process can open nothing.
struct NoDescriptors {
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = ::dup(0);
    ::close(next);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(next);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0); }
  rlimit before{};
};

TEST(StatusServer, WithoutADescriptorAClientWaitsAndIsServedLater) {
  std::string folder = "/tmp/sterna-status-test-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1), 0);
  Stage stage{runtime::JobMode::process, Temper::obedient, Temper::obedient};
  Loop& loop = stage.opened.value();
  {
    StatusServer server{loop, *stage.job};
    ASSERT_TRUE(server.open().has_value());
    const FileDescriptor client = connect_to(folder + "/sterna/job-" + std::to_string(::getpid()));
    ASSERT_EQ(::write(client.get(), "move 0 1\n", 9), 9);
    {
      const NoDescriptors none;
      loop.run_once(0);
      EXPECT_TRUE(server.is_busy()) << "it has said that it looks again";
      // The waiting client does not end the loop's sleep: only the deadline does.
      const std::uint64_t deadline_ns = now_ns() + 2'000'000;
      loop.run_once(deadline_ns);
      EXPECT_GE(now_ns(), deadline_ns);
      EXPECT_TRUE(server.is_busy());
    }
    std::string answer(256, '\0');
    ssize_t count = -1;
    while (count < 0) {  // Ends by the test's own limit of time, if it is never served.
      loop.run_once(now_ns() + 2'000'000);
      server.step();
      count = ::read(client.get(), answer.data(), answer.size());
    }
    EXPECT_NE(answer.find("ordered"), std::string::npos);
    EXPECT_FALSE(server.is_busy());
  }
  ::rmdir((folder + "/sterna").c_str());
  ::rmdir(folder.c_str());
}

}  // namespace
}  // namespace sterna::launch
