// Priorities: what overtakes what in a gate, and that the order of each pair of ranks holds.
#include "net/packets/priority.h"

#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "net/packets/packet.h"
#include "net/simulation/sim_cluster.h"

namespace sterna::net {
namespace {

/// What a test says of a frame; the serial number travels as its cookie.
struct Line {
  std::uint32_t serial;
  std::uint32_t pair;  // Of source and destination.
  std::uint32_t sequence;
  std::int32_t tag = 0;
  std::uint8_t priority = 0;
  FrameKind kind = FrameKind::eager;
  bool is_whole = true;
};

class Waiting {
 public:
  ~Waiting() {
    while (HeldPacket* packet = frames.first) {
      frames.first = packet->next;
      pool.release(packet);
    }
  }
  void add(const Line& line) {
    FrameHeader header;
    header.kind = line.kind;
    header.source = line.pair;
    header.destination = line.pair + 1;
    header.sequence = line.sequence;
    header.tag = line.tag;
    header.priority = line.priority;
    header.cookie = line.serial;
    header.total_bytes = line.is_whole ? 0 : 100;
    const Piece piece = std::as_bytes(std::span{&header, 1});
    HeldPacket* const packet = pool.copy({&piece, 1});
    add_by_priority(frames, *packet);
  }
  [[nodiscard]] std::vector<FrameHeader> headers() const {
    std::vector<FrameHeader> all;
    for (HeldPacket* packet = frames.first; packet != nullptr; packet = packet->next) {
      FrameHeader& header = all.emplace_back();
      std::memcpy(&header, packet->data(), sizeof header);
      EXPECT_EQ(packet->next == nullptr, packet == frames.last);
    }
    return all;
  }
  /// "serial:sequence ...", in the order of the list.
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const FrameHeader& header : headers()) {
      out += std::to_string(header.cookie) + ":" + std::to_string(header.sequence) + " ";
    }
    return out;
  }

  PacketPool pool;
  WaitingFrames frames;
};

TEST(Priority, HigherOnesGoFirstAndEqualOnesInTurn) {
  Waiting waiting;
  waiting.add({.serial = 1, .pair = 1, .sequence = 7});
  waiting.add({.serial = 2, .pair = 2, .sequence = 3});
  waiting.add({.serial = 3, .pair = 3, .sequence = 9, .priority = 2});
  waiting.add({.serial = 4, .pair = 4, .sequence = 5, .priority = 1});
  waiting.add({.serial = 5, .pair = 5, .sequence = 5, .priority = 2});
  waiting.add({.serial = 6, .pair = 6, .sequence = 5});
  EXPECT_EQ(waiting.text(), "3:9 5:5 4:5 1:7 2:3 6:5 ");
}

TEST(Priority, FramesOfOnePairChangeNumbers) {
  Waiting waiting;
  waiting.add({.serial = 1, .pair = 1, .sequence = 7, .tag = 1});
  waiting.add({.serial = 2, .pair = 2, .sequence = 30});
  waiting.add({.serial = 3, .pair = 1, .sequence = 8, .tag = 2});
  waiting.add({.serial = 4, .pair = 1, .sequence = 9, .tag = 3, .priority = 1});
  EXPECT_EQ(waiting.text(), "4:7 1:8 2:30 3:9 ");
  waiting.add({.serial = 5, .pair = 1, .sequence = 10, .tag = 4, .priority = 2});
  EXPECT_EQ(waiting.text(), "5:7 4:8 1:9 2:30 3:10 ");
}

TEST(Priority, OfOneTagNoneOvertakesAnother) {
  Waiting waiting;
  waiting.add({.serial = 1, .pair = 1, .sequence = 0, .tag = 1});
  waiting.add({.serial = 2, .pair = 1, .sequence = 1, .tag = 5});
  waiting.add({.serial = 3, .pair = 1, .sequence = 2, .tag = 2});
  waiting.add({.serial = 4, .pair = 1, .sequence = 3, .tag = 5, .priority = 7});
  EXPECT_EQ(waiting.text(), "1:0 2:1 4:2 3:3 ");
}

TEST(Priority, PartsOfAMessageStayTogether) {
  Waiting waiting;
  waiting.add({.serial = 1, .pair = 1, .sequence = 0, .tag = 1, .is_whole = false});
  waiting.add({.serial = 2, .pair = 1, .sequence = 1, .kind = FrameKind::eager_more});
  waiting.add({.serial = 3, .pair = 1, .sequence = 2, .tag = 2, .priority = 1});
  waiting.add({.serial = 4, .pair = 2, .sequence = 0, .priority = 2});
  EXPECT_EQ(waiting.text(), "4:0 1:0 2:1 3:2 ");
}

TEST(Priority, NumbersThatAreElsewhereStopIt) {
  Waiting waiting;
  waiting.add({.serial = 1, .pair = 1, .sequence = 0, .tag = 1});
  waiting.add({.serial = 2, .pair = 1, .sequence = 2, .tag = 2});  // 1 comes from another thread.
  waiting.add({.serial = 3, .pair = 1, .sequence = 3, .tag = 3, .priority = 1});
  EXPECT_EQ(waiting.text(), "1:0 3:2 2:3 ");
  waiting.add({.serial = 4, .pair = 1, .sequence = 1, .tag = 4, .priority = 3});
  EXPECT_EQ(waiting.text(), "1:0 3:2 2:3 4:1 ");
}

TEST(Priority, AnswersAndMessagesOfNodesKeepTheirPlaces) {
  for (const FrameKind kind : {FrameKind::clear, FrameKind::matched, FrameKind::credit,
                               FrameKind::rank_note, FrameKind::node, FrameKind::moved}) {
    Waiting waiting;
    waiting.add({.serial = 1, .pair = 3, .sequence = 0, .kind = kind});
    waiting.add({.serial = 2, .pair = 1, .sequence = 0});
    waiting.add({.serial = 3, .pair = 2, .sequence = 0, .priority = 1});
    EXPECT_EQ(waiting.text(), "1:0 3:0 2:0 ");
  }
  Waiting waiting;
  waiting.add({.serial = 1, .pair = 3, .sequence = 0, .kind = FrameKind::data});
  waiting.add({.serial = 2, .pair = 1, .sequence = 0, .priority = 1});
  EXPECT_EQ(waiting.text(), "2:0 1:0 ");
}

TEST(Priority, NoFrameIsOvertakenForEver) {
  Waiting waiting;
  waiting.add({.serial = 0, .pair = 1, .sequence = 0});
  for (std::uint32_t i = 1; i <= 200; ++i) {
    waiting.add({.serial = i, .pair = 2, .sequence = i, .tag = 1, .priority = 7});
  }
  EXPECT_EQ(waiting.headers()[kOvertakenMax].cookie, 0U);
}

/// Of each pair the same numbers are there, and frames of one tag in the order of their numbers.
TEST(Priority, OrderOfEachTagHoldsWhateverComes) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Waiting waiting;
    std::map<std::uint32_t, std::uint32_t> next;
    for (std::uint32_t serial = 0; serial < 60; ++serial) {
      const auto pair = static_cast<std::uint32_t>(random.below(3));
      Line line{.serial = serial,
                .pair = pair,
                .sequence = next[pair]++,
                .tag = static_cast<std::int32_t>(random.below(4)),
                .priority = static_cast<std::uint8_t>(random.below(3)),
                .kind = random.chance(0.2) ? FrameKind::rendezvous : FrameKind::eager,
                .is_whole = !random.chance(0.1)};
      if (random.chance(0.05)) {
        ++next[pair];  // That number has gone another way.
      }
      waiting.add(line);
    }
    std::map<std::pair<std::uint32_t, std::int32_t>, std::int64_t> last;
    std::map<std::uint32_t, std::uint32_t> sequences;
    for (const FrameHeader& header : waiting.headers()) {
      const auto [at, is_new] = sequences.try_emplace(header.source, header.sequence);
      EXPECT_TRUE(is_new || at->second < header.sequence);
      at->second = header.sequence;
      std::int64_t& before = last.try_emplace({header.source, header.tag}, -1).first->second;
      EXPECT_GT(static_cast<std::int64_t>(header.cookie), before);
      before = static_cast<std::int64_t>(header.cookie);
    }
  }
}

/// A rail that is full lets what is urgent go first: eager messages and announced ones.
TEST(Priority, OfMessagesThatWaitForARailTheUrgentOnesArriveFirst) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{200'000}}) {
    SCOPED_TRACE(bytes);
    SimOptions options;
    options.packet_ns = 1000;
    options.channel_packets_max = 1;
    SimCluster cluster{options, 2};
    constexpr int kPlain = 20;
    std::vector<std::byte> data(bytes);
    std::vector<std::byte> into(bytes);
    SendRequest sends[kPlain + 1];
    RecvRequest receives[kPlain + 1];
    for (int i = 0; i <= kPlain; ++i) {
      cluster.nodes[0]->send(
          *cluster.endpoints[0], sends[i],
          {.rank = 1,
           .context = 0,
           .tag = i,
           .priority = static_cast<std::uint8_t>(i == kPlain ? kPriorityMax : 0)},
          Buffer::of(data.data(), bytes));
    }
    cluster.settle();  // All are announced or have come.
    for (int i = 0; i <= kPlain; ++i) {
      cluster.nodes[1]->receive(*cluster.endpoints[1], receives[i], {kAnySource, 0, kAnyTag},
                                Buffer::of(into.data(), bytes));
    }
    // The first one was on the rail when the urgent one came; of all others it is the first.
    EXPECT_EQ(receives[0].envelope.tag, 0);
    EXPECT_EQ(receives[1].envelope.tag, kPlain);
    for (int i = 2; i <= kPlain; ++i) {
      EXPECT_EQ(receives[i].envelope.tag, i - 1);
    }
    if (bytes > 1000) {  // Its bytes overtake those of the message before.
      while (!receives[1].done.done()) {
        cluster.clock.advance(1000);
        cluster.poll();
      }
      EXPECT_FALSE(receives[0].done.done());
    }
    cluster.settle();
    for (int i = 0; i <= kPlain; ++i) {
      EXPECT_TRUE(sends[i].done.done() && receives[i].done.done());
    }
  }
}

/// Two nodes with ranks 0 and 2, 1 and 3, and a rail that takes a packet a time.
struct Busy {
  explicit Busy(std::uint64_t packet_ns = 1000) : settings{transport_tunables()} {
    check(settings.set("net_eager_bytes", "16K", SettingSource::command_line, "test").has_value(),
          "the test sets what there is");
    SimOptions options;
    options.packet_ns = packet_ns;
    options.channel_packets_max = 1;
    cluster = std::make_unique<SimCluster>(options, 4, &settings);
  }
  struct Message {
    SendRequest send;
    RecvRequest receive;
    std::vector<std::byte> into;
    [[nodiscard]] bool is_done() { return send.done.done() && receive.done.done(); }
  };
  /// From rank `from` to the one after it.
  std::unique_ptr<Message> begin(std::uint32_t from, std::size_t bytes, std::uint8_t priority) {
    auto message = std::make_unique<Message>();
    message->into.resize(bytes);
    cluster->nodes[1]->receive(*cluster->endpoints[from + 1], message->receive, {from, 0, 0},
                               Buffer::of(message->into.data(), bytes));
    cluster->nodes[0]->send(*cluster->endpoints[from], message->send,
                            {.rank = from + 1, .context = 0, .tag = 0, .priority = priority},
                            Buffer::of(data.data(), bytes));
    return message;
  }
  void run_until_done(Message& message) {
    while (!message.is_done()) {
      cluster->clock.advance(1000);
      (void)cluster->poll();
    }
  }

  Settings settings;
  std::unique_ptr<SimCluster> cluster;
  std::vector<std::byte> data = std::vector<std::byte>(200'000);
};

TEST(Priority, AnUrgentMessageOfSeveralFramesOvertakesThoseOfOthers) {
  Busy busy;
  std::vector<std::unique_ptr<Busy::Message>> plain;
  for (int i = 0; i < 20; ++i) {
    plain.push_back(busy.begin(0, 5000, 0));
  }
  const std::unique_ptr<Busy::Message> urgent = busy.begin(2, 5000, 3);
  busy.run_until_done(*urgent);
  EXPECT_FALSE(plain[8]->is_done());
  busy.run_until_done(*plain.back());
}

TEST(Priority, AStreamOfUrgentTransfersKeepsNoOtherForEver) {
  Busy busy;
  std::unique_ptr<Busy::Message> urgent[2];
  for (auto& message : urgent) {
    message = busy.begin(2, 50'000, 7);
  }
  const std::unique_ptr<Busy::Message> plain = busy.begin(0, 50'000, 0);
  int urgent_count = 2;
  while (!plain->is_done() && urgent_count < 500) {
    busy.cluster->clock.advance(1000);
    (void)busy.cluster->poll();
    for (auto& message : urgent) {
      if (message->is_done()) {
        message = busy.begin(2, 50'000, 7);
        ++urgent_count;
      }
    }
  }
  EXPECT_TRUE(plain->is_done());
  EXPECT_GT(urgent_count, 20) << "and yet they are preferred";
  busy.cluster->settle();
}

}  // namespace
}  // namespace sterna::net
