// Random messages with wildcards between ranks that move between simulated nodes, from seeds. Each
// message arrives exactly once, whole; messages of one envelope are received in the order sent;
// memory is bounded and given back.
#include "base/random.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "net/matching/matching.h"
#include "net/simulation/sim_cluster.h"
#include "net/simulation/sim_moves.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kRanks = 6;

struct Sent {
  std::vector<std::byte> bytes;
  SendRequest request;
};
struct Received {
  std::vector<std::byte> bytes;
  RecvRequest request;
};

std::byte filling(std::uint32_t source, std::uint32_t serial, std::size_t at) {
  return static_cast<std::byte>(mix64((std::uint64_t{source} << 32 | serial) + at));
}

class RandomTraffic {
 public:
  RandomTraffic(std::uint64_t seed, const std::vector<SimOptions>& rails,
                const Settings* settings = nullptr)
      : random_{seed}, cluster_{SimCluster::Rails{}, rails, kRanks, settings, &log_} {}

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      switch (random_.below(10)) {
        case 0:
        case 1:
        case 2:
          send();
          break;
        case 3:
        case 4:
        case 5:
          receive();
          break;
        case 6:
          moves_.step(static_cast<std::uint32_t>(random_.below(kRanks)));
          break;
        case 7:
          take_back();
          break;
        default:
          cluster_.clock.advance(random_.below(500));
          cluster_.poll();
      }
    }
    finish();
    judge();
  }

 private:
  bool is_still(std::uint32_t rank) { return !moves_.is_moving(rank); }

  void send() {
    const auto from = static_cast<std::uint32_t>(random_.below(kRanks));
    const Target target{
        .rank = static_cast<std::uint32_t>(random_.below(kRanks)),
        .context = static_cast<std::uint32_t>(random_.below(2)),
        .tag = static_cast<std::int32_t>(random_.below(3)),
        .priority = static_cast<std::uint8_t>(random_.chance(0.3) ? random_.below(3) : 0)};
    if (!is_still(from)) {
      return;
    }
    const std::size_t sizes[] = {8, 40, 300, 3000, 40'000};
    auto sent = std::make_unique<Sent>();
    const std::uint32_t serial = serials_[{from, target.rank}]++;
    sent->bytes.resize(8 + random_.below(sizes[random_.below(5)]));
    for (std::size_t i = 0; i < sent->bytes.size(); ++i) {
      sent->bytes[i] = filling(from, serial, i);
    }
    std::memcpy(sent->bytes.data(), &from, 4);
    std::memcpy(sent->bytes.data() + 4, &serial, 4);
    sent->request.is_awaited = random_.chance(0.5);
    cluster_.node_of(from).send(*cluster_.endpoints[from], sent->request, target,
                                Buffer::of(sent->bytes.data(), sent->bytes.size()),
                                random_.chance(0.1) ? SendMode::synchronous : SendMode::standard);
    sent_.push_back(std::move(sent));
  }

  // Some message, which may have ended, be matched, or be anywhere on its way.
  void take_back() {
    if (!sent_.empty() && random_.chance(0.3)) {
      Sent& sent = *sent_[random_.below(sent_.size())];
      std::uint32_t from = 0;
      std::memcpy(&from, sent.bytes.data(), 4);
      if (is_still(from)) {
        (void)cluster_.node_of(from).cancel_send(*cluster_.endpoints[from], sent.request);
      }
    }
  }

  void post(std::uint32_t at, const Pattern& pattern) {
    received_[at].push_back(std::make_unique<Received>());
    Received& received = *received_[at].back();
    received.bytes.resize(50'000);
    cluster_.node_of(at).receive(*cluster_.endpoints[at], received.request, pattern,
                                 Buffer::of(received.bytes.data(), received.bytes.size()));
  }

  void receive() {
    const auto at = static_cast<std::uint32_t>(random_.below(kRanks));
    if (is_still(at)) {
      post(at,
           {random_.chance(0.3) ? kAnySource : static_cast<std::uint32_t>(random_.below(kRanks)),
            static_cast<std::uint32_t>(random_.below(2)),
            random_.chance(0.3) ? kAnyTag : static_cast<std::int32_t>(random_.below(3))});
    }
  }

  void finish() {
    moves_.finish();
    cluster_.settle();
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (const auto& received : received_[rank]) {
        cluster_.node_of(rank).cancel_receive(*cluster_.endpoints[rank], received->request);
      }
      Envelope found;
      for (std::uint32_t context = 0; context < 2; ++context) {
        const Pattern any{kAnySource, context, kAnyTag};
        while (cluster_.node_of(rank).probe(*cluster_.endpoints[rank], any, found)) {
          post(rank, any);
          cluster_.settle();
        }
      }
    }
    cluster_.settle();
  }

  void judge() {
    std::size_t received_count = 0;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      // By envelope: the serial numbers, in the order in which the receives were posted.
      std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, std::int64_t> last;
      std::map<std::pair<std::uint32_t, std::uint32_t>, int> seen;
      for (const auto& received : received_[rank]) {
        const RecvRequest& request = received->request;
        ASSERT_TRUE(request.done.done());
        if (request.fault == Fault::cancelled) {
          continue;
        }
        ASSERT_EQ(request.fault, Fault::none);
        std::uint32_t head[2];
        std::memcpy(head, received->bytes.data(), 8);
        ASSERT_EQ(head[0], request.envelope.source);
        for (std::size_t i = 8; i < request.envelope.bytes; ++i) {
          ASSERT_EQ(received->bytes[i], filling(head[0], head[1], i)) << i;
        }
        std::int64_t& before =
            last.try_emplace({head[0], request.envelope.context, request.envelope.tag}, -1)
                .first->second;
        ASSERT_GT(std::int64_t{head[1]}, before) << "rank " << rank << " from " << head[0];
        before = head[1];
        ASSERT_EQ(++seen[std::pair(head[0], head[1])], 1);
        ++received_count;
      }
      check_matching(*cluster_.endpoints[rank]);
      EXPECT_EQ(cluster_.endpoints[rank]->unexpected_bytes, 0U);
      EXPECT_EQ(cluster_.endpoints[rank]->message_count, 0U);
      EXPECT_EQ(cluster_.endpoints[rank]->pending_count, 0U);
    }
    for (const auto& sent : sent_) {
      ASSERT_TRUE(sent->request.done.done());
      received_count += sent->request.fault == Fault::cancelled ? 1 : 0;
      ASSERT_TRUE(sent->request.fault == Fault::none || sent->request.fault == Fault::cancelled);
    }
    ASSERT_EQ(received_count, sent_.size());
    for (const auto& node : cluster_.nodes) {
      EXPECT_EQ(node->statistics().frames_malformed, 0U);
      EXPECT_EQ(node->statistics().frames_dropped, 0U);
    }
    EXPECT_GT(moves_.begun_count(), 0);
  }

  const Log log_;  // A frame that is refused is seen.
  Random random_;
  SimCluster cluster_;
  SimMoves moves_{cluster_, random_};
  std::vector<std::unique_ptr<Sent>> sent_;
  std::vector<std::unique_ptr<Received>> received_[kRanks];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> serials_;
};

class RandomTrafficOf : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomTrafficOf, MessagesOfRanksThatMoveArriveOnceInOrder) {
  const std::uint64_t seed = GetParam();
  Random random{seed};
  SimOptions options;
  options.node_count = 2 + static_cast<std::uint32_t>(random.below(3));
  options.seed = seed;
  options.delay_ns_max = random.below(5000);
  options.is_ordered = random.chance(0.5);
  options.has_direct = random.chance(0.5);
  options.channel_packets_max = 1 + static_cast<std::uint32_t>(random.below(64));
  options.packet_bytes_max = 256 << random.below(4);
  RandomTraffic{seed, {options}}.run(3000);
}

TEST_P(RandomTrafficOf, AlsoOverRailsThatLosePackets) {
  const std::uint64_t seed = GetParam();
  Random random{seed ^ 0x5a11};
  Settings settings{transport_tunables()};
  ASSERT_TRUE(settings.set("net_checksums", "on", SettingSource::command_line, "the test"));
  ASSERT_TRUE(settings.set("net_silence", "3600s", SettingSource::command_line, "the test"));
  std::vector<SimOptions> rails(1 + random.below(3));
  for (SimOptions& rail : rails) {
    rail.node_count = 2 + static_cast<std::uint32_t>(seed % 3);
    rail.seed = random.next();
    rail.delay_ns_max = random.below(20'000);
    rail.ps_per_byte = random.below(3000);
    rail.is_ordered = random.chance(0.5);
    rail.lost_per_mille = static_cast<std::uint32_t>(random.below(100));
    rail.twice_per_mille = static_cast<std::uint32_t>(random.below(100));
    rail.corrupt_per_mille = static_cast<std::uint32_t>(random.below(100));
    rail.channel_packets_max = 1 + static_cast<std::uint32_t>(random.below(64));
    rail.packet_bytes_max = 512 << random.below(4);
  }
  RandomTraffic{seed, rails, &settings}.run(3000);
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrafficOf, testing::Range<std::uint64_t>(1, 61));

}  // namespace
}  // namespace sterna::net
