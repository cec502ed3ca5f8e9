// A network whose links are cut for a while: a packet that is on a cut link is lost, the node is
// told that the peer is (cut_tells), and may revive it once the link is whole again. Who cuts:
// LinkSwitch (in tests within a process), or the number of packets that went over a link
// (cut_after), each node by its own count.
#include <fmt/format.h>

#include "net/drivers/builtin.h"
#include "net/drivers/decorators/decorator.h"
#include "net/drivers/decorators/links.h"

namespace sterna::net {
namespace decorators {
namespace {

struct CutOptions {
  std::uint64_t after_packets;  // 0: never by itself.
  std::uint64_t times;
  std::uint64_t for_ns;
  std::uint64_t patience_ns;
  bool tells;
};

class CutChannel final : public DecoratorChannel {
 public:
  enum class State : std::uint8_t {
    whole,     // Packets go through.
    silent,    // The link is cut and nobody is told: packets vanish.
    lost,      // The link is or was cut; on_peer_lost was called.
    reviving,  // Revived while the link is still cut.
  };
  using DecoratorChannel::DecoratorChannel;

  // Relaxed all: a packet more or less on a link that is being cut is no matter.
  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_relaxed); }
  void set(State state) noexcept { state_.store(state, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t packets() const noexcept {
    return packets_.load(std::memory_order_relaxed);
  }
  void count() noexcept { packets_.fetch_add(1, std::memory_order_relaxed); }

  // The poller's.
  std::uint64_t cuts = 0;
  std::uint64_t next_cut = 0;                // Packets until then; 0: not yet set.
  std::uint64_t whole_again_ns = 0;          // When a cut by number ends; 0: there is none.
  std::uint64_t patience_until_ns = kNever;  // While reviving.

 private:
  SendState send(std::span<const Piece> pieces) noexcept override {
    switch (state()) {
      case State::whole:
        break;
      case State::silent:
        return SendState::accepted;
      case State::lost:
        return SendState::closed;
      case State::reviving:
        return SendState::full;
    }
    const SendState sent = inner().try_send(pieces);
    if (sent == SendState::accepted) {
      count();
    }
    return sent;
  }

  std::atomic<State> state_{State::whole};
  std::atomic<std::uint64_t> packets_{0};
};

class CutDriver final : public Decorator {
 public:
  CutDriver(std::unique_ptr<Driver> inner, const DecoratorOptions& options,
            const CutOptions& cut) noexcept
      : Decorator{std::move(inner), options},
        cut_{cut},
        links_{options.driver.bootstrap->links()},
        clock_{options.driver.clock != nullptr ? *options.driver.clock : machine_clock_},
        is_inner_lost_(options.driver.bootstrap->job().node_count) {}

  Result<Channel*> revive(std::uint32_t node) noexcept override {
    auto* const channel = static_cast<CutChannel*>(channel_to(node));
    if (is_closed()) {
      return Errc::closed;
    }
    if (is_inner_lost_[node]) {
      Result<Channel*> revived = Decorator::revive(node);
      if (!revived) {
        return revived;
      }
      is_inner_lost_[node] = false;
    }
    if (channel == nullptr) {
      return Error{Errc::unreachable, "this node was never connected to"};
    }
    if (channel->state() == CutChannel::State::lost) {
      channel->patience_until_ns = clock_.now_ns() + cut_.patience_ns;
      channel->set(is_cut(*channel) ? CutChannel::State::reviving : CutChannel::State::whole);
    }
    return static_cast<Channel*>(channel);
  }

  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override {
    const std::uint32_t count = Decorator::poll(sink, packets_max);
    for_each_channel(
        [&](DecoratorChannel& channel) { judge(static_cast<CutChannel&>(channel), sink); });
    return count;
  }
  // While something may change by itself the node is polled.
  bool prepare_sleep() noexcept override {
    bool is_whole = true;
    for_each_channel([&](DecoratorChannel& channel) {
      auto& own = static_cast<CutChannel&>(channel);
      is_whole = is_whole && own.state() == CutChannel::State::whole && !is_cut(own);
    });
    return is_whole && Decorator::prepare_sleep();
  }

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    return std::make_unique<CutChannel>(*this, node);
  }

  [[nodiscard]] bool is_cut(CutChannel& channel) noexcept {
    if (links_ != nullptr && links_->is_cut(self_, channel.node())) {
      return true;
    }
    if (channel.whole_again_ns != 0) {
      if (clock_.now_ns() < channel.whole_again_ns) {
        return true;
      }
      channel.whole_again_ns = 0;
      channel.next_cut = channel.packets() + cut_.after_packets;
    }
    if (channel.next_cut == 0) {
      channel.next_cut = cut_.after_packets;
    }
    if (cut_.after_packets == 0 || channel.cuts == cut_.times ||
        channel.packets() < channel.next_cut) {
      return false;
    }
    ++channel.cuts;
    channel.whole_again_ns = clock_.now_ns() + cut_.for_ns;
    return true;
  }

  void judge(CutChannel& channel, PacketSink& sink) noexcept {
    using State = CutChannel::State;
    const bool is_now_cut = is_cut(channel);
    const State state = channel.state();
    if (state == State::whole && is_now_cut) {
      channel.set(cut_.tells ? State::lost : State::silent);
      if (cut_.tells && !is_closed()) {
        sink.on_peer_lost(channel.node(), "the link to it was cut, as asked for");
      }
    } else if (state == State::silent && !is_now_cut) {
      channel.set(State::whole);
    } else if (state == State::reviving && !is_now_cut) {
      channel.set(State::whole);
    } else if (state == State::reviving && clock_.now_ns() >= channel.patience_until_ns) {
      channel.set(State::lost);
      sink.on_peer_lost(channel.node(), "the link to it stays cut");
    }
  }

  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    auto* const channel = static_cast<CutChannel*>(channel_to(from_node));
    if (channel != nullptr) {
      channel->count();
      if (channel->state() != CutChannel::State::whole) {
        return;
      }
    }
    if (links_ == nullptr || !links_->is_cut(from_node, self_)) {
      Decorator::on_packet(from_node, packet);
    }
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    auto* const channel = static_cast<CutChannel*>(channel_to(node));
    is_inner_lost_[node] = true;
    if (channel != nullptr) {
      if (channel->state() == CutChannel::State::lost) {
        return;  // It was told.
      }
      channel->set(CutChannel::State::lost);
    }
    Decorator::on_peer_lost(node, reason);
  }
  std::string own_figures() const override {
    std::uint64_t cuts = 0;
    for_each_channel(
        [&](DecoratorChannel& channel) { cuts += static_cast<CutChannel&>(channel).cuts; });
    return fmt::format("links were cut {} times", cuts);
  }

  const CutOptions cut_;
  const LinkSwitch* const links_;
  MonotonicClock machine_clock_;
  Clock& clock_;
  std::vector<bool> is_inner_lost_;  // The poller's, by node.
};

constexpr Tunable kAfter{.name = "cut_after",
                         .kind = TunableKind::integer,
                         .fallback = "0",
                         .help = "a link is cut after so many packets each way; 0: never"};
constexpr Tunable kTimes{
    .name = "cut_times", .kind = TunableKind::integer, .fallback = "1", .help = "and so often"};
constexpr Tunable kFor{.name = "cut_for",
                       .kind = TunableKind::time,
                       .fallback = "50ms",
                       .help = "how long a link stays cut"};
constexpr Tunable kPatience{.name = "cut_patience",
                            .kind = TunableKind::time,
                            .fallback = "20s",
                            .help = "a peer that is revived over a cut link is lost again then"};
constexpr Tunable kTells{.name = "cut_tells",
                         .kind = TunableKind::flag,
                         .fallback = "on",
                         .help = "a node is told of a cut; off: packets vanish meanwhile"};
constexpr std::array kTunables{kAfter, kTimes, kFor, kPatience, kTells};

void change(Capabilities& capabilities, const DecoratorOptions& /*options*/) noexcept {
  capabilities.is_reliable = false;  // Of what was on a link that was cut nobody knows.
  capabilities.can_revive = true;
  capabilities.direct_latency_ns = capabilities.direct_mb_per_s = 0;
}

Result<std::unique_ptr<Driver>> wrap(std::unique_ptr<Driver> inner,
                                     const DecoratorOptions& options) noexcept {
  return try_make<Driver, CutDriver>(std::move(inner), options,
                                     CutOptions{.after_packets = number_of(options, kAfter),
                                                .times = number_of(options, kTimes),
                                                .for_ns = number_of(options, kFor),
                                                .patience_ns = number_of(options, kPatience),
                                                .tells = number_of(options, kTells) != 0});
}

}  // namespace
}  // namespace decorators

constinit const DecoratorEntry kCutDecorator{
    .name = "cut",
    .summary = "cuts links for a while, after so many packets",
    .tunables = decorators::kTunables,
    .wrap = decorators::wrap,
    .change = decorators::change};

}  // namespace sterna::net
