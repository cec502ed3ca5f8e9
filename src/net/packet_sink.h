// What a network driver says to who is above it: packets, and where their bytes may go.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sterna::net {

using Packet = std::span<const std::byte>;

inline constexpr std::size_t kPacketHeadBytes = 48;  // By which PacketSink::place judges.

/// Upcalls of a driver, made inside Driver::poll only, with no lock of the driver held. The sink
/// may send on any channel; it must not poll, block or switch.
class PacketSink {
 public:
  /// `packet` is valid until the call returns. It was sent by `from_node`, which has proven the
  /// secret of the job; its bytes are still to be checked.
  virtual void on_packet(std::uint32_t from_node, Packet packet) noexcept = 0;

  // One copy less, optional for both sides: a driver that has received the first bytes of a long
  // packet may ask where the others belong, and receive them there.

  /// A packet of `packet_bytes` bytes comes from `from_node`, and `head` is its first
  /// kPacketHeadBytes: where all that follow them go; as many bytes as follow, or none: the packet
  /// is to be handed over whole. The driver writes there, in this poll() only, and asks again in
  /// each poll() that does: the place of a packet that had one may cease to be, and what is left of
  /// such a packet is dropped.
  [[nodiscard]] virtual std::span<std::byte> place(std::uint32_t /*from_node*/, Packet /*head*/,
                                                   std::uint32_t /*packet_bytes*/) noexcept {
    return {};
  }
  /// In place of on_packet(), in the poll() that has asked last: all bytes are where place() said.
  virtual void on_placed(std::uint32_t /*from_node*/, Packet /*head*/,
                         std::uint32_t /*packet_bytes*/) noexcept {}

  // The same of lent packets (Channel::try_lend), whose bytes come over several polls.

  /// Where the bytes of a lent packet go, all but its head; none: nowhere, its sender gets it back.
  /// Unlike that of place(), the place stays until the driver says on_lent_end(), once: whoever
  /// gives it waits for that, whatever happens.
  [[nodiscard]] virtual std::span<std::byte> hold_place(std::uint32_t /*from_node*/,
                                                        Packet /*head*/,
                                                        std::uint32_t /*packet_bytes*/) noexcept {
    return {};
  }
  /// Nobody writes into the place any more. `is_whole`: all bytes are there; else who knows which.
  virtual void on_lent_end(std::uint32_t /*from_node*/, Packet /*head*/,
                           std::uint32_t /*packet_bytes*/, bool /*is_whole*/) noexcept {}

  /// Found in this poll(): what Channel::are_copies_refused() says from now on.
  virtual void on_copies_refused(std::uint32_t /*node*/) noexcept {}

  /// No packet comes from, or reaches, `node` over this driver any more, until it is revived. Once
  /// per node, and again after each Driver::revive, after all packets that did arrive. `reason` is
  /// a sentence part for the operator, valid during the call.
  virtual void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept = 0;

  /// The poll() under way had better end, with what is here left to the next one: whom a packet has
  /// made runnable wants what follows it. Any thread, mostly that of the poll() inside on_packet().
  void end_poll() noexcept { is_enough_.store(true, std::memory_order_relaxed); }
  /// A poll() that has handed over a packet may ask: it goes on to no other one then.
  [[nodiscard]] bool is_enough() const noexcept {
    return is_enough_.load(std::memory_order_relaxed);
  }

 protected:
  PacketSink() noexcept = default;
  ~PacketSink() = default;
  void begin_poll() noexcept { is_enough_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_enough_{false};  // A hint, which orders nothing.
};

}  // namespace sterna::net
