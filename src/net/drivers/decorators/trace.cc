// The calls of a driver on the timeline (`sterna run --trace FILE --drivers 'trace(tcp)'`): a lane
// for each channel, with what is sent and copied over it, and one for the poller, with the packets
// that a poll hands over, losses, and sleeps. Polls that find nothing are not shown: they would
// be all there is. Costs a load for each call while nothing is recorded.
#include "base/trace.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/trace_lane.h"
#include "net/drivers/builtin.h"
#include "net/drivers/decorators/decorator.h"
#include "threads/observation/traced.h"

namespace sterna::net {
namespace decorators {
namespace {

enum class Call : std::uint32_t { send, write, read, packet, lost, revive, sleep };
constexpr std::array<std::string_view, 7> kCallNames{
    "driver: try_send",     "driver: write_remote", "driver: read_remote", "driver: on_packet",
    "driver: on_peer_lost", "driver: revive",       "driver: sleep"};

constexpr std::uint64_t key_of_call(Call call) noexcept {
  constexpr std::uint64_t kFirst = 1 << 16;  // Behind the functions of MPI.
  return trace::key_of(trace::KeyClass::function, kFirst + static_cast<std::uint32_t>(call));
}

/// A track, told to the trace when it is used first.
class Lane {
 public:
  explicit Lane(std::string name) : key_{trace::lane_key(next_number())}, name_{std::move(name)} {}

  void begin(Call call) noexcept { record(trace::Kind::calls, call); }
  void end(Call call) noexcept { record(trace::Kind::returns, call); }

 private:
  static std::uint32_t next_number() noexcept {
    static constinit std::atomic<std::uint32_t> next{0};
    return next.fetch_add(1, std::memory_order_relaxed);
  }
  void record(trace::Kind kind, Call call) noexcept {
    if (!trace::is_on()) [[likely]] {
      return;
    }
    // Relaxed: told twice is no harm.
    if (!is_named_.exchange(true, std::memory_order_relaxed)) {
      trace::name(key_, name_);
      for (std::uint32_t i = 0; i < kCallNames.size(); ++i) {
        trace::name(key_of_call(static_cast<Call>(i)), kCallNames[i]);
      }
    }
    trace::record(kind, threads::trace_worker(), key_, key_of_call(call));
  }

  const std::uint64_t key_;
  const std::string name_;
  std::atomic<bool> is_named_{false};
};

class LaneScope {
 public:
  LaneScope(Lane& lane, Call call) noexcept : lane_{lane}, call_{call} { lane_.begin(call_); }
  ~LaneScope() { lane_.end(call_); }
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

 private:
  Lane& lane_;
  const Call call_;
};

class TraceChannel final : public DecoratorChannel {
 public:
  TraceChannel(Decorator& driver, std::uint32_t node, std::string_view name)
      : DecoratorChannel{driver, node},
        sends_{fmt::format("{} to node {}", name, node)},
        copies_{fmt::format("{} copies, node {}", name, node)} {}

 private:
  SendState send(std::span<const Piece> pieces) noexcept override {
    const LaneScope scope{sends_, Call::send};
    return inner().try_send(pieces);
  }
  // Of several threads at once, maybe: such calls look as if one were inside the other.
  Result<> write_remote(std::span<const Piece> local,
                        std::span<const RemotePiece> remote) noexcept override {
    const LaneScope scope{copies_, Call::write};
    return inner().write_remote(local, remote);
  }
  Result<> read_remote(std::byte* into, RemotePiece from) noexcept override {
    const LaneScope scope{copies_, Call::read};
    return inner().read_remote(into, from);
  }

  Lane sends_;
  Lane copies_;
};

class TraceDriver final : public Decorator {
 public:
  TraceDriver(std::unique_ptr<Driver> inner, const DecoratorOptions& options)
      : Decorator{std::move(inner), options}, polls_{fmt::format("{} polls", name_)} {}

  Result<Channel*> revive(std::uint32_t node) noexcept override {
    const LaneScope scope{polls_, Call::revive};
    return Decorator::revive(node);
  }
  bool prepare_sleep() noexcept override {
    if (!Decorator::prepare_sleep()) {
      return false;
    }
    polls_.begin(Call::sleep);
    return true;
  }
  void end_sleep() noexcept override {
    polls_.end(Call::sleep);
    Decorator::end_sleep();
  }

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    return std::make_unique<TraceChannel>(*this, node, name_);
  }
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    const LaneScope scope{polls_, Call::packet};
    Decorator::on_packet(from_node, packet);
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    const LaneScope scope{polls_, Call::lost};
    Decorator::on_peer_lost(node, reason);
  }

  Lane polls_;  // The poller's.
};

Result<std::unique_ptr<Driver>> wrap(std::unique_ptr<Driver> inner,
                                     const DecoratorOptions& options) noexcept {
  return try_make<Driver, TraceDriver>(std::move(inner), options);
}

}  // namespace
}  // namespace decorators

constinit const DecoratorEntry kTraceDecorator{
    .name = "trace",
    .summary = "shows sends, packets and sleeps on the timeline of a trace",
    .tunables = {},
    .wrap = decorators::wrap};

}  // namespace sterna::net
