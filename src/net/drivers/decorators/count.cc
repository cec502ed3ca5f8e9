// Counts what goes through: `sterna run --set log=net=info` writes it when the job ends.
#include <array>

#include <fmt/format.h>

#include "net/drivers/builtin.h"
#include "net/drivers/decorators/decorator.h"

namespace sterna::net {
namespace decorators {
namespace {

/// Packets and their bytes. Written by one thread, read by others: figures order nothing.
struct Tally {
  std::atomic<std::uint64_t> packets{0};
  std::atomic<std::uint64_t> bytes{0};
  void add(std::uint64_t more) noexcept {
    packets.store(packets.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    bytes.store(bytes.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
};

class CountChannel final : public DecoratorChannel {
 public:
  using DecoratorChannel::DecoratorChannel;
  Tally sent;                             // By the sender.
  std::atomic<std::uint64_t> refused{0};  // Offers that found no room; by the sender.
  std::atomic<std::uint64_t> written{0};  // Bytes of direct copies; any thread.

 private:
  SendState send(std::span<const Piece> pieces) noexcept override {
    const SendState state = inner().try_send(pieces);
    if (state == SendState::accepted) {
      std::uint64_t bytes = 0;
      for (const Piece& piece : pieces) {
        bytes += piece.size();
      }
      sent.add(bytes);
    } else if (state == SendState::full) {
      refused.fetch_add(1, std::memory_order_relaxed);
    }
    return state;
  }
  Result<> write_remote(std::span<const Piece> local,
                        std::span<const RemotePiece> remote) noexcept override {
    for (const RemotePiece& piece : remote) {
      written.fetch_add(piece.bytes, std::memory_order_relaxed);
    }
    return inner().write_remote(local, remote);
  }
  Result<> read_remote(std::byte* into, RemotePiece from) noexcept override {
    written.fetch_add(from.bytes, std::memory_order_relaxed);
    return inner().read_remote(into, from);
  }
};

class CountDriver final : public Decorator {
 public:
  CountDriver(std::unique_ptr<Driver> inner, const DecoratorOptions& options)
      : Decorator{std::move(inner), options},
        received_(options.driver.bootstrap->job().node_count) {}

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    return std::make_unique<CountChannel>(*this, node);
  }
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    if (from_node < received_.size()) {
      received_[from_node].add(packet.size());
    }
    Decorator::on_packet(from_node, packet);
  }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    losses_.fetch_add(1, std::memory_order_relaxed);
    Decorator::on_peer_lost(node, reason);
  }
  std::string own_figures() const override {
    std::uint64_t packets = 0, bytes = 0, in_packets = 0, in_bytes = 0, refused = 0, direct = 0;
    for_each_channel([&](DecoratorChannel& channel) {
      const auto& counted = static_cast<CountChannel&>(channel);
      packets += counted.sent.packets.load(std::memory_order_relaxed);
      bytes += counted.sent.bytes.load(std::memory_order_relaxed);
      refused += counted.refused.load(std::memory_order_relaxed);
      direct += counted.written.load(std::memory_order_relaxed);
    });
    for (const Tally& tally : received_) {
      in_packets += tally.packets.load(std::memory_order_relaxed);
      in_bytes += tally.bytes.load(std::memory_order_relaxed);
    }
    return fmt::format(
        "sent {} packets of {} bytes, received {} of {}, found no room {} times, copied {} bytes "
        "directly, lost peers {} times",
        packets, bytes, in_packets, in_bytes, refused, direct,
        losses_.load(std::memory_order_relaxed));
  }

  std::vector<Tally> received_;  // By node; by the poller.
  std::atomic<std::uint64_t> losses_{0};
};

Result<std::unique_ptr<Driver>> wrap(std::unique_ptr<Driver> inner,
                                     const DecoratorOptions& options) noexcept {
  return try_make<Driver, CountDriver>(std::move(inner), options);
}

}  // namespace
}  // namespace decorators

constinit const DecoratorEntry kCountDecorator{
    .name = "count",
    .summary = "counts packets and bytes, for the log of a job's end",
    .tunables = {},
    .wrap = decorators::wrap};

}  // namespace sterna::net
