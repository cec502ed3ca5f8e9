// Shared memory of a host that another process overwrites, at any moment and with anything:
// inboxes, headers of rings, chunks, claims, flags, of our segment and of its own. What is handed
// over lies where packets may lie; calls end; and a peer whose packets do not come any more is
// lost.
//
// The input is a program of steps for a node, a peer that behaves, and one that writes.
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "net/driver.h"
#include "net/drivers/builtin.h"
#include "net/drivers/shm/segment.h"
#include "net/drivers/test_job.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kNodes = 3;
constexpr std::uint32_t kStepsMax = 128;
constexpr std::uint64_t kMark = 0x5a5a'1234'5678'a5a5;

class Steps {
 public:
  Steps(const std::uint8_t* data, std::size_t bytes) : data_{data}, bytes_{bytes} {}
  [[nodiscard]] bool is_over() const { return at_ >= bytes_; }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      value |= std::uint64_t{at_ < bytes_ ? data_[at_] : std::uint8_t{0}} << (8 * i);
      ++at_;
    }
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t bytes_;
  std::size_t at_ = 0;
};

struct Sink final : PacketSink {
  void on_packet(std::uint32_t from, Packet packet) noexcept override {
    check(from != 0 && from < kNodes, "a packet comes from another node of the host");
    check(!packet.empty() && packet.size() <= shm::kSegmentBytes, "a packet lies in a segment");
    for (const std::byte byte : packet) {  // Outside of it the process would end.
      sum = sum + static_cast<std::uint32_t>(byte);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, packet.data(), std::min(packet.size(), sizeof word));
    has_mark[from] = has_mark[from] || (packet.size() == sizeof word && word == kMark);
  }
  void on_peer_lost(std::uint32_t node, std::string_view) noexcept override {
    check(node < kNodes && !is_lost[node], "a node is lost once");
    is_lost[node] = true;
  }
  bool has_mark[kNodes] = {};
  bool is_lost[kNodes] = {};
  volatile std::uint32_t sum = 0;
};

struct Node {
  Node(TestJob& job, std::uint32_t index) {
    auto opened = kShmDriver.open({.bootstrap = &job.node(index)});
    check(opened.has_value(), "a node opens its segment");
    driver = std::move(opened.value());
  }
  Channel* to(std::uint32_t node) {
    auto connected = driver->connect(node, {});
    return connected ? connected.value() : nullptr;
  }
  void poll(std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) {
      (void)driver->poll(sink, 64);
    }
  }
  std::unique_ptr<Driver> driver;
  Sink sink;
};

class Play {
 public:
  Play() {
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      auto mapped = shm::SegmentMapping::map(job_.node(0).host().segment_fd, i, shm::kSegmentBytes);
      check(mapped.has_value(), "the memory of the test can be mapped");
      segments_.push_back(std::move(mapped.value()));
    }
    send(good_, 8);
    send(bad_, 8);
    me_.poll(4);
  }

  void step(Steps& steps) {
    switch (steps.number(1) % 12) {
      case 0:
        anywhere(steps);
        break;
      case 1:
      case 2:
        field(steps);
        break;
      case 3:
        stranger(steps);
        break;
      case 4:
        me_.poll(1);
        break;
      case 5:
        me_.poll(1100);  // It looks around.
        break;
      case 6:
        send(good_, 1 + steps.number(2) % 4000);
        break;
      case 7:
        send(bad_, 1 + steps.number(2) % 4000);
        break;
      case 8:
        if (me_.driver->prepare_sleep()) {
          me_.driver->end_sleep();
        }
        break;
      case 9:
        answer(1 + static_cast<std::uint32_t>(steps.number(1)) % 2, steps.number(2) % 4000);
        break;
      case 10:
        look();
        break;
      default:
        me_.driver->lose_peer(1 + static_cast<std::uint32_t>(steps.number(1)) % 2);
    }
  }

  /// The peer that behaves comes through, or is told that it does not.
  void end() {
    for (int tries = 0; tries < 6 && !is_settled(); ++tries) {
      const std::uint64_t mark = kMark;
      const Piece piece = std::as_bytes(std::span{&mark, 1});
      is_refused_ = channel_ == nullptr || channel_->try_send({&piece, 1}) == SendState::closed;
      me_.poll(2200);
    }
    check(is_settled(), "what a peer sends comes, or the peer is lost");
  }

 private:
  [[nodiscard]] bool is_settled() const {
    return me_.sink.has_mark[1] || me_.sink.is_lost[1] || is_refused_;
  }

  /// Eight bytes anywhere in our segment or that of the one who writes.
  void anywhere(Steps& steps) {
    const std::uint32_t whose = steps.number(1) % 2 == 0 ? 0 : 2;
    auto* const bytes = reinterpret_cast<std::byte*>(&*segments_[whose]);
    const std::uint64_t offset = steps.number(3) * 8 % (sizeof(shm::Segment) - 8);
    const std::uint64_t value = steps.number(8);
    std::memcpy(bytes + offset, &value, sizeof value);
  }

  /// A field that matters, with a value near what it has, or any.
  void field(Steps& steps) {
    shm::Segment& ours = *segments_[0];
    const std::uint64_t what = steps.number(1);
    const auto value = static_cast<std::uint32_t>(steps.number(what % 2 == 0 ? 1 : 4));
    switch (what / 2 % 9) {
      case 0:
        ours.tail.fetch_add(value);
        break;
      case 1:
        ours.tail.store(value);
        break;
      case 2:
        ours.taken.fetch_add(value);
        break;
      case 3:
        ours.taken.store(value);
        break;
      case 4:
        ours.state.store(value & ~shm::kClosed);  // Who has closed takes nothing, rightly.
        break;
      case 5:
        ours.absence.store(value);
        ours.rung_ns.store(value * std::uint64_t{value});
        break;
      case 6:
        ours.is_room_wanted.store(1);
        ours.room_waiters[value % ours.room_waiters.size()].store(~std::uint64_t{0});
        break;
      case 7:
        ours.chunk(value % ours.chunk_count.load(), ours.chunk_bytes.load())
            .idle.store(static_cast<std::uint16_t>(value >> 8));
        break;
      default:
        segments_[2]->chunk_bytes.store(value);
        segments_[2]->chunk_count.store(static_cast<std::uint32_t>(steps.number(1)));
        segments_[2]->claims[0].store(steps.number(1) % 2 * (shm::kClaimed | value));
    }
  }

  /// A cell that says that it is the next one, of whatever sender and kind.
  void stranger(Steps& steps) {
    shm::Segment& ours = *segments_[0];
    const std::uint32_t ticket = ours.tail.fetch_add(1);
    shm::Cell& cell = ours.cell(ticket);
    const shm::BulkReference reference{.chunk = static_cast<std::uint32_t>(steps.number(1)),
                                       .bytes = static_cast<std::uint32_t>(steps.number(4))};
    std::memcpy(cell.payload.data(), &reference, sizeof reference);
    const std::uint64_t sender = steps.number(1) % 2 == 0 ? steps.number(2) : steps.number(1) % 4;
    const std::uint64_t kind = steps.number(1) % 2 == 0 ? shm::kBulk : steps.number(2);
    cell.header.store((ticket + 1) | sender << 32 | kind << 48);
  }

  void send(Node& from, std::uint64_t bytes) {
    const std::vector<std::byte> packet(bytes);
    const Piece piece{packet};
    if (Channel* const channel = from.to(0); channel != nullptr) {
      (void)channel->try_send({&piece, 1});
    }
  }
  void answer(std::uint32_t to, std::uint64_t bytes) {
    const std::vector<std::byte> packet(bytes + 1);
    const Piece piece{packet};
    if (Channel* const channel = me_.to(to); channel != nullptr) {
      (void)channel->try_send({&piece, 1});
      (void)channel->peer_is();
    }
  }
  void look() {
    Driver::Sight seen;
    if (!me_.driver->sight(4, seen)) {
      return;
    }
    if (seen.packet.empty()) {  // It is for poll() alone.
      me_.poll(1);
    } else {
      me_.sink.on_packet(seen.from_node, seen.packet);
      me_.driver->pass_sight();
    }
  }

  TestJob job_{kNodes};
  std::vector<shm::SegmentMapping> segments_;
  Node me_{job_, 0};
  Node good_{job_, 1};
  Node bad_{job_, 2};
  Channel* const channel_ = good_.to(0);
  bool is_refused_ = false;
};

}  // namespace
}  // namespace sterna::net

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  sterna::net::Steps steps{data, bytes};
  sterna::net::Play play;
  for (std::uint32_t i = 0; i < sterna::net::kStepsMax && !steps.is_over(); ++i) {
    play.step(steps);
  }
  play.end();
  return 0;
}
