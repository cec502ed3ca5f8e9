// Networks that lose packets, damage them, bring them twice, or out of turn: each with a given
// chance, decided at the sender, for each channel from a seed. The n-th packet of a channel meets
// the same fate in each run, whatever else goes on: a packet that the network did not take keeps
// its fate for the next attempt.
#include <cstring>

#include <fmt/format.h>

#include "base/annotate.h"
#include "base/kernel_lock.h"
#include "base/random.h"
#include "net/drivers/builtin.h"
#include "net/drivers/decorators/decorator.h"

namespace sterna::net {
namespace decorators {
namespace {

enum class Fault : std::uint8_t { drop, corrupt, duplicate, reorder };

constexpr std::uint64_t kMillion = 1'000'000;

struct FaultOptions {
  Fault fault;
  std::uint64_t per_million;
  std::uint64_t seed;
};

class FaultChannel final : public DecoratorChannel {
 public:
  FaultChannel(Decorator& driver, std::uint32_t node, const FaultOptions& options,
               std::uint64_t seed) noexcept
      : DecoratorChannel{driver, node}, options_{options}, random_{seed} {}

  /// Sends what is held back. True: there is none. `is_asleep`: from now on none will be.
  bool release(bool is_asleep) noexcept {
    const KernelGuard guard{lock_};
    is_asleep_ = is_asleep;
    return send_held();
  }
  /// The peer is lost: what was accepted before will not arrive after it is revived.
  void forget() noexcept {
    const KernelGuard guard{lock_};
    held_.clear();
  }
  [[nodiscard]] std::uint64_t hits() const noexcept {
    return hits_.load(std::memory_order_relaxed);  // A figure orders nothing.
  }
  [[nodiscard]] std::uint64_t packets() const noexcept {
    return packets_.load(std::memory_order_relaxed);
  }

 private:
  SendState send(std::span<const Piece> pieces) noexcept override {
    if (!is_decided_) {
      is_hit_ = random_.below(kMillion) < options_.per_million;
      word_ = random_.next();
      is_decided_ = true;
    }
    const SendState state = is_hit_ ? send_hit(pieces) : send_plain(pieces);
    if (state == SendState::accepted) {
      is_decided_ = false;
      packets_.fetch_add(1, std::memory_order_relaxed);
      hits_.fetch_add(is_hit_ ? 1 : 0, std::memory_order_relaxed);
    }
    return state;
  }

  SendState send_plain(std::span<const Piece> pieces) noexcept {
    if (options_.fault != Fault::reorder) {
      return inner().try_send(pieces);
    }
    const KernelGuard guard{lock_};
    const SendState state = inner().try_send(pieces);
    if (state == SendState::accepted) {
      static_cast<void>(send_held());
    }
    return state;
  }

  SendState send_hit(std::span<const Piece> pieces) noexcept {
    switch (options_.fault) {
      case Fault::drop:
        return SendState::accepted;
      case Fault::corrupt:
        return send_damaged(pieces);
      case Fault::duplicate: {
        const SendState state = inner().try_send(pieces);
        if (state == SendState::accepted) {
          static_cast<void>(inner().try_send(pieces));
        }
        return state;
      }
      case Fault::reorder:
        break;
    }
    const KernelGuard guard{lock_};
    if (is_asleep_ || !held_.empty()) {
      const SendState state = inner().try_send(pieces);
      return state;
    }
    gather(pieces, held_);
    return SendState::accepted;
  }

  /// One bit is wrong, or the end is missing.
  SendState send_damaged(std::span<const Piece> pieces) noexcept {
    gather(pieces, damaged_);
    const std::uint64_t place = word_ >> 3;
    if (word_ % 8 == 0 && damaged_.size() > 1) {
      damaged_.resize(1 + place % (damaged_.size() - 1));
    } else {
      damaged_[place % damaged_.size()] ^= std::byte{1} << (word_ % 8);
    }
    const Piece damaged{damaged_};
    return inner().try_send({&damaged, 1});
  }

  static void gather(std::span<const Piece> pieces, std::vector<std::byte>& into) {
    into.clear();
    for (const Piece& piece : pieces) {
      into.insert(into.end(), piece.begin(), piece.end());
    }
  }

  bool send_held() noexcept STERNA_REQUIRES(lock_) {
    const Piece held{held_};
    if (!held_.empty() && inner().try_send({&held, 1}) != SendState::full) {
      held_.clear();  // Sent, or the peer is lost.
    }
    return held_.empty();
  }

  const FaultOptions options_;
  Random random_;            // The sender's, as all to the lock.
  bool is_decided_ = false;  // The fate of the packet that is offered now.
  bool is_hit_ = false;
  std::uint64_t word_ = 0;
  std::vector<std::byte> damaged_;
  KernelLock lock_;  // Of reorder, whose poller sends what nothing follows.
  std::vector<std::byte> held_ STERNA_GUARDED_BY(lock_);
  bool is_asleep_ STERNA_GUARDED_BY(lock_) = false;
  std::atomic<std::uint64_t> packets_{0};
  std::atomic<std::uint64_t> hits_{0};
};

class FaultDriver final : public Decorator {
 public:
  FaultDriver(std::unique_ptr<Driver> inner, const DecoratorOptions& options,
              const FaultOptions& faults) noexcept
      : Decorator{std::move(inner), options}, faults_{faults} {}

  bool prepare_sleep() noexcept override {
    release_all(true);
    if (Decorator::prepare_sleep()) {
      return true;
    }
    release_all(false);
    return false;
  }
  void end_sleep() noexcept override {
    Decorator::end_sleep();
    release_all(false);
  }

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    return std::make_unique<FaultChannel>(*this, node, faults_, seed_of(faults_.seed, node));
  }
  bool flush() noexcept override { return release_all(false); }
  bool release_all(bool is_asleep) noexcept {
    bool is_empty = true;
    if (faults_.fault == Fault::reorder) {
      for_each_channel([&](DecoratorChannel& channel) {
        is_empty = static_cast<FaultChannel&>(channel).release(is_asleep) && is_empty;
      });
    }
    return is_empty;
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    if (DecoratorChannel* channel = channel_to(node); channel != nullptr) {
      static_cast<FaultChannel*>(channel)->forget();
    }
    Decorator::on_peer_lost(node, reason);
  }
  std::string own_figures() const override {
    std::uint64_t packets = 0;
    std::uint64_t hits = 0;
    for_each_channel([&](DecoratorChannel& channel) {
      packets += static_cast<FaultChannel&>(channel).packets();
      hits += static_cast<FaultChannel&>(channel).hits();
    });
    return fmt::format("{} of {} packets", hits, packets);
  }

  const FaultOptions faults_;
};

constexpr Tunable rate_of(std::string_view name, std::string_view help) {
  return {.name = name,
          .kind = TunableKind::integer,
          .fallback = "10000",
          .maximum = kMillion,
          .help = help};
}
constexpr Tunable seed_named(std::string_view name) {
  return {.name = name,
          .kind = TunableKind::integer,
          .fallback = "1",
          .help = "decides which packets, for each pair of nodes and direction"};
}

constexpr std::array kDropTunables{rate_of("drop_rate", "of a million packets so many are lost"),
                                   seed_named("drop_seed")};
constexpr std::array kCorruptTunables{
    rate_of("corrupt_rate", "of a million packets so many have a wrong bit, or lack their end"),
    seed_named("corrupt_seed")};
constexpr std::array kDuplicateTunables{
    rate_of("duplicate_rate", "of a million packets so many arrive twice"),
    seed_named("duplicate_seed")};
constexpr std::array kReorderTunables{
    rate_of("reorder_rate", "of a million packets so many are overtaken by the next one"),
    seed_named("reorder_seed")};

template <Fault kFault>
void change(Capabilities& capabilities, const DecoratorOptions& /*options*/) noexcept {
  constexpr bool kKeepsOrder = kFault == Fault::drop || kFault == Fault::corrupt;
  capabilities.is_reliable = capabilities.is_reliable && kFault == Fault::reorder;
  capabilities.is_ordered = capabilities.is_ordered && kKeepsOrder;
  // Direct copies are no packets: who wants to see faults shall not go around them.
  capabilities.direct_latency_ns = capabilities.direct_mb_per_s = 0;
}

template <Fault kFault, const auto& kTunables>
Result<std::unique_ptr<Driver>> wrap(std::unique_ptr<Driver> inner,
                                     const DecoratorOptions& options) noexcept {
  const FaultOptions faults{.fault = kFault,
                            .per_million = number_of(options, kTunables[0]),
                            .seed = number_of(options, kTunables[1])};
  return try_make<Driver, FaultDriver>(std::move(inner), options, faults);
}

}  // namespace
}  // namespace decorators

constinit const DecoratorEntry kDropDecorator{
    .name = "drop",
    .summary = "loses packets, by chance from a seed",
    .tunables = decorators::kDropTunables,
    .wrap = decorators::wrap<decorators::Fault::drop, decorators::kDropTunables>,
    .change = decorators::change<decorators::Fault::drop>};
constinit const DecoratorEntry kCorruptDecorator{
    .name = "corrupt",
    .summary = "damages packets, by chance from a seed",
    .tunables = decorators::kCorruptTunables,
    .wrap = decorators::wrap<decorators::Fault::corrupt, decorators::kCorruptTunables>,
    .change = decorators::change<decorators::Fault::corrupt>};
constinit const DecoratorEntry kDuplicateDecorator{
    .name = "duplicate",
    .summary = "brings packets twice, by chance from a seed",
    .tunables = decorators::kDuplicateTunables,
    .wrap = decorators::wrap<decorators::Fault::duplicate, decorators::kDuplicateTunables>,
    .change = decorators::change<decorators::Fault::duplicate>};
constinit const DecoratorEntry kReorderDecorator{
    .name = "reorder",
    .summary = "lets packets overtake each other, by chance from a seed",
    .tunables = decorators::kReorderTunables,
    .wrap = decorators::wrap<decorators::Fault::reorder, decorators::kReorderTunables>,
    .change = decorators::change<decorators::Fault::reorder>};

}  // namespace sterna::net
