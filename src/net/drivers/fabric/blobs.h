// What nodes tell each other of their endpoints, and what is in front of each packet. All of it may
// come from anywhere: an endpoint takes messages of everybody.
//
//   address   what Driver::address() says, told before there is a connection
//   hello     the first packet of each side of a connection that has proven itself
//   (net/opening/auth.h):
//             where its endpoint is, and the token that messages to it must carry
//   frame     in front of each message of the endpoint
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/driver.h"

namespace sterna::net::fabric {

struct Address {
  std::string provider;            // Only nodes with the same one reach each other.
  std::vector<std::byte> control;  // Of the driver tcp.
};
[[nodiscard]] std::vector<std::byte> encode(const Address& address);
/// Fails with malformed.
[[nodiscard]] Result<Address> decode_address(Packet bytes) noexcept;

inline constexpr std::size_t kNameBytesMax = 512;  // Of an endpoint.
struct Hello {
  std::uint64_t token = 0;
  std::uint32_t window = 0;         // Packets that it takes ahead.
  std::uint32_t message_bytes = 0;  // The largest.
  bool can_read = false;            // What we lend (Channel::try_lend).
  std::vector<std::byte> name;      // Of the endpoint, in the provider's words.
};
[[nodiscard]] std::vector<std::byte> encode(const Hello& hello);
/// Fails with malformed.
[[nodiscard]] Result<Hello> decode_hello(Packet bytes) noexcept;

enum class FrameKind : std::uint32_t {
  data = 1,  // A packet follows.
  taken,     // Nothing: it says how many have been taken.
  end,       // The sender has closed in good order. Counts as a packet.
  lend,      // A Loan follows: the sender's memory is to be read. Counts as a packet.
  returned,  // A LoanEnd follows: of what the receiver has lent. Counts as a packet.
};

/// The sender has lent a packet.
struct Loan {
  std::uint64_t id;
  std::uint64_t address;  // Of its bytes, and the key to read them by.
  std::uint64_t key;
  std::uint32_t bytes;
  std::uint32_t unused;
  std::array<std::byte, kPacketHeadBytes> head;
};
inline constexpr std::size_t kLoanBytes = 80;
static_assert(sizeof(Loan) == kLoanBytes);

/// What has become of it.
struct LoanEnd {
  std::uint64_t id;
  std::uint32_t is_whole;  // 1: all of it was read; 0: it was not.
  std::uint32_t unused;
};
inline constexpr std::size_t kLoanEndBytes = 16;
static_assert(sizeof(LoanEnd) == kLoanEndBytes);

struct Frame {
  FrameKind kind;
  std::uint32_t from_node;
  std::uint64_t token;  // That of the receiver.
  std::uint32_t order;  // Of all but taken: how many went before, over this connection.
  std::uint32_t taken;  // Packets that the sender has taken of ours.
};
inline constexpr std::size_t kFrameBytes = 24;
static_assert(sizeof(Frame) == kFrameBytes);

void write_frame(const Frame& frame, std::byte* to) noexcept;
/// False: it is none. `packet`: what follows: of data any bytes, of lend and returned as many as
/// their struct has, else none.
[[nodiscard]] bool read_frame(Packet message, Frame& frame, Packet& packet) noexcept;

}  // namespace sterna::net::fabric
