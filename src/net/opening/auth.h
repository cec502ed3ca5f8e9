// The proof that both ends of a connection belong to one job, before anything else is parsed.
//
// Challenge and response over the 32-byte secret of the job (HMAC-SHA-512-256, libsodium):
//
//   initiator -> responder   hello      from, to, connection lost, nonce A
//   responder -> initiator   challenge  nonce B, tag(responder)
//   initiator -> responder   proof      tag(initiator)
//   responder -> initiator   verdict    admitted or declined, tag(verdict)
//   initiator -> responder   confirm    tag(confirm), of a connection that is admitted
//
// The initiator may give up as long as it has no verdict: a responder that has admitted it is bound
// to this connection, and to no other one of that node, but sends nothing over it before the
// confirmation. So both have the connection, or neither has: none is lost that never was.
//
// Every tag covers the role, both node indexes, the lost connection and both nonces, so a tag can
// be neither replayed on another connection nor sent back to its maker. Who connects anew names the
// connection that it has lost, so that the responder knows it for lost, too, and does not take the
// new one for a second one. Each message has a fixed size that the receiver
// knows before it reads. A Handshake does no input or output, keeps no clock and allocates nothing:
// the driver that owns the connection moves the bytes and bounds the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sterna::net {

using JobSecret = std::array<std::byte, 32>;
using Nonce = std::array<std::byte, 32>;

/// A fresh nonce from the system's generator.
[[nodiscard]] Nonce random_nonce() noexcept;

/// One side of one handshake. Used by one thread at a time.
class Handshake {
 public:
  enum class State : std::uint8_t {
    running,   // Messages are still to come.
    proven,    // Responder only: the peer has proven itself, decide() is to be called.
    pledged,   // Responder only: it has admitted the peer, who has not confirmed yet.
    admitted,  // Both sides have proven themselves: packets may follow.
    declined,  // The peer is of our job, but this connection is not wanted (another one is kept).
    refused,   // Not of our job, or garbage: close at once. refusal() says what was wrong.
  };

  struct Nodes {
    std::uint32_t self;
    std::uint32_t peer;  // Of a responder: not known before the hello, ignored.
    std::uint32_t node_count;
  };

  /// The side that connects; reply() holds the hello at once.
  [[nodiscard]] static Handshake initiate(const JobSecret& secret, Nodes nodes, const Nonce& nonce,
                                          std::uint64_t lost_connection = 0) noexcept;

  /// The side that accepts.
  [[nodiscard]] static Handshake respond(const JobSecret& secret, Nodes nodes,
                                         const Nonce& nonce) noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }

  /// Size of the next message to read; 0 when none is expected.
  [[nodiscard]] std::size_t bytes_wanted() const noexcept;

  /// Judges the next message, of exactly bytes_wanted() bytes. May fill reply().
  State take(std::span<const std::byte> message) noexcept;

  /// In state proven: admits the connection (then it is pledged) or declines it; fills reply().
  void decide(bool admit) noexcept;

  /// What must be sent now; empty when nothing. Valid until the next take() or decide().
  [[nodiscard]] std::span<const std::byte> reply() const noexcept {
    return std::span{reply_}.first(reply_bytes_);
  }

  /// The other node: of a responder valid from state proven on.
  [[nodiscard]] std::uint32_t peer() const noexcept { return nodes_.peer; }

  /// A number that both sides know this connection by. From proven or admitted on; not 0.
  [[nodiscard]] std::uint64_t connection() const noexcept;
  /// The connection() that the initiator had with us and has lost; 0: none. From proven on.
  [[nodiscard]] std::uint64_t lost_connection() const noexcept { return lost_connection_; }

  /// Why the state is refused, as the end of a sentence.
  [[nodiscard]] std::string_view refusal() const noexcept { return refusal_; }

  static constexpr std::size_t kMessageBytesMax = 68;

 private:
  enum class Step : std::uint8_t { hello, challenge, proof, verdict, confirm, none };
  using Tag = std::array<std::byte, 32>;

  Handshake(const JobSecret& secret, Nodes nodes) noexcept : secret_{secret}, nodes_{nodes} {}

  [[nodiscard]] Tag tag(std::string_view role, std::uint32_t word) const noexcept;
  State refuse(std::string_view why) noexcept;
  State take_hello(std::span<const std::byte> message) noexcept;
  State take_challenge(std::span<const std::byte> message) noexcept;
  State take_proof(std::span<const std::byte> message) noexcept;
  State take_verdict(std::span<const std::byte> message) noexcept;
  State take_confirm(std::span<const std::byte> message) noexcept;
  void append(std::span<const std::byte> bytes) noexcept;
  void append_word(std::uint32_t word) noexcept;

  JobSecret secret_;
  Nodes nodes_;
  bool initiator_ = false;
  Step awaited_ = Step::none;
  State state_ = State::running;
  std::uint64_t lost_connection_ = 0;
  Nonce initiator_nonce_{};
  Nonce responder_nonce_{};
  std::array<std::byte, kMessageBytesMax> reply_{};
  std::size_t reply_bytes_ = 0;
  std::string_view refusal_;
};

}  // namespace sterna::net
