// A driver around another one, and its channels: what all decorators share. As it stands it hands
// everything on; a decorator overrides what it changes. None has the short way, so what is around a
// driver sees all packets.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/annotate.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "net/driver.h"
#include "net/drivers/choice.h"
#include "net/drivers/settings_of.h"
#include "net/opening/bootstrap.h"

namespace sterna::net::decorators {

/// The value of a tunable of a decorator: a parameter of its own, else the job's setting.
[[nodiscard]] inline std::uint64_t number_of(const DecoratorOptions& options,
                                             const Tunable& tunable) {
  for (const Parameter& parameter : options.parameters) {
    if (parameter.first == tunable.name) {
      return static_cast<std::uint64_t>(parse_tunable(tunable, parameter.second).value());
    }
  }
  const Settings* const settings = options.driver.settings;
  if (tunable.kind == TunableKind::flag && settings != nullptr && settings->has(tunable.name)) {
    return settings->flag(tunable) ? 1 : 0;
  }
  return static_cast<std::uint64_t>(net::number_of(options.driver, tunable));
}

/// The same of a text.
[[nodiscard]] inline std::string_view text_of(const DecoratorOptions& options,
                                              const Tunable& tunable) {
  for (const Parameter& parameter : options.parameters) {
    if (parameter.first == tunable.name) {
      return parameter.second;
    }
  }
  return net::text_of(options.driver, tunable);
}

class Decorator;

/// The way to one node, around another one.
class DecoratorChannel : public Channel {
 public:
  DecoratorChannel(Decorator& driver, std::uint32_t node) noexcept : driver_{driver}, node_{node} {}

  SendState try_send(std::span<const Piece> pieces) noexcept final;
  bool can_write_remote() const noexcept final;
  bool are_copies_refused() const noexcept final { return inner().are_copies_refused(); }
  Result<> write_remote(std::span<const Piece> local,
                        std::span<const RemotePiece> remote) noexcept override {
    return inner().write_remote(local, remote);
  }
  Result<> read_remote(std::byte* into, RemotePiece from) noexcept override {
    return inner().read_remote(into, from);
  }

  bool is_read_as_ours() const noexcept override { return inner().is_read_as_ours(); }
  bool is_settled() const noexcept override { return inner().is_settled(); }
  bool is_receiver_behind() const noexcept override { return inner().is_receiver_behind(); }
  bool ring_absent(bool is_long) noexcept override { return inner().ring_absent(is_long); }
  PeerIs peer_is() const noexcept override { return inner().peer_is(); }
  InvitationBoard* invitations() noexcept override { return inner().invitations(); }

  [[nodiscard]] std::uint32_t node() const noexcept { return node_; }

 protected:
  /// try_send() of a packet of a right size, while the driver is not closed.
  virtual SendState send(std::span<const Piece> pieces) noexcept {
    return inner().try_send(pieces);
  }
  [[nodiscard]] Channel& inner() const noexcept {
    return *inner_.load(std::memory_order_acquire);  // Pairs with C in Decorator::adopt().
  }
  Decorator& driver_;

 private:
  friend class Decorator;
  std::atomic<Channel*> inner_{nullptr};
  const std::uint32_t node_;
};

class Decorator : public Driver, protected PacketSink {
 public:
  Decorator(std::unique_ptr<Driver> inner, const DecoratorOptions& options) noexcept
      : inner_{std::move(inner)},
        name_{options.name},
        capabilities_{inner_->capabilities()},
        self_{options.driver.bootstrap->job().node_index},
        channels_(options.driver.bootstrap->job().node_count) {
    change_capabilities(*options.entry, capabilities_, options);
  }
  ~Decorator() override;

  const Capabilities& capabilities() const noexcept final { return capabilities_; }
  Packet address() const noexcept final { return inner_->address(); }
  bool reaches(std::uint32_t node, Packet peer_address) const noexcept final {
    return inner_->reaches(node, peer_address);
  }
  Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept final;
  Result<Channel*> revive(std::uint32_t node) noexcept override;
  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override;
  int fd() const noexcept override { return inner_->fd(); }
  bool prepare_sleep() noexcept override;
  std::uint64_t next_deadline_ns() noexcept override { return inner_->next_deadline_ns(); }
  void end_sleep() noexcept override { inner_->end_sleep(); }
  void lose_peer(std::uint32_t node) noexcept override { inner_->lose_peer(node); }
  void abandon(std::uint32_t node, std::string_view reason) noexcept override {
    inner_->abandon(node, reason);
  }
  void close() noexcept final;
  bool is_drained() const noexcept final { return is_inner_closed_ && inner_->is_drained(); }
  std::string figures() const override;
  std::atomic<std::uint32_t>* absence_flag() noexcept override { return inner_->absence_flag(); }
  InvitationBoard* invitations() noexcept override { return inner_->invitations(); }
  std::uint64_t rung_ns() noexcept override { return inner_->rung_ns(); }

  [[nodiscard]] bool is_closed() const noexcept {
    return is_closed_.load(std::memory_order_relaxed);  // As a late close(): a little late.
  }

 protected:
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override {
    sink_->on_packet(from_node, packet);
    if (sink_->is_enough()) {
      end_poll();
    }
  }
  void on_copies_refused(std::uint32_t node) noexcept final { sink_->on_copies_refused(node); }
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override {
    sink_->on_peer_lost(node, reason);
  }
  [[nodiscard]] virtual std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) = 0;
  /// Moves on what the decorator keeps of packets that it accepted. True: it keeps none.
  virtual bool flush() noexcept { return true; }
  /// What the decorator itself has counted; empty: nothing.
  [[nodiscard]] virtual std::string own_figures() const { return {}; }

  template <typename Visit>
  void for_each_channel(Visit visit) const noexcept {
    for (const std::atomic<DecoratorChannel*>& place : channels_) {
      // Acquire: pairs with C.
      if (DecoratorChannel* channel = place.load(std::memory_order_acquire); channel != nullptr) {
        visit(*channel);
      }
    }
  }
  [[nodiscard]] DecoratorChannel* channel_to(std::uint32_t node) const noexcept {
    return node < channels_.size() ? channels_[node].load(std::memory_order_acquire) : nullptr;
  }
  /// A seed for the way to `node`, other than that of the way back.
  [[nodiscard]] std::uint64_t seed_of(std::uint64_t seed, std::uint32_t node) const noexcept {
    return mix64(seed ^ mix64(std::uint64_t{self_} << 32 | node));
  }

  const std::unique_ptr<Driver> inner_;
  const std::string_view name_;
  Capabilities capabilities_;  // Constant after the constructor of the decorator.
  const std::uint32_t self_;
  PacketSink* sink_ = nullptr;  // The poller's, inside poll().

 private:
  Result<Channel*> adopt(std::uint32_t node, Result<Channel*> inner) noexcept;

  std::atomic<bool> is_closed_{false};
  bool is_inner_closed_ = false;  // The poller's.
  // C: a channel is published when it has its inner one, by connect() or revive().
  std::vector<std::atomic<DecoratorChannel*>> channels_;  // By node; freed with the driver.
};

}  // namespace sterna::net::decorators
