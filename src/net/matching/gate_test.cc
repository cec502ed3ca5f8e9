// Gates and routes that become old: what is sent with one is never sent behind what the gate's
// owner sends after it has retired them.
#include "net/matching/gate.h"

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.h"
#include "base/function_ref.h"
#include "net/packets/packet.h"

namespace sterna::net {
namespace {

/// A frame of these tests.
struct Word {
  FrameHeader header;
  std::uint32_t number = 0;
  std::uint32_t version = kAnyRoute;
};

/// Takes all, and tells what it takes.
class Network final : public Driver, public Channel {
 public:
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return {}; }
  bool reaches(std::uint32_t, Packet) const noexcept override { return true; }
  Result<Channel*> connect(std::uint32_t, Packet) noexcept override { return this; }
  std::uint32_t poll(PacketSink&, std::uint32_t) noexcept override { return 0; }
  int fd() const noexcept override { return -1; }
  bool prepare_sleep() noexcept override { return false; }
  void end_sleep() noexcept override {}
  void close() noexcept override {}
  bool is_drained() const noexcept override { return true; }

  SendState try_send(std::span<const Piece> pieces) noexcept override {
    if (room == 0) {
      return SendState::full;
    }
    --room;
    for (const Piece& piece : pieces) {
      Word& word = sent.emplace_back();
      std::memcpy(&word, piece.data(), sizeof word);
    }
    if (meanwhile != nullptr) {
      (*std::exchange(meanwhile, nullptr))();
    }
    return SendState::accepted;
  }

  std::size_t try_send_several(std::span<const std::span<const Piece>> packets,
                               SendState& state) noexcept override {
    ++several;
    return Channel::try_send_several(packets, state);
  }
  bool gains_by_several() const noexcept override { return gains; }

  bool gains = false;
  int several = 0;                                 // Calls with several.
  int room = 1 << 20;                              // Packets that it takes.
  std::vector<Word> sent;                          // By the owner of the gate.
  const FunctionRef<void()>* meanwhile = nullptr;  // Once, while the first frame is sent.

 private:
  Capabilities capabilities_;
};

struct Fixture {
  Fixture() {
    gate.open(1, network, {}, CostModel{network.capabilities(), false, {}},
              {&pool, builtin_strategies().front()->strategy, &waiting, &is_serial, on_stale,
               on_bad_choice, this, nullptr, nullptr, wake_sleeper});
  }
  ~Fixture() {
    while (HeldPacket* packet = stale.pop()) {
      pool.release(packet);
    }
  }
  static void on_stale(void* self, HeldPacket* packet) noexcept {
    static_cast<Fixture*>(self)->stale.push(*packet);
  }
  static void on_bad_choice(void* self, const char* rule) noexcept {
    static_cast<Fixture*>(self)->broken_rules.emplace_back(rule);
  }
  Gate::SendResult send(std::uint32_t number, std::uint32_t version) {
    const Word word{{}, number, version};
    const Piece piece = std::as_bytes(std::span{&word, 1});
    return gate.send({&piece, 1}, version);
  }

  Gate::SendResult send_followed(std::uint32_t number) {
    const Word word{{}, number};
    const Piece piece = std::as_bytes(std::span{&word, 1});
    return gate.send({&piece, 1}, kAnyRoute, Sender::follows);
  }
  /// How many of `first` and the `count` - 1 behind it have gone.
  std::size_t send_at_once(std::uint32_t first, std::size_t count,
                           std::uint32_t version = kAnyRoute) {
    std::array<Word, Gate::kFramesAtOnceMax> words;
    std::array<Piece, Gate::kFramesAtOnceMax> pieces;
    std::array<std::span<const Piece>, Gate::kFramesAtOnceMax> frames;
    for (std::uint32_t i = 0; i < count; ++i) {
      words[i] = {{}, first + i};
      pieces[i] = std::as_bytes(std::span{&words[i], 1});
      frames[i] = {&pieces[i], 1};
    }
    return gate.try_send_at_once({frames.data(), count}, version);
  }
  std::size_t send_two_at_once(std::uint32_t first, std::uint32_t version = kAnyRoute) {
    return send_at_once(first, 2, version);
  }
  /// The numbers that have gone, in order.
  [[nodiscard]] std::vector<std::uint32_t> gone() const {
    std::vector<std::uint32_t> numbers;
    for (const Word& word : network.sent) {
      numbers.push_back(word.number);
    }
    return numbers;
  }

  static void wake_sleeper(void* self) noexcept { ++static_cast<Fixture*>(self)->times_woken; }

  int times_woken = 0;
  std::vector<std::string> broken_rules;
  Network network;
  PacketPool pool;
  std::atomic<std::uint32_t> waiting{0};
  bool is_serial = false;
  MpscQueue<HeldPacket> stale;
  Gate gate;
};

TEST(GateRoutes, AnOldRouteIsLookedUpAgain) {
  Fixture fixture;
  const std::uint32_t version = fixture.gate.route_version();
  EXPECT_EQ(fixture.send(1, version), Gate::SendResult::sent);
  fixture.gate.retire_routes();
  EXPECT_EQ(fixture.send(2, version), Gate::SendResult::stale);
  EXPECT_EQ(fixture.send(3, fixture.gate.route_version()), Gate::SendResult::sent);
  EXPECT_EQ(fixture.send(4, kAnyRoute), Gate::SendResult::sent);
  ASSERT_EQ(fixture.network.sent.size(), 3U);
  EXPECT_EQ(fixture.network.sent[1].number, 3U);
}

TEST(GateRoutes, AFrameThatWaitsWhileItsRouteBecomesOldIsGivenBack) {
  Fixture fixture;
  const std::uint32_t version = fixture.gate.route_version();
  const auto meanwhile = [&] {  // Another thread has the gate: all of this goes to the inbox.
    EXPECT_EQ(fixture.send(2, version), Gate::SendResult::queued);
    fixture.gate.retire_routes();
    EXPECT_EQ(fixture.send(3, kAnyRoute), Gate::SendResult::queued);
    EXPECT_EQ(fixture.send(4, version), Gate::SendResult::queued);
  };
  const FunctionRef<void()> reference{meanwhile};
  fixture.network.meanwhile = &reference;
  EXPECT_EQ(fixture.send(1, version), Gate::SendResult::sent);
  ASSERT_EQ(fixture.network.sent.size(), 2U);
  EXPECT_EQ(fixture.network.sent[1].number, 3U);
  for (const std::uint32_t number : {2U, 4U}) {
    HeldPacket* packet = fixture.stale.pop();
    ASSERT_NE(packet, nullptr);
    Word word;
    std::memcpy(&word, packet->data(), sizeof word);
    EXPECT_EQ(word.number, number);
    fixture.pool.release(packet);
  }
}

// Whoever finds no room: the one that owns the gate may send for others, who know nothing of it.
TEST(GateRoom, WhoSleepsIsWokenWhenFramesWaitOrWereSentForOthers) {
  Fixture fixture;
  fixture.network.room = 1;
  const auto meanwhile = [&] {
    EXPECT_EQ(fixture.send(2, kAnyRoute), Gate::SendResult::queued);
    EXPECT_EQ(fixture.times_woken, 0) << "its owner has not looked";
  };
  const FunctionRef<void()> reference{meanwhile};
  fixture.network.meanwhile = &reference;
  EXPECT_EQ(fixture.send(1, kAnyRoute), Gate::SendResult::sent);
  EXPECT_EQ(fixture.times_woken, 2) << "what another one left was looked at, and waits";
  fixture.network.room = 2;
  EXPECT_NE(fixture.gate.advance(), 0U);
  EXPECT_EQ(fixture.times_woken, 2) << "who polls rings itself";
  fixture.network.room = 0;
  EXPECT_EQ(fixture.send(3, kAnyRoute), Gate::SendResult::queued);
  EXPECT_GT(fixture.times_woken, 2);
}

// Threads send with the routes they have read, one retires them and then sends a mark: behind the
// n-th mark there is no frame with a route from before it.
TEST(GateRoutes, NothingOldIsSentBehindAMark) {
  // Each mark is a trial of its own; with ThreadSanitizer one costs a hundred times as much.
  constexpr std::uint32_t kMarks = kIsThreadSanitized ? 200 : 2000;
  Fixture fixture;
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> sent_count{0};
  std::atomic<std::uint64_t> sent_most{512};  // 512 a mark: who owns the gate sends for all others.
  std::vector<std::thread> senders;
  for (int i = 0; i < 3; ++i) {
    senders.emplace_back([&] {
      while (!is_over.load(std::memory_order_relaxed)) {
        if (sent_count.load() >= sent_most.load()) {
          std::this_thread::yield();
          continue;
        }
        const std::uint32_t version = fixture.gate.route_version();
        (void)fixture.send(0, version);
        if (sent_count.fetch_add(1, std::memory_order_relaxed) % 16 == 0) {
          std::this_thread::yield();  // Or what a mark waits for is whole slices of the senders.
        }
      }
    });
  }
  for (std::uint32_t mark = 1; mark <= kMarks; ++mark) {
    fixture.gate.retire_routes();
    (void)fixture.send(mark, kAnyRoute);
    sent_most = sent_count.load() + 512;
    for (const std::uint64_t before = sent_count.load(); sent_count.load() - before < 3;) {
      std::this_thread::yield();
    }
  }
  is_over = true;
  for (std::thread& sender : senders) {
    sender.join();
  }
  fixture.network.room = 1 << 30;  // While this thread had no processor the senders may fill it.
  while (fixture.gate.advance() != 0) {
  }
  std::uint32_t marks = 0;
  std::uint32_t wrong = 0;
  for (const Word& word : fixture.network.sent) {
    if (word.version == kAnyRoute) {
      EXPECT_EQ(word.number, ++marks);
    } else {
      wrong += word.version < marks ? 1 : 0;
    }
  }
  EXPECT_EQ(marks, kMarks);
  EXPECT_EQ(wrong, 0U);
}

using Numbers = std::vector<std::uint32_t>;

TEST(GateFollowed, GoesWithTheNextFrameInOneCall) {
  Fixture fixture;
  fixture.network.gains = true;
  EXPECT_EQ(fixture.send_followed(1), Gate::SendResult::queued);
  EXPECT_TRUE(fixture.gone().empty());
  EXPECT_EQ(fixture.waiting, 1U);
  EXPECT_EQ(fixture.send(2, kAnyRoute), Gate::SendResult::sent);
  EXPECT_EQ(fixture.gone(), (Numbers{1, 2}));
  EXPECT_EQ(fixture.network.several, 1);
  EXPECT_EQ(fixture.waiting, 0U);
  EXPECT_EQ(fixture.times_woken, 0);
  EXPECT_EQ(fixture.send(3, kAnyRoute), Gate::SendResult::sent);
  EXPECT_EQ(fixture.network.several, 1);
}

TEST(GateFollowed, GoesAtOnceWhereCallsCostNothing) {
  Fixture fixture;
  EXPECT_EQ(fixture.send_followed(1), Gate::SendResult::sent);
  EXPECT_EQ(fixture.gone(), (Numbers{1}));
  EXPECT_EQ(fixture.waiting, 0U);
}

TEST(GateFollowed, GoesFromThePollIfNothingFollows) {
  Fixture fixture;
  fixture.network.gains = true;
  EXPECT_EQ(fixture.send_followed(1), Gate::SendResult::queued);
  EXPECT_EQ(fixture.gate.advance(), 1U);
  EXPECT_EQ(fixture.gone(), (Numbers{1}));
  EXPECT_EQ(fixture.waiting, 0U);
}

TEST(GateFollowed, KeepsItsOrderWhereThereIsRoomForOneOrNone) {
  for (const int room : {0, 1}) {
    Fixture fixture;
    fixture.network.gains = true;
    EXPECT_EQ(fixture.send_followed(1), Gate::SendResult::queued);
    fixture.network.room = room;
    EXPECT_EQ(fixture.send(2, kAnyRoute), Gate::SendResult::queued);
    EXPECT_EQ(fixture.gone().size(), static_cast<std::size_t>(room));
    EXPECT_EQ(fixture.waiting, 1U);
    EXPECT_EQ(fixture.send_followed(3), Gate::SendResult::queued);
    fixture.network.room = 10;
    EXPECT_EQ(fixture.send(4, kAnyRoute), Gate::SendResult::queued) << "several wait";
    EXPECT_EQ(fixture.gone(), (Numbers{1, 2, 3, 4}));
    EXPECT_EQ(fixture.waiting, 0U);
  }
}

TEST(GateFollowed, WaitsForNobodyBehindALostPeer) {
  Fixture fixture;
  fixture.network.gains = true;
  EXPECT_EQ(fixture.send_followed(1), Gate::SendResult::queued);
  fixture.gate.lose();
  EXPECT_EQ(fixture.send_followed(2), Gate::SendResult::lost);
  EXPECT_EQ(fixture.send(3, kAnyRoute), Gate::SendResult::lost);
  (void)fixture.gate.advance();
  EXPECT_TRUE(fixture.gone().empty());
  EXPECT_EQ(fixture.waiting, 0U);
}

TEST(GateFollowed, GoesWithTwoFramesOfAMessageInOneCall) {
  Fixture fixture;
  fixture.network.gains = true;
  EXPECT_EQ(fixture.send(1, kAnyRoute), Gate::SendResult::sent);
  EXPECT_FALSE(fixture.gate.holds_followed_only());
  EXPECT_EQ(fixture.send_followed(2), Gate::SendResult::queued);
  EXPECT_TRUE(fixture.gate.holds_followed_only());
  EXPECT_EQ(fixture.send_two_at_once(3), 2U);
  EXPECT_FALSE(fixture.gate.holds_followed_only());
  EXPECT_EQ(fixture.waiting, 0U);
  EXPECT_EQ(fixture.send_two_at_once(5), 2U) << "nothing waits";
  EXPECT_EQ(fixture.network.several, 2);
  EXPECT_EQ(fixture.gone(), (Numbers{1, 2, 3, 4, 5, 6}));
}

TEST(GateFollowed, GoesWithAsManyAsMayGoAtOnce) {
  Fixture fixture;
  fixture.network.gains = true;
  EXPECT_EQ(fixture.send(1, kAnyRoute), Gate::SendResult::sent);
  EXPECT_EQ(fixture.send_followed(2), Gate::SendResult::queued);
  EXPECT_EQ(fixture.send_at_once(3, Gate::kFramesAtOnceMax), Gate::kFramesAtOnceMax);
  EXPECT_EQ(fixture.network.several, 1);
  EXPECT_EQ(fixture.gone(), (Numbers{1, 2, 3, 4, 5, 6, 7}));
}

TEST(GateFollowed, TellsHowManyOfTwoHaveGoneBehindIt) {
  for (const int room : {0, 1, 2}) {
    Fixture fixture;
    fixture.network.gains = true;
    EXPECT_EQ(fixture.send(1, kAnyRoute), Gate::SendResult::sent);
    EXPECT_EQ(fixture.send_followed(2), Gate::SendResult::queued);
    fixture.network.room = room;
    EXPECT_EQ(fixture.send_two_at_once(3), room == 2 ? 1U : 0U);
    EXPECT_FALSE(fixture.gate.holds_followed_only()) << "what waits now waits for room";
    EXPECT_EQ(fixture.waiting, room == 0 ? 1U : 0U);
    fixture.network.room = 10;
    (void)fixture.gate.advance();
    EXPECT_EQ(fixture.gone(), room == 2 ? (Numbers{1, 2, 3}) : (Numbers{1, 2}));
    EXPECT_EQ(fixture.waiting, 0U);
  }
}

TEST(GateFollowed, LetsNothingPassByWhatWaitsOrAnOldRoute) {
  Fixture fixture;
  fixture.network.gains = true;
  EXPECT_EQ(fixture.send(1, kAnyRoute), Gate::SendResult::sent);
  const std::uint32_t version = fixture.gate.route_version();
  fixture.gate.retire_routes();
  EXPECT_EQ(fixture.send_two_at_once(2, version), 0U);
  EXPECT_EQ(fixture.send_followed(2), Gate::SendResult::queued);
  fixture.network.room = 0;
  EXPECT_EQ(fixture.send(3, kAnyRoute), Gate::SendResult::queued);
  fixture.network.room = 10;
  EXPECT_EQ(fixture.send_two_at_once(4), 0U) << "two wait";
  EXPECT_EQ(fixture.gone(), (Numbers{1}));
}

// A stream of messages, of which some always wait, does not keep a transfer.
TEST(Gate, TransfersHaveTheirTurnAmongMessagesThatWait) {
  Fixture fixture;
  fixture.network.room = 0;
  const Word transfer{{}, 1000};
  const Piece piece = std::as_bytes(std::span{&transfer, 1});
  std::uint32_t number = 0;
  SendState state = SendState::full;
  for (int round = 0; round < 20 && state != SendState::accepted; ++round) {
    while (fixture.send(number++, kAnyRoute) != Gate::SendResult::queued) {
    }
    fixture.network.room = 1;  // For one packet more, before the poller comes to what waits.
    state = fixture.gate.try_send({&piece, 1});
    (void)fixture.gate.advance();
  }
  EXPECT_EQ(state, SendState::accepted);
}

}  // namespace
}  // namespace sterna::net
