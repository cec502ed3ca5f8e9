// The windows of a link against a naive model: packets that are lost, late and doubled, with
// numbers that pass 2^32 on the way.
#include "net/rails/window.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace sterna::net {
namespace {

using Arrival = ReceiveWindow::Arrival;

constexpr std::uint32_t kStarts[] = {
    0, 1, ~std::uint32_t{0}, 0U - 5, 0U - kLinkWindow, 0x7fffffffU - 100};

/// What a map says: the numbers that have come.
std::vector<std::uint32_t> numbers_of(const ReceiveWindow& window) {
  std::array<std::uint64_t, kArrivedWords> words;
  const std::uint32_t count = window.map(words);
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 64 * count; ++i) {
    if ((words[i / 64] >> (i % 64) & 1) != 0) {
      numbers.push_back(window.expected() + 1 + i);
    }
  }
  return numbers;
}

TEST(Windows, EachPacketIsFreshOnceWhateverItsNumberAndItsTurn) {
  for (const std::uint32_t start : kStarts) {
    SCOPED_TRACE(start);
    Random random{start + 1};
    ReceiveWindow window{start};
    std::vector<bool> has_come(5000);
    std::uint32_t expected = 0;  // From `start` on.
    for (int step = 0; step < 20'000 && expected + kLinkWindow < has_come.size(); ++step) {
      const std::uint32_t back = std::min<std::uint32_t>(expected, kLinkWindow);
      const std::uint64_t some = random.below(random.chance(0.7) ? back + 4 : back + kLinkWindow);
      const std::uint32_t at =
          random.chance(0.3) ? expected : expected - back + static_cast<std::uint32_t>(some);
      ASSERT_EQ(window.take(start + at), has_come[at] ? Arrival::twice : Arrival::fresh) << at;
      has_come[at] = true;
      while (has_come[expected]) {
        ++expected;
      }
      ASSERT_EQ(window.expected(), start + expected);
      if (step % 100 == 0) {
        std::vector<std::uint32_t> beyond;
        for (std::uint32_t i = expected; i < has_come.size(); ++i) {
          if (has_come[i]) {
            beyond.push_back(start + i);
          }
        }
        ASSERT_EQ(numbers_of(window), beyond);
        ASSERT_EQ(window.has_holes(), !beyond.empty());
      }
    }
    EXPECT_GT(expected, 1000U);
    EXPECT_EQ(window.take(window.expected() + kLinkWindow), Arrival::far);
    EXPECT_EQ(window.take(window.expected() - kLinkWindow), Arrival::twice);
  }
}

TEST(Windows, PacketsThatAreSentAreHeldUntilAllBeforeThemHaveCome) {
  for (const std::uint32_t start : kStarts) {
    SCOPED_TRACE(start);
    Random random{start + 1};
    SendWindow window{start};
    HeldPacket packet;
    for (int step = 0; step < 20'000; ++step) {
      if (!window.is_full() && random.chance(0.5)) {
        const std::uint32_t number = window.next();
        window.push().packet = &packet;
        ASSERT_TRUE(window.holds(number));
        if (random.chance(0.05)) {
          window.take_back();
          ASSERT_FALSE(window.holds(number));
        }
      } else if (!window.is_empty()) {
        window[window.first() +
               static_cast<std::uint32_t>(random.below(std::min(window.count(), 8U)))]
            .packet = nullptr;
        window.trim();
        ASSERT_TRUE(window.is_empty() || window[window.first()].packet != nullptr);
      }
      ASSERT_LE(window.count(), kLinkWindow);
      ASSERT_EQ(window.is_empty(), window.count() == 0);
      ASSERT_FALSE(window.holds(window.next()) || window.holds(window.first() - 1));
    }
    EXPECT_NE(window.first(), start);
  }
  SendWindow full{~std::uint32_t{0} - 10};
  while (!full.is_full()) {
    full.push();
  }
  EXPECT_EQ(full.count(), kLinkWindow);
}

}  // namespace
}  // namespace sterna::net
