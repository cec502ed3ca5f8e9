// Where a node listens, as the other nodes are told: a port and the addresses of its interfaces, or
// the name of a socket that is inside its host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/result.h"

namespace sterna::net::tcp {

/// An address of a socket: IPv4, IPv6, or a name without a file (abstract, of the network
/// namespace).
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  [[nodiscard]] const sockaddr* get() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage);
  }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] bool is_loopback() const noexcept;
  [[nodiscard]] bool operator==(const SocketAddress& other) const noexcept;
  /// "10.0.0.1:4711", "[::1]:4711", "unix 0a3f1"; for messages.
  [[nodiscard]] std::string text() const;
};

struct Listening {
  std::uint64_t network_token = 0;  // Equal: one network namespace, where loopback is shared.
  std::vector<SocketAddress> addresses;
};

inline constexpr std::size_t kAddressesMax = 16;
inline constexpr std::size_t kSocketNameBytesMax = 64;  // Of an abstract one; the system's have 5.

[[nodiscard]] std::vector<std::byte> encode(const Listening& listening);

/// Fails with malformed. The bytes may come from anywhere.
[[nodiscard]] Result<Listening> decode(std::span<const std::byte> blob) noexcept;

/// The token of the network namespace of this process; 0: unknown.
[[nodiscard]] std::uint64_t network_token() noexcept;

/// The addresses of the interfaces that are up, with `port`, loopback ones first, at most
/// kAddressesMax; `interface` restricts them to one interface, one address or those with one prefix
/// ("10.0.1.0/24"), empty: all. None: an error that lists what there is.
[[nodiscard]] Result<std::vector<SocketAddress>> local_addresses(std::string_view interface,
                                                                 std::uint16_t port) noexcept;

/// The names of the interfaces that have these addresses, without the loopback one; none: there are
/// no others, or they cannot be listed.
[[nodiscard]] std::vector<std::string> interface_names(std::string_view interface) noexcept;

/// The addresses of a peer to try from here, in this order; loopback ones in our own namespace
/// only.
[[nodiscard]] std::vector<SocketAddress> usable_addresses(const Listening& peer,
                                                          std::uint64_t own_token);

}  // namespace sterna::net::tcp
