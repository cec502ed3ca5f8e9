// Who sleeps for a connection, or waits for it without the bookkeeping of a sleep, misses nothing.
// A sender that is held up in the middle of its send: who polls must not sleep meanwhile, for
// nothing would wake it for the packet that the sender then leaves behind.
#include <atomic>
#include <csignal>
#include <thread>

#include <poll.h>
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

/// Two nodes with a connection. What one sends is there as soon as it has been sent.
class TcpHear : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    EXPECT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "first"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.sink.packets.size() == 1; }));
    for (int i = 0; i < 3; ++i) {  // What belongs to the beginning is over.
      a.poll();
      b.poll();
    }
  }
  [[nodiscard]] bool hears() {
    (void)a.driver->hear();
    a.poll();
    return a.driver->hear();
  }
  [[nodiscard]] bool is_ringing(int wait_ms = 0) const {
    pollfd waits{.fd = a.driver->fd(), .events = POLLIN, .revents = 0};
    return ::poll(&waits, 1, wait_ms) == 1;
  }

  TestJob job{2};
  TestNode a{choice_of(GetParam()), job, 0};
  TestNode b{choice_of(GetParam()), job, 1};
};

TEST_P(TcpHear, WhoHasReadAPacketNeedNotReadInVainToHear) {
  ASSERT_EQ(send_text(b.to(a, 0), "second"), SendState::accepted);
  a.poll();
  a.poll();
  ASSERT_EQ(a.sink.packets.size(), 2U);
  EXPECT_TRUE(hears());
  EXPECT_FALSE(is_ringing());  // Not for what has been read.
  ASSERT_EQ(send_text(b.to(a, 0), "third"), SendState::accepted);
  EXPECT_TRUE(is_ringing(kPatienceMs));
}

TEST_P(TcpHear, NobodyHearsWhatWaitsInTheSocket) {
  const std::string text(60'000, 'x');  // The first poll takes a part of it.
  ASSERT_EQ(send_text(b.to(a, 0), text), SendState::accepted);
  ASSERT_TRUE(is_ringing(kPatienceMs));
  EXPECT_FALSE(hears());
  EXPECT_TRUE(poll_until({&a}, [&] { return a.sink.packets.size() == 2; }));
  EXPECT_TRUE(hears());
}

TEST_P(TcpHear, NobodyHearsWhatHasBeenReadAndNotHandedOver) {
  for (const char* const text : {"1", "2", "3"}) {
    ASSERT_EQ(send_text(b.to(a, 0), text), SendState::accepted);
  }
  ASSERT_TRUE(is_ringing(kPatienceMs));
  (void)a.driver->hear();
  EXPECT_EQ(a.poll(1), 1U);
  EXPECT_FALSE(a.driver->hear());
  EXPECT_EQ(a.poll(1), 1U);
  EXPECT_FALSE(a.driver->hear());
  EXPECT_EQ(a.poll(1), 1U);
  EXPECT_TRUE(hears());
}

TEST_P(TcpHear, RoomIsHeardOf) {
  const std::string text(60'000, 'x');
  Channel& there = a.to(b, 1);
  std::size_t count = 0;
  while (send_text(there, text) == SendState::accepted) {
    ++count;  // Until the network takes no more.
  }
  ASSERT_TRUE(hears());
  EXPECT_FALSE(is_ringing());
  EXPECT_TRUE(poll_until({&b}, [&] { return !b.sink.packets.empty() && is_ringing(); }));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == count; }));
}

INSTANTIATE_TEST_SUITE_P(Ways, TcpHear, testing::Values("tcp", "unix"),
                         [](const auto& one) { return std::string{one.param}; });

}  // namespace
}  // namespace sterna::net
