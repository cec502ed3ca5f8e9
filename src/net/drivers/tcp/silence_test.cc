// A peer that does not read is not lost, one whose host answers nothing is, whatever is under way.
#include <thread>

#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>

#include "net/drivers/builtin.h"
#include "net/drivers/tcp/driver.h"
#include "net/drivers/tcp/tunables.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Silence, APauseBetweenTwoQuestionsIsNone) {
  tcp::Silence silence;
  // The window is shut, and the system asks every 50 s, which is answered in 1 ms.
  for (std::uint64_t second = 100; second < 400; ++second) {
    const std::uint64_t ago = second % 50 * kSecond;
    EXPECT_FALSE(silence.is_too_long({.has_unanswered_bytes = false,
                                      .has_unanswered_probe = ago == 0,
                                      .sent_ago_ns = second * kSecond,
                                      .heard_ago_ns = ago == 0 ? 50 * kSecond : ago},
                                     second * kSecond, 30 * kSecond));
  }
}

TEST(Silence, BytesThatAreSentAgainAndDroppedAgainAreNone) {
  tcp::Silence silence;
  // Its host has no memory for what is sent every 50 s, and says so just after each look.
  for (std::uint64_t second = 100; second < 1000; second += 50) {
    EXPECT_FALSE(silence.is_too_long({.has_unanswered_bytes = true,
                                      .has_unanswered_probe = false,
                                      .sent_ago_ns = 1'000'000,
                                      .heard_ago_ns = 50 * kSecond},
                                     second * kSecond, 30 * kSecond));
  }
}

TEST(Silence, AQuestionWithoutAnswerIs) {
  for (const bool is_probe : {false, true}) {
    tcp::Silence silence;
    for (std::uint64_t second = 100; second <= 130; ++second) {
      EXPECT_EQ(silence.is_too_long({.has_unanswered_bytes = !is_probe,
                                     .has_unanswered_probe = is_probe,
                                     .sent_ago_ns = second % 4 * kSecond,
                                     .heard_ago_ns = (second - 90) * kSecond},
                                    second * kSecond, 30 * kSecond),
                second == 130);
    }
  }
}

/// Two nodes with a connection.
class TcpSilence : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "first"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.sink.packets.size() == 1; }));
  }
  [[nodiscard]] static Settings settings_of_test() {
    Settings settings{tcp::kTunables};
    check(settings.set("tcp_silence_timeout", "1s", SettingSource::command_line, "test")
              .has_value(),
          "the setting of the test is valid");
    return settings;
  }
  /// What comes from a is dropped, as if the host of b were gone.
  void cut() {
    sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const sock_fprog filter{.len = 1, .filter = &nothing};
    const int socket = static_cast<tcp::TcpDriver&>(*b.driver).known_channel(0)->socket();
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
    const int off = 0;  // Else b's system would find the end first, and a way to say so.
    ASSERT_EQ(::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &off, sizeof off), 0);
  }
  /// Until the network takes no more.
  std::size_t fill() {
    std::size_t count = 0;
    while (send_text(a.to(b, 1), std::string(60'000, 'x')) == SendState::accepted) {
      ++count;
    }
    return count;
  }
  void expect_lost() {
    EXPECT_TRUE(poll_until({&a}, [&] { return !a.sink.losses.empty(); }));
    ASSERT_EQ(a.sink.losses.size(), 1U);
    EXPECT_NE(a.sink.losses[0].second.find("tcp_silence_timeout"), std::string::npos)
        << a.sink.losses[0].second;
  }

  Settings settings = settings_of_test();
  TestJob job{2};
  TestNode a{choice_of("tcp"), job, 0, DriverOptions{.settings = &settings}};
  TestNode b{choice_of("tcp"), job, 1, DriverOptions{.settings = &settings}};
};

TEST_F(TcpSilence, APeerThatDoesNotReadIsNotLost) {
  const std::size_t count = fill();
  EXPECT_FALSE(poll_until({&a}, [&] { return !a.sink.losses.empty(); }, 5 * kSecond));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == count; }));
}

TEST_F(TcpSilence, APeerThatAcknowledgesNothingIsLost) {
  cut();
  EXPECT_EQ(send_text(a.to(b, 1), "is there anybody?"), SendState::accepted);
  expect_lost();
}

TEST_F(TcpSilence, APeerThatDoesNotReadAndIsCutOffIsLost) {
  fill();
  EXPECT_FALSE(poll_until({&a}, [&] { return !a.sink.losses.empty(); }, 2 * kSecond));
  cut();
  expect_lost();
}

TEST_F(TcpSilence, WhoSleepsHearsOfWhatAnotherThreadSends) {
  cut();
  ASSERT_TRUE(poll_until({&a}, [&] { return a.driver->prepare_sleep(); }));
  std::thread sender{[&] { EXPECT_EQ(send_text(a.to(b, 1), "anybody?"), SendState::accepted); }};
  sender.join();
  do {
    ASSERT_TRUE(is_readable(a.driver->fd(), kPatienceMs)) << "nothing wakes it";
    a.driver->end_sleep();
    do {
      a.poll();
    } while (a.sink.losses.empty() && !a.driver->prepare_sleep());
  } while (a.sink.losses.empty());
  expect_lost();
}

TEST_F(TcpSilence, NobodyIsWokenWhereNothingIsUnderWay) {
  EXPECT_EQ(send_text(a.to(b, 1), "second"), SendState::accepted);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.packets.size() == 1; }));
    int polls = 0;
    ASSERT_TRUE(poll_until({&a}, [&] { return ++polls > 100 && a.driver->prepare_sleep(); }));
    a.driver->end_sleep();
    if (!is_readable(a.driver->fd(), 1'500)) {
      return;  // Several ticks would have passed.
    }
  }
  FAIL() << "it ticks for ever";
}

}  // namespace
}  // namespace sterna::net
