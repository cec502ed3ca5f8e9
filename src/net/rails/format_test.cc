// The format of links, their windows, and the rate of a rail.
#include "net/rails/format.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/rails/plan.h"
#include "net/rails/rate.h"
#include "net/rails/window.h"

namespace sterna::net {
namespace {

std::vector<std::byte> packet_of(LinkHeader header, std::size_t bytes, const SumKey* key) {
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.flags |= key != nullptr ? kLinkHasSum : 0;
  std::vector<std::byte> packet(kLinkHeaderBytes + bytes, std::byte{7});
  std::memcpy(packet.data(), &header, kLinkHeaderBytes);
  if (key != nullptr) {
    header.sum = link_sum(packet, *key);
    std::memcpy(packet.data(), &header, kLinkHeaderBytes);
  }
  return packet;
}

const SumKey kKey = make_sum_key(std::as_bytes(std::span{"the secret of a job"}));

TEST(LinkFormat, EveryChangedByteIsFound) {
  const auto packet = packet_of({.kind = LinkKind::data, .sequence = 9}, 100, &kKey);
  LinkPacket read;
  ASSERT_EQ(decode_link(packet, true, kKey, read), LinkDecode::good);
  EXPECT_EQ(read.header.sequence, 9U);
  EXPECT_EQ(read.payload.size(), 100U);
  for (std::size_t i = 0; i < packet.size(); ++i) {
    for (const int bit : {1, 2, 128}) {
      auto changed = packet;
      changed[i] ^= static_cast<std::byte>(bit);
      EXPECT_NE(decode_link(changed, true, kKey, read), LinkDecode::good) << i;
    }
  }
}

TEST(LinkFormat, APacketWithoutASumIsNotBelievedWhereThereAreSums) {
  LinkPacket read;
  const auto packet = packet_of({.kind = LinkKind::data}, 10, nullptr);
  EXPECT_EQ(decode_link(packet, true, kKey, read), LinkDecode::corrupt);
  EXPECT_EQ(decode_link(packet, false, kKey, read), LinkDecode::good);
}

TEST(LinkFormat, WhatBreaksTheFormatIsRefused) {
  LinkPacket read;
  const auto decode = [&](const std::vector<std::byte>& packet) {
    return decode_link(packet, false, kKey, read);
  };
  EXPECT_EQ(decode({}), LinkDecode::malformed);
  EXPECT_EQ(decode(std::vector<std::byte>(31)), LinkDecode::malformed);
  EXPECT_EQ(decode(packet_of({.kind = LinkKind::data}, 0, nullptr)), LinkDecode::malformed);
  EXPECT_EQ(decode(packet_of({.kind = LinkKind::probe}, 8, nullptr)), LinkDecode::malformed);
  EXPECT_EQ(decode(packet_of({.kind = static_cast<LinkKind>(1)}, 8, nullptr)),
            LinkDecode::malformed);
  const LinkHeader ack{.kind = LinkKind::ack, .flags = kLinkHasExpected};
  EXPECT_EQ(decode(packet_of(ack, 16, nullptr)), LinkDecode::good);
  EXPECT_EQ(decode(packet_of(ack, 12, nullptr)), LinkDecode::malformed);
  EXPECT_EQ(decode(packet_of(ack, kLinkWindow / 8 + 8, nullptr)), LinkDecode::malformed);
  auto longer = packet_of({.kind = LinkKind::data}, 10, nullptr);
  longer.push_back({});
  EXPECT_EQ(decode(longer), LinkDecode::malformed);
}

TEST(ReceiveWindow, TakesEachNumberOnceInAnyOrderAlsoWhereNumbersWrap) {
  ReceiveWindow window;
  Random random{3};
  std::vector<std::uint32_t> numbers(64);
  std::uint32_t base = 0;
  for (int round = 0; round < 200; ++round) {
    for (std::uint32_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = base + i;
    }
    for (std::size_t i = numbers.size() - 1; i != 0; --i) {
      std::swap(numbers[i], numbers[random.below(i + 1)]);
    }
    for (const std::uint32_t number : numbers) {
      EXPECT_EQ(window.take(number), ReceiveWindow::Arrival::fresh);
      EXPECT_EQ(window.take(number), ReceiveWindow::Arrival::twice);
    }
    base += static_cast<std::uint32_t>(numbers.size());
    EXPECT_EQ(window.expected(), base);
    EXPECT_FALSE(window.has_holes());
  }
  EXPECT_EQ(window.take(base + kLinkWindow), ReceiveWindow::Arrival::far);
}

TEST(ReceiveWindow, TellsWhatCameOutOfTurn) {
  ReceiveWindow window;
  for (const std::uint32_t number : {0U, 2U, 3U, 70U, kLinkWindow}) {
    (void)window.take(number);
  }
  std::array<std::uint64_t, kArrivedWords> words;
  EXPECT_EQ(window.expected(), 1U);
  EXPECT_EQ(window.map(words), kArrivedWords);
  EXPECT_EQ(words[0], 3U);  // 2 and 3.
  EXPECT_EQ(words[1], std::uint64_t{1} << (70 - 2 - 64));
  EXPECT_EQ(words[kArrivedWords - 1], std::uint64_t{1} << 62);
}

TEST(SendWindow, WhatHasComeLeavesAtTheFront) {
  SendWindow window;
  HeldPacket packet;
  for (std::uint32_t i = 0; i < kLinkWindow; ++i) {
    window.push().packet = &packet;
  }
  EXPECT_TRUE(window.is_full());
  window[1].packet = nullptr;
  window.trim();
  EXPECT_EQ(window.first(), 0U);
  window[0].packet = nullptr;
  window.trim();
  EXPECT_EQ(window.first(), 2U);
  EXPECT_FALSE(window.holds(1));
  EXPECT_TRUE(window.holds(2));
  EXPECT_FALSE(window.holds(kLinkWindow));
}

TEST(RailRate, IsWhatComesBackPerTimeWhileTheRailIsFull) {
  RailRate rate;
  rate.begin(1000, 1000, 1000);
  EXPECT_EQ(rate.ps_per_byte(), 1000U);
  // 100 bytes a microsecond, ten packets on their way.
  std::vector<RailRate::Stamp> stamps;
  std::uint64_t now_ns = 1;
  std::vector<std::uint64_t> sent_ns;
  const auto send = [&] {
    stamps.push_back(rate.sent(1000, now_ns));
    sent_ns.push_back(now_ns);
  };
  for (int i = 0; i < 10; ++i) {
    send();
  }
  now_ns += 2000;  // The way there and back.
  for (std::size_t i = 0; i < 1000; ++i) {
    now_ns += 10'000;
    rate.acked(stamps[i], 1000, sent_ns[i], now_ns);
    send();
  }
  EXPECT_NEAR(static_cast<double>(rate.ps_per_byte()), 10'000, 100);
  EXPECT_EQ(rate.in_flight(), 10'000U);
}

TEST(RailRate, LateNewsMakesNoneFaster) {
  RailRate rate;
  rate.begin(1000, 1000, 1000);
  // One packet comes every 10 us. Of the first the news is 35 us late; then another one is sent.
  std::vector<RailRate::Stamp> stamps;
  for (int i = 0; i < 5; ++i) {
    stamps.push_back(rate.sent(1000, 1));
  }
  rate.acked(stamps[0], 1000, 1, 45'000);
  const RailRate::Stamp last = rate.sent(1000, 46'000);
  for (std::size_t i = 1; i < 5; ++i) {
    rate.acked(stamps[i], 1000, 1, 51'000);
  }
  rate.acked(last, 1000, 46'000, 61'000);
  EXPECT_NEAR(static_cast<double>(rate.ps_per_byte()), 10'000, 1000);
}

TEST(RailRate, TheWayOfTheFirstPacketIsNoTimeOfItsBytes) {
  RailRate rate;
  rate.begin(10'000, 20'000, 1000);
  for (const std::uint64_t begin_ns : {1ULL, 1'000'000ULL}) {
    std::vector<RailRate::Stamp> stamps;
    for (int i = 0; i < 4; ++i) {
      stamps.push_back(rate.sent(1000, begin_ns));
    }
    // They come together with the first packet of the answer, which takes 15 us, 5 us after the
    // last has come.
    for (const RailRate::Stamp& stamp : stamps) {
      rate.acked(stamp, 1000, begin_ns, begin_ns + 40'000 + 40'000 + 20'000, 20'000);
    }
  }
  EXPECT_EQ(rate.ps_per_byte(), 10'000U);
}

TEST(RailRate, IsTheSampledOneUnlessMessagesShowAnother) {
  RailRate rate;
  rate.begin(1000, 1000, 1000);
  rate.know(10'000, 0, 1000);
  std::uint64_t now_ns = 1;
  const auto burst = [&](std::uint64_t ps_per_byte) {
    std::array<RailRate::Stamp, 4> stamps;
    for (RailRate::Stamp& stamp : stamps) {
      stamp = rate.sent(1000, now_ns);
    }
    const std::uint64_t sent_ns = now_ns;
    now_ns += 2000 + 4 * ps_per_byte;
    for (const RailRate::Stamp& stamp : stamps) {
      rate.acked(stamp, 1000, sent_ns, now_ns);
    }
    now_ns += 1'000'000'000;  // What was before is old.
  };
  burst(8500);
  EXPECT_EQ(rate.ps_per_byte(), 10'000U);
  burst(12'000);
  EXPECT_EQ(rate.ps_per_byte(), 10'000U);
  burst(6500);
  EXPECT_EQ(rate.ps_per_byte(), 10'000U) << "news of many packets at once look like that";
  burst(15'000);
  EXPECT_NEAR(static_cast<double>(rate.ps_per_byte()), 15'000, 10);
  burst(5000);
  EXPECT_NEAR(static_cast<double>(rate.ps_per_byte()), 5000, 10);
}

TEST(RailRate, IsNotJudgedByWhatWasNotSent) {
  RailRate rate;
  rate.begin(1000, 1000, 1000);
  for (std::uint64_t now_ns = 1; now_ns < 100'000'000; now_ns += 1'000'000) {
    const RailRate::Stamp stamp = rate.sent(80, now_ns);
    rate.acked(stamp, 80, now_ns, now_ns + 500'000);
  }
  EXPECT_FALSE(rate.is_measured());
  EXPECT_EQ(rate.ps_per_byte(), 1000U);
}

TEST(RailRate, OfARailThatWasBetterIsTriedAgain) {
  RailRate rate;
  rate.begin(1000, 8000, 1000);
  std::uint64_t now_ns = 1;
  const auto exchange = [&](std::uint64_t bytes, std::uint64_t took_ns) {
    const RailRate::Stamp stamp = rate.sent(bytes, now_ns);
    EXPECT_FALSE(rate.is_to_try(now_ns)) << "something is on its way";
    now_ns += took_ns;
    rate.took(took_ns, bytes, now_ns);
    rate.acked(stamp, bytes, now_ns - took_ns, now_ns);
  };
  exchange(2000, 36'000);  // 100 bytes a microsecond, and the way there and back.
  EXPECT_FALSE(rate.is_poor());
  EXPECT_EQ(rate.ps_per_byte(), 10'000U);
  now_ns += 10'000'000'000;     // What is known is old by now.
  exchange(2000, 400'016'000);  // It got stuck.
  EXPECT_TRUE(rate.is_poor());
  EXPECT_EQ(rate.round_trip_ns(), 400'016'000U);
  EXPECT_EQ(rate.least_round_trip_ns(), 16'000U) << "two measures are few";
  EXPECT_EQ(rate.ps_per_byte(), 200'000'000U);
  EXPECT_EQ(rate.least_ps_per_byte(), 10'000U);
  // A packet would take 0.6 s, if that were true.
  now_ns += 2'000'000'000 - 1;
  EXPECT_FALSE(rate.is_to_try(now_ns));
  now_ns += 1;
  EXPECT_TRUE(rate.is_to_try(now_ns));
  exchange(1000, 15'000);  // It is whole.
  EXPECT_FALSE(rate.is_poor());
  EXPECT_EQ(rate.round_trip_ns(), 15'000U);
  EXPECT_NEAR(static_cast<double>(rate.ps_per_byte()), 15'000, 200) << "so much has passed";
}

TEST(RailRate, SaysWhenWhatWasSentHasPassed) {
  RailRate rate;
  rate.begin(1000, 8000, 1000);
  EXPECT_TRUE(rate.is_through(0));
  const RailRate::Stamp first = rate.sent(2000, 10'000);
  const RailRate::Stamp second = rate.sent(1000, 10'500);
  EXPECT_FALSE(rate.is_through(12'900)) << "3000 bytes, one after the other";
  EXPECT_TRUE(rate.is_through(13'000));
  rate.acked(first, 2000, 10'000, 11'000);  // Earlier than was thought.
  EXPECT_FALSE(rate.is_through(11'200));
  EXPECT_TRUE(rate.is_through(12'000));
  rate.acked(second, 1000, 10'500, 11'200);
  EXPECT_TRUE(rate.is_through(11'200)) << "nothing is on its way";
}

TEST(RailRate, BytesAreNoLatency) {
  RailRate rate;
  rate.begin(5000, 20'000, 1000);
  EXPECT_EQ(rate.latency_ns(), 20'000U);
  rate.took(100'000, 4000, 1, 4000 * 5);  // 20 us there and back, and each time 4000 bytes.
  EXPECT_EQ(rate.round_trip_ns(), 100'000U);
  EXPECT_EQ(rate.latency_ns(), 30'000U);
  rate.took(90'000, 40'000, 2);
  EXPECT_EQ(rate.latency_ns(), 90'000U / 16 / 2) << "the rate is better than was thought";
}

TEST(RailRate, ASampleIsAMeasure) {
  RailRate rate;
  rate.begin(5000, 1000, 1000);
  rate.took(700'000, 100, 1);  // Held up by something else.
  rate.know(5000, 100, 20'000);
  EXPECT_EQ(rate.latency_ns(), 20'000U);
  rate.took(600'000, 100, 2);
  EXPECT_EQ(rate.latency_ns(), 20'000U);
  rate.took(600'000, 0, 6'000'000'000);
  EXPECT_EQ(rate.latency_ns(), 300'000U) << "what is old does not count";
  EXPECT_TRUE(rate.is_poor()) << "but it is tried";
  RailRate early;
  early.begin(5000, 1000, 1000);
  early.know(5000, 100, 20'000);
  early.took(600'000, 100, 1);
  EXPECT_EQ(early.latency_ns(), 20'000U);
}

TEST(RailRate, OfALongWayIsWhatManyPacketsHaveTaken) {
  RailRate rate;
  rate.begin(1000, 8000, 1000);
  std::uint64_t now_ns = 1;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(rate.is_poor(), i != 0) << "it was expected to be shorter";
    now_ns += 50'000'000;
    rate.took(50'000'000, 100, now_ns);
  }
  EXPECT_FALSE(rate.is_poor());
  EXPECT_EQ(rate.least_round_trip_ns(), 50'000'000U);
}

TEST(Rails, AreThoseOfTheFirstNetworkOrOfAll) {
  const std::vector<std::string> names{"shm", "tcp@eth0", "tcp@eth1", "fabric"};
  using Chosen = std::vector<std::uint16_t>;
  EXPECT_EQ(choose_rails(names, {true, true, true, true}, false), Chosen{0});
  EXPECT_EQ(choose_rails(names, {false, true, true, true}, false), (Chosen{1, 2}));
  EXPECT_EQ(choose_rails(names, {false, true, true, true}, true), (Chosen{1, 2, 3}));
  EXPECT_EQ(choose_rails(names, {false, false, false, false}, true), Chosen{});
  const std::vector<std::string> decorated{"drop(delay(tcp@eth0))", "tcp", "unix",
                                           "trace(tcp@eth1)"};
  EXPECT_EQ(choose_rails(decorated, {true, true, true, true}, false), (Chosen{0, 1, 3}));
  const std::vector<std::string> repeated{"tcp", "tcp*2", "delay(tcp@eth0)*2", "unix"};
  EXPECT_EQ(choose_rails(repeated, {true, true, true, true}, false), (Chosen{0, 1, 2}));
}

TEST(Rails, MakeALinkWhereTheyAreSeveralOrLosePacketsOrItIsAskedFor) {
  const WayDriver memory{"shm", {.direct_mb_per_s = 1000}, true};
  const WayDriver wire{"tcp@eth0", {}, true};
  const WayDriver other{"tcp@eth1", {}, true};
  const WayDriver far{"tcp@eth2", {}, false};
  const WayDriver lossy{"drop(shm)", {.is_reliable = false, .direct_mb_per_s = 1000}, true};
  const auto plan = [](const std::vector<WayDriver>& drivers, const LinkWishes& wishes = {}) {
    return plan_way(drivers, wishes);
  };
  EXPECT_FALSE(plan({wire}).is_link);
  EXPECT_FALSE(plan({wire, far}).is_link);
  EXPECT_TRUE(plan({wire, other}).is_link);
  EXPECT_TRUE(plan({wire}, {.use = LinkUse::always}).is_link);
  EXPECT_TRUE(plan({lossy}).is_link);
  EXPECT_FALSE(plan({memory, wire}).is_link) << "the first network alone";
  const WayPlan all = plan({memory, wire}, {.are_all_rails = true});
  EXPECT_FALSE(all.is_link) << "what is copied directly takes one rail";
  EXPECT_EQ(all.rails.size(), 2U);
  EXPECT_FALSE(plan({memory}, {.use = LinkUse::always}).is_link);
  EXPECT_TRUE(plan({memory}, {.has_sums = true}).is_link);
  EXPECT_TRUE(plan({far}).rails.empty());
}

}  // namespace
}  // namespace sterna::net
