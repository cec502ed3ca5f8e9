// Makes and tunes the sockets of the tcp driver.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/syscall.h"
#include "net/driver.h"
#include "net/drivers/tcp/address.h"

namespace sterna::net::tcp {

/// The tunables, read once.
struct Options {
  std::string interface;     // Name, address or prefix; empty: all.
  bool is_instance = false;  // Written behind '@': connections leave by it, too.
  bool is_unix = false;      // Sockets inside the host: no interface, no port.
  std::uint16_t port_first = 0;
  std::uint16_t port_last = 0;  // Both 0: any port.
  std::uint32_t packet_bytes = 0;
  std::uint32_t host_packet_bytes = 0;  // To nodes of this host; at least packet_bytes.
  std::uint32_t buffer_bytes = 0;  // 0: the system sizes them.
  std::uint32_t strangers_max = 0;
  std::uint64_t handshake_ns = 0;
  std::uint64_t connect_ns = 0;
  std::uint64_t silence_ns = 0;
};
[[nodiscard]] Result<Options> read_options(const DriverOptions& options) noexcept;

struct Listener {
  FileDescriptor socket;
  Listening told;  // What peers are told.
};
/// `is_one_host`: all nodes are here, so that only loopback listens.
[[nodiscard]] Result<Listener> listen_for_peers(const Options& options, bool is_one_host) noexcept;

/// A socket that is connecting to `address`, without waiting.
[[nodiscard]] Result<FileDescriptor> start_connect(const Options& options,
                                                   const SocketAddress& address) noexcept;

/// The next connection that waits, with its address; or the negated error number in `socket`'s
/// place is told by `error` (EAGAIN: none waits).
[[nodiscard]] FileDescriptor accept_one(int listener, SocketAddress& address, int& error) noexcept;

/// For a connection of the job: no delay, no pacing where both ends are on this host, and an end
/// within silence_ns when the peer's host goes while nothing is under way (else: silence.h).
void tune(int socket, const Options& options) noexcept;

/// For one that is to become it, until it is tuned: the system also ends it when bytes are not
/// acknowledged for silence_ns. They are too few to shut a window.
void tune_joining(int socket, const Options& options) noexcept;

}  // namespace sterna::net::tcp
