// A connection that is not yet one of the job: it connects, then both sides prove themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/syscall.h"
#include "net/drivers/tcp/address.h"
#include "net/opening/auth.h"

namespace sterna::net::tcp {

/// Used by the poller only. Reads no byte beyond the handshake.
class Joining {
 public:
  enum class Step : std::uint8_t {
    waiting,   // For the other side.
    proven,    // It came to us and is of our job: decide().
    pledged,   // It is bound to be ours: the other side is to confirm that it knows.
    admitted,  // Ours: take_socket().
    declined,  // Of our job, but not wanted.
    failed,    // reason() says why: a stranger, or the network.
  };

  /// We connect; `socket` is connecting without waiting.
  Joining(FileDescriptor socket, const Handshake& handshake, const SocketAddress& address,
          std::uint64_t deadline_ns) noexcept
      : socket_{std::move(socket)},
        handshake_{handshake},
        address_{address},
        deadline_ns_{deadline_ns} {}

  /// Goes on as far as it can without waiting.
  Step advance() noexcept;
  /// After proven: sends the verdict. Gives pledged, declined or failed.
  Step decide(bool admit) noexcept;

  [[nodiscard]] bool is_connecting() const noexcept { return is_connecting_; }
  void set_connected() noexcept { is_connecting_ = false; }
  [[nodiscard]] bool is_incoming() const noexcept { return is_incoming_; }
  void set_incoming() noexcept { is_incoming_ = true, is_connecting_ = false; }
  /// We have admitted the other side, which may have adopted the connection by now: as long as it
  /// stands, no other one to that node may be.
  [[nodiscard]] bool is_pledged() const noexcept {
    return handshake_.state() == Handshake::State::pledged;
  }
  [[nodiscard]] std::uint32_t peer() const noexcept { return handshake_.peer(); }
  /// See Handshake. From proven or admitted on.
  [[nodiscard]] std::uint64_t connection() const noexcept { return handshake_.connection(); }
  [[nodiscard]] std::uint64_t lost_connection() const noexcept {
    return handshake_.lost_connection();
  }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// Failed, and it was the other side that closed it.
  [[nodiscard]] bool has_left() const noexcept { return has_left_; }
  [[nodiscard]] const SocketAddress& address() const noexcept { return address_; }
  [[nodiscard]] std::uint64_t deadline_ns() const noexcept { return deadline_ns_; }
  /// Connected, and the other side's system has taken what we sent.
  [[nodiscard]] bool has_reached_host() const noexcept;
  /// From now on without a deadline. Only ours, never one that came.
  void wait_for_ever() noexcept { deadline_ns_ = kNever; }
  [[nodiscard]] bool is_patient() const noexcept { return deadline_ns_ == kNever; }
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }
  [[nodiscard]] FileDescriptor take_socket() noexcept { return std::move(socket_); }

 private:
  Step fail(std::string reason) noexcept;
  /// True: connected; else fails or waits, as `step` says.
  bool finish_connect(Step& step) noexcept;
  bool send_reply() noexcept;

  FileDescriptor socket_;
  Handshake handshake_;
  SocketAddress address_;
  std::uint64_t deadline_ns_;
  bool is_connecting_ = true;
  bool is_incoming_ = false;
  bool has_left_ = false;
  std::array<std::byte, Handshake::kMessageBytesMax> message_{};
  std::size_t message_bytes_ = 0;
  std::string reason_;
};

}  // namespace sterna::net::tcp
