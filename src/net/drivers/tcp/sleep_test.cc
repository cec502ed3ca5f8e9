// A sender that is held up in the middle of its send: who polls must not sleep meanwhile, for
// nothing would wake it for the packet that the sender then leaves behind.
#include <atomic>
#include <csignal>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

constexpr std::size_t kPageBytes = 4096;

/// A page whose first reader waits until open() is called: its fault does.
struct HeldPage {
  HeldPage()
      : memory{static_cast<char*>(
            ::mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))} {
    self = this;
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) {
      HeldPage& page = *self;
      if (info->si_addr < page.memory || info->si_addr >= page.memory + kPageBytes) {
        ::_exit(99);
      }
      page.has_reader = true;
      while (!page.is_open) {
      }
      ::mprotect(page.memory, kPageBytes, PROT_READ);
    };
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before);
  }
  ~HeldPage() {
    ::sigaction(SIGSEGV, &before, nullptr);
    ::munmap(memory, kPageBytes);
  }

  char* const memory;
  std::atomic<bool> has_reader{false};
  std::atomic<bool> is_open{false};
  struct sigaction before {};
  static inline HeldPage* self = nullptr;
};

TEST(TcpSleep, NobodySleepsWhileASenderIsAtIt) {
  TestJob job{2};
  TestNode a{choice_of("tcp"), job, 0};
  TestNode b{choice_of("tcp"), job, 1};
  HeldPage page;
  Channel& there = a.to(b, 1);
  // There is no connection yet, so the packet is copied: the sender stops there.
  std::thread sender{[&] {
    const Piece piece{reinterpret_cast<const std::byte*>(page.memory), 100};
    EXPECT_EQ(there.try_send({&piece, 1}), SendState::accepted);
  }};
  EXPECT_TRUE(poll_until({&b}, [&] { return page.has_reader.load(); }));
  // Now the connection stands: a has nothing else to wait for.
  EXPECT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "here"));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return a.sink.packets.size() == 1; }));
  for (int i = 0; i < 1000; ++i) {
    a.poll();
    const bool sleeps = a.driver->prepare_sleep();
    EXPECT_FALSE(sleeps);
    if (sleeps) {
      a.driver->end_sleep();
      break;
    }
  }
  page.is_open = true;
  sender.join();
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
}

}  // namespace
}  // namespace sterna::net
