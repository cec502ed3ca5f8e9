// What decorators change: each kind of fault happens as often as asked, to the same packets in each
// run, and to no others; delays last; figures count.
#include <cstdio>
#include <map>
#include <set>

#include "base/trace.h"
#include "base/trace_lane.h"
#include "net/drivers/builtin.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

constexpr std::size_t kCount = 3000;

std::string text_of(std::size_t i) {
  return std::to_string(i) + "." + std::string(i % 200, 'x');
}

/// Sends kCount packets from node 0 to node 1, polls both, and returns what arrived.
class Faults : public testing::TestWithParam<std::string> {
 protected:
  std::vector<std::string> arrived(const std::string& what) {
    TestJob job{2};
    TestNode a{choice_of(what), job, 0};
    TestNode b{choice_of(what), job, 1};
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_TRUE(send_patiently({&a, &b}, a.to(b, 1), text_of(i)));
    }
    a.driver->close();
    EXPECT_TRUE(poll_until({&a, &b}, [&] { return a.driver->is_drained(); }));
    // What is drained is with the network: until nothing comes any more.
    for (int quiet = 0; quiet < 2000; quiet = b.poll() == 0 ? quiet + 1 : 0) {
    }
    figures = a.driver->figures();
    capabilities = a.driver->capabilities();
    std::vector<std::string> texts;
    for (auto& [from, text] : b.sink.packets) {
      EXPECT_EQ(from, 0U);
      texts.push_back(std::move(text));
    }
    return texts;
  }
  std::string around(const std::string& decorator, const std::string& parameters) {
    return decorator + "(" + GetParam() + "," + parameters + ")";
  }

  std::string figures;
  Capabilities capabilities;
};

TEST_P(Faults, DropLosesSomePacketsAndKeepsTheOrderOfOthers) {
  const auto texts = arrived(around("drop", "rate=100000,seed=3"));
  EXPECT_FALSE(capabilities.is_reliable);
  EXPECT_TRUE(capabilities.is_ordered);
  EXPECT_GT(texts.size(), kCount * 85 / 100);
  EXPECT_LT(texts.size(), kCount * 95 / 100);
  std::size_t next = 0;
  for (const std::string& text : texts) {
    while (next < kCount && text_of(next) != text) {
      ++next;
    }
    ASSERT_LT(next++, kCount) << text;
  }
  EXPECT_NE(figures.find(std::to_string(kCount - texts.size()) + " of 3000"), std::string::npos)
      << figures;
}

TEST_P(Faults, TheSameSeedMeetsTheSamePackets) {
  const auto first = arrived(around("drop", "rate=50000,seed=7"));
  EXPECT_EQ(arrived(around("drop", "rate=50000,seed=7")), first);
  EXPECT_NE(arrived(around("drop", "rate=50000,seed=8")), first);
}

TEST_P(Faults, CorruptChangesSomePacketsALittle) {
  const auto texts = arrived(around("corrupt", "rate=100000"));
  EXPECT_FALSE(capabilities.is_reliable);
  ASSERT_EQ(texts.size(), kCount);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::string right = text_of(i);
    if (texts[i] == right) {
      continue;
    }
    ++wrong;
    if (texts[i].size() == right.size()) {
      int bits = 0;
      for (std::size_t k = 0; k < right.size(); ++k) {
        bits += __builtin_popcount(static_cast<unsigned char>(texts[i][k] ^ right[k]));
      }
      EXPECT_EQ(bits, 1);
    } else {
      EXPECT_EQ(texts[i], right.substr(0, texts[i].size()));
    }
  }
  EXPECT_GT(wrong, kCount * 5 / 100);
  EXPECT_LT(wrong, kCount * 15 / 100);
}

TEST_P(Faults, DuplicateBringsSomeTwiceAndAllOnce) {
  const auto texts = arrived(around("duplicate", "rate=100000"));
  EXPECT_FALSE(capabilities.is_reliable);  // Not once.
  EXPECT_FALSE(capabilities.is_ordered);
  const std::set<std::string> once(texts.begin(), texts.end());
  EXPECT_EQ(once.size(), kCount);
  EXPECT_GT(texts.size(), kCount * 102 / 100);
}

TEST_P(Faults, ReorderBringsAllOnceAndSomeLater) {
  auto texts = arrived(around("reorder", "rate=100000"));
  EXPECT_TRUE(capabilities.is_reliable);
  EXPECT_FALSE(capabilities.is_ordered);
  ASSERT_EQ(texts.size(), kCount);
  std::size_t late = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    late += texts[i] != text_of(i) ? 1 : 0;
  }
  EXPECT_GT(late, kCount * 2 / 100);
  const std::set<std::string> once(texts.begin(), texts.end());
  EXPECT_EQ(once.size(), kCount);
}

TEST_P(Faults, OneMayBeAroundAnother) {
  const auto texts = arrived("count(drop(duplicate(" + GetParam() + ",rate=500000),rate=500000))");
  EXPECT_FALSE(capabilities.is_reliable);
  EXPECT_FALSE(capabilities.is_ordered);
  const std::set<std::string> once(texts.begin(), texts.end());
  EXPECT_GT(texts.size(), once.size());
  EXPECT_LT(once.size(), kCount * 6 / 10);
  EXPECT_NE(figures.find("count(drop(duplicate("), std::string::npos) << figures;
  EXPECT_NE(figures.find("sent 3000 packets"), std::string::npos) << figures;
}

constexpr auto kName = [](const auto& entry) { return test_name_of(entry.param); };
INSTANTIATE_TEST_SUITE_P(Drivers, Faults, testing::Values("shm", "tcp", "sim"), kName);

/// Answers the first packet, and revives the peer at its next loss.
struct Answering final : PacketSink {
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    texts.emplace_back(reinterpret_cast<const char*>(packet.data()), packet.size());
    if (back != nullptr) {
      static_cast<void>(send_text(*std::exchange(back, nullptr), "stale"));
    }
    static_cast<void>(from_node);
  }
  void on_peer_lost(std::uint32_t, std::string_view) noexcept override { is_lost = true; }
  Channel* back = nullptr;
  std::vector<std::string> texts;
  bool is_lost = false;
};

// What is held back when the peer is lost was accepted before: it must not come after a revival.
TEST(Reorder, WhatIsHeldBackDoesNotOutliveALoss) {
  TestJob job{2};
  TestNode a{choice_of("reorder(cut(tcp,after=1,for=1ms),rate=1000000)"), job, 0};
  TestNode b{choice_of("tcp"), job, 1};
  Answering sink;
  sink.back = &a.to(b, 1);
  ASSERT_EQ(send_text(b.to(a, 0), "one"), SendState::accepted);
  // One poll brings the packet, has the answer held back, and cuts the link.
  ASSERT_TRUE(poll_until({&b}, [&] {
    a.driver->poll(sink, 64);
    return sink.is_lost;
  }));
  ASSERT_EQ(sink.texts.size(), 1U);
  ASSERT_TRUE(a.driver->revive(1).has_value());
  // Overtaken by what follows: a packet that is still held would arrive with it.
  ASSERT_TRUE(poll_until({&a, &b}, [&] {
    static_cast<void>(send_text(a.to(b, 1), "new"));
    return b.sink.packets.size() >= 2;
  }));
  for (const auto& [from, text] : b.sink.packets) {
    EXPECT_EQ(text, "new");
  }
}

/// Calls and returns of each lane of a trace file.
std::map<std::uint64_t, std::pair<int, int>> lanes_of(const std::string& path) {
  std::map<std::uint64_t, std::pair<int, int>> lanes;
  std::FILE* const file = std::fopen(path.c_str(), "rbe");
  check(file != nullptr, "the trace is there");
  std::fseek(file, static_cast<long>(trace::kFileHeaderBytes), SEEK_SET);
  // A chunk's header is as long as a record, and is about no lane.
  for (trace::Record record; std::fread(&record, sizeof record, 1, file) == 1;) {
    const auto kind = static_cast<trace::Kind>(record.kind);
    if (trace::is_lane(record.subject)) {
      lanes[record.subject].first += kind == trace::Kind::calls ? 1 : 0;
      lanes[record.subject].second += kind == trace::Kind::returns ? 1 : 0;
    }
  }
  std::fclose(file);
  return lanes;
}

TEST(Trace, CallsAreOnLanes) {
  const std::string path = "/tmp/sterna-lanes-" + std::to_string(::getpid());
  TestJob job{2};
  TestNode a{choice_of("trace(tcp)"), job, 0};
  TestNode b{choice_of("tcp"), job, 1};
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "before"));
  ASSERT_TRUE(trace::start({.path = path, .bytes_max = 64 << 20}).has_value());
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(send_text(a.to(b, 1), "recorded"), SendState::accepted);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(send_patiently({&b}, b.to(a, 0), "answer"));
  }
  ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.sink.packets.size() == 3; }));
  trace::stop();
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "after"));
  std::multiset<int> counts;
  for (const auto& [lane, count] : lanes_of(path)) {
    EXPECT_EQ(count.first, count.second);
    counts.insert(count.first);
  }
  EXPECT_EQ(counts, (std::multiset{3, 5}));
  std::remove(path.c_str());
}

TEST(Delay, PacketsTakeTheirTimeAndTheWireIsBounded) {
  TestJob job{2};
  ManualClock clock;
  // A tenth of a megabyte a second: 1000 bytes take 10 ms, and then 1 ms of latency.
  const std::string what = "delay(tcp,latency=1ms,bandwidth=100000)";
  TestNode a{choice_of(what), job, 0, {.clock = &clock}};
  TestNode b{choice_of(what), job, 1};
  const std::string text(1000, 'x');
  ASSERT_EQ(send_text(a.to(b, 1), text), SendState::accepted);
  ASSERT_EQ(send_text(a.to(b, 1), text), SendState::accepted);
  // Connections come and go by the same clock, so they stand before anything is due.
  for (int i = 0; i < 2000; ++i) {
    a.poll();
    b.poll();
  }
  EXPECT_TRUE(b.sink.packets.empty());
  clock.advance(11'000'000);
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
  for (int i = 0; i < 2000; ++i) {
    a.poll();
    b.poll();
  }
  EXPECT_EQ(b.sink.packets.size(), 1U);
  clock.advance(10'000'000);
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 2; }));
  int accepted = 0;
  while (send_text(a.to(b, 1), std::string(60'000, 'y')) == SendState::accepted) {
    ASSERT_LT(++accepted, 10);
  }
  EXPECT_GE(accepted, 2);
}

TEST(Choice, WhatIsKnownOfADriverWithoutOpeningItIsWhatItCan) {
  TestJob job{2};
  for (const std::string text :
       {"tcp", "unix", "shm", "count(tcp)", "trace(shm)", "delay(tcp,latency=2ms,bandwidth=1M)",
        "delay(shm)", "drop(shm)", "corrupt(tcp)", "duplicate(tcp)", "reorder(tcp)", "cut(tcp)",
        "record(shm)", "drop(delay(tcp))", "fabric@tcp", "count(fabric@tcp)"}) {
    const DriverChoice choice = choice_of(text);
    const ProbedDriver probed = probe_driver(choice, {});
    TestNode node{choice, job, 0};
    EXPECT_EQ(probed.absent.empty(), node.absent.empty()) << probed.absent << node.absent;
    if (node.absent.empty()) {
      EXPECT_EQ(probed.capabilities, node.driver->capabilities()) << text;
    }
  }
}

TEST(Choice, WhatThisHostHasNotGotIsKnownWithoutOpeningIt) {
  const ProbedDriver probed = probe_driver(choice_of("delay(tcp@none-such)"), {});
  EXPECT_EQ(probed.absent.find("delay(tcp@none-such): no interface that is up has the name"), 0U)
      << probed.absent;
  EXPECT_EQ(probed.capabilities, probe_driver(choice_of("delay(tcp)"), {}).capabilities);
}

TEST(Choice, WhatIsWrongWithAListIsSaid) {
  const std::pair<const char*, const char*> wrong[] = {
      {"pigeon", "shm"},
      {"tcp,", "comma"},
      {"tcp,,shm", "''"},
      {"tcp,tcp", "twice"},
      {"shm@eth0", "one network"},
      {"tcp@", "interface"},
      {"tcp@a b", "interface"},
      {"lose(tcp)", "drop"},
      {"drop(tcp", "drop(DRIVER)"},
      {"drop(tcp))", "tcp)"},
      {"drop()", "shm"},
      {"drop(tcp,often=1)", "rate=..."},
      {"drop(tcp,rate)", "rate=..."},
      {"drop(tcp,rate=2000000)", "1000000"},
      {"drop(drop(drop(drop(drop(drop(drop(drop(drop(tcp)))))))))", "look like"},
  };
  for (const auto& [list, said] : wrong) {
    const auto chosen = choose_drivers(list);
    ASSERT_FALSE(chosen.has_value()) << list;
    EXPECT_NE(chosen.error().text.find(said), std::string::npos) << chosen.error().text;
  }
  auto right = choose_drivers("shm,drop(tcp@10.0.1.0/24,rate=5,seed=1),tcp@eth1");
  ASSERT_TRUE(right.has_value());
  ASSERT_EQ(right.value().size(), 3U);
  EXPECT_EQ(right.value()[1].text(), "drop(tcp@10.0.1.0/24)");
  EXPECT_EQ(right.value()[1].instance, "10.0.1.0/24");
  EXPECT_EQ(right.value()[2].instance, "eth1");
}

TEST(Choice, AnInterfaceThatIsNotThereIsAnErrorThatListsThoseThatAre) {
  TestJob job{2};
  const DriverChoice choice = choice_of("tcp@nosuch0");
  const auto opened = open_driver(choice, {.bootstrap = &job.node(0)});
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().text.find("tcp@nosuch0"), std::string::npos);
  EXPECT_NE(opened.error().text.find("lo 127.0.0.1"), std::string::npos) << opened.error().text;
}

TEST(Choice, APrefixNamesTheInterfacesWhoseAddressesItBegins) {
  TestJob job{2};
  TestNode a{choice_of("tcp@127.0.0.0/8"), job, 0};
  TestNode b{choice_of("tcp@127.0.0.0/8"), job, 1};
  ASSERT_TRUE(send_patiently({&a, &b}, a.to(b, 1), "over loopback"));
  EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.sink.packets.size() == 1; }));
  for (const char* nowhere : {"tcp@126.0.0.0/8", "tcp@127.0.0.0/33", "tcp@127.0.0.0/x", "tcp@/8"}) {
    const DriverChoice choice = choice_of(nowhere);
    EXPECT_FALSE(open_driver(choice, {.bootstrap = &job.node(0)}).has_value()) << nowhere;
  }
}

}  // namespace
}  // namespace sterna::net
