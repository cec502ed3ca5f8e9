// What channels have accepted and the network has not taken yet is counted until it has left.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

class KeptBytes : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!a.absent.empty()) {
      // Says which: libfabric, or a provider of it, is not on this machine.
      GTEST_SKIP() << a.absent;
    }
    ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "hello"));
    ASSERT_TRUE(send_patiently({&a, &b}, b.to(a, 0), "hello"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return !kept.is_any(); }));
  }
  /// Nobody polls there. Returns how many packets a channel took until it was full.
  std::size_t fill() {
    const std::size_t most = a.driver->packet_bytes_to(1);
    const std::string text(std::min<std::size_t>(30'000, most), 'x');
    std::size_t count = 0;
    while (count < 100'000 && send_text(a.to(b, 1), text) == SendState::accepted) {
      ++count;
    }
    return count;
  }
  KeptCount kept;
  TestJob job{2};
  TestNode a{choice_of(GetParam()), job, 0, {.kept = &kept}};
  TestNode b{choice_of(GetParam()), job, 1};
};

TEST_P(KeptBytes, AreNoneOnceAllHasCome) {
  const std::size_t count = fill();
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1 + count; }));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return !kept.is_any(); }));
}

/// The others leave them with the network, or in memory that the peer reads.
class KeptBytesOfWhoKeeps : public KeptBytes {};

TEST_P(KeptBytesOfWhoKeeps, AreCountedUntilTheyHaveLeft) {
  const std::size_t count = fill();
  EXPECT_TRUE(kept.is_any()) << "after " << count << " packets";
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1 + count; }));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return !kept.is_any(); }));
}

TEST_P(KeptBytesOfWhoKeeps, AreNoMoreWhenTheirPeerIsLost) {
  (void)fill();
  ASSERT_TRUE(kept.is_any());
  b.driver.reset();
  EXPECT_TRUE(poll_until({&a}, [&] { return !kept.is_any(); }));
}

constexpr auto kName = [](const auto& info) { return test_name_of(info.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, KeptBytes, testing::ValuesIn(drivers_to_test()), kName);
INSTANTIATE_TEST_SUITE_P(Decorators, KeptBytes,
                         testing::Values("sim", "count(tcp)", "delay(tcp,latency=2ms)"), kName);
INSTANTIATE_TEST_SUITE_P(Sockets, KeptBytesOfWhoKeeps,
                         testing::Values("tcp", "unix", "count(tcp)", "delay(tcp,latency=2ms)"),
                         kName);

}  // namespace
}  // namespace sterna::net
