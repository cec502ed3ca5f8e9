// Sockets and the settings that shape them.
#include "net/drivers/tcp/sockets.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <netinet/tcp.h>

#include "net/drivers/settings_of.h"
#include "net/drivers/tcp/tunables.h"

namespace sterna::net::tcp {
namespace {

constexpr int kRetransmitMaxMs = 44;  // TCP_RTO_MAX_MS of Linux 6.15, unknown to older headers.

void set_option(int socket, int level, int name, int value) noexcept {
  // Best effort: without the option the connection is slower, not wrong.
  ::setsockopt(socket, level, name, &value, sizeof value);
}

void size_buffers(int socket, const Options& options) noexcept {
  if (options.buffer_bytes != 0) {
    set_option(socket, SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.buffer_bytes));
    set_option(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(options.buffer_bytes));
  }
}

bool read_port(std::string_view text, std::uint16_t& port) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size();
}

/// "0", "20000", "20000-20100".
Result<> read_ports(std::string_view ports, Options& options) noexcept {
  const std::size_t dash = ports.find('-');
  const bool is_range = dash != std::string_view::npos;
  if (!read_port(ports.substr(0, dash), options.port_first) ||
      !read_port(is_range ? ports.substr(dash + 1) : ports, options.port_last) ||
      options.port_last < options.port_first || (is_range && options.port_first == 0)) {
    return Error{Errc::invalid_argument, "it must be a port or a range like 20000-20100"};
  }
  return Done{};
}

void put_port(SocketAddress& address, std::uint16_t port) noexcept {
  // The port lies at the same place in both families.
  reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
}

/// Both ends have the same address, or loopback ones.
bool is_within_host(int socket) noexcept {
  SocketAddress own;
  SocketAddress other;
  own.bytes = other.bytes = sizeof own.storage;
  if (::getsockname(socket, own.get(), &own.bytes) != 0 ||
      ::getpeername(socket, other.get(), &other.bytes) != 0) {
    return false;
  }
  put_port(own, 0);
  put_port(other, 0);
  return other.is_loopback() ||
         (own.bytes == other.bytes && std::memcmp(own.get(), other.get(), own.bytes) == 0);
}

std::uint16_t bound_port(int socket) noexcept {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  ::getsockname(socket, address.get(), &address.bytes);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

SocketAddress any_address(int family, bool is_loopback) noexcept {
  SocketAddress address;
  if (family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = is_loopback ? in6addr_loopback : in6addr_any;
    address.bytes = sizeof *v6;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(is_loopback ? INADDR_LOOPBACK : INADDR_ANY);
    address.bytes = sizeof *v4;
  }
  return address;
}

/// A socket with a name that the system has chosen: there is no file that could be left behind.
Result<Listener> listen_inside_host() noexcept {
  Listener listener{
      .socket = FileDescriptor{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)},
      .told = {.network_token = network_token(), .addresses = {}}};
  SocketAddress address;
  address.storage.ss_family = AF_UNIX;
  address.bytes = sizeof address.storage.ss_family;  // No more: any free name (unix(7), autobind).
  if (!listener.socket.is_open() ||
      ::bind(listener.socket.get(), address.get(), address.bytes) != 0 ||
      ::listen(listener.socket.get(), SOMAXCONN) != 0) {
    return system_error("cannot listen on a unix socket", last_error_number());
  }
  address.bytes = sizeof address.storage;
  ::getsockname(listener.socket.get(), address.get(), &address.bytes);
  listener.told.addresses.push_back(address);
  return listener;
}

/// Connections leave by the interface of the instance, also where the system prefers another one
/// that reaches the same network. Where that cannot be, the system chooses.
void leave_by_interface(int socket, const Options& options, const SocketAddress& to) noexcept {
  auto own = local_addresses(options.interface, 0);
  if (!own) {
    return;
  }
  for (const SocketAddress& address : own.value()) {
    if (address.storage.ss_family == to.storage.ss_family &&
        address.is_loopback() == to.is_loopback()) {
      set_option(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
      static_cast<void>(::bind(socket, address.get(), address.bytes));
      return;
    }
  }
}

/// A socket bound to the first free port of the range, listening; or the last error.
Result<FileDescriptor> bind_in_range(const Options& options, SocketAddress address) noexcept {
  const int family = address.storage.ss_family;
  int error = EADDRINUSE;
  for (std::uint32_t port = options.port_first; port <= options.port_last; ++port) {
    FileDescriptor socket{::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket.is_open()) {
      return system_error("cannot make a tcp socket", last_error_number());
    }
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (family == AF_INET6) {
      set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);  // IPv4 comes in here, too.
    }
    size_buffers(socket.get(), options);
    put_port(address, static_cast<std::uint16_t>(port));
    if (::bind(socket.get(), address.get(), address.bytes) == 0 &&
        ::listen(socket.get(), SOMAXCONN) == 0) {
      return socket;
    }
    error = last_error_number();
  }
  return system_error("no port of " + std::to_string(options.port_first) + "-" +
                          std::to_string(options.port_last) + " is free to listen on (tcp_ports)",
                      error);
}

}  // namespace

Result<> verify_ports(std::string_view ports) {
  Options unused;
  return read_ports(ports, unused);
}

Result<Options> read_options(const DriverOptions& given) noexcept {
  Options options;
  options.is_instance = !given.instance.empty();
  options.interface = options.is_instance ? given.instance : text_of(given, kInterface);
  options.packet_bytes = static_cast<std::uint32_t>(number_of(given, kPacketBytes));
  options.host_packet_bytes = std::max(
      options.packet_bytes, static_cast<std::uint32_t>(number_of(given, kHostPacketBytes)));
  options.buffer_bytes = static_cast<std::uint32_t>(number_of(given, kBufferBytes));
  options.strangers_max = static_cast<std::uint32_t>(number_of(given, kStrangers));
  options.handshake_ns = static_cast<std::uint64_t>(number_of(given, kHandshake));
  options.connect_ns = static_cast<std::uint64_t>(number_of(given, kConnect));
  options.silence_ns = static_cast<std::uint64_t>(number_of(given, kSilence));
  const std::string_view ports = text_of(given, kPorts);
  if (Result<> read = read_ports(ports, options); !read) {
    return Error{read.error().code,
                 "tcp_ports is \"" + std::string{ports} + "\": " + read.error().text};
  }
  return options;
}

Result<Listener> listen_for_peers(const Options& options, bool is_one_host) noexcept {
  if (options.is_unix) {
    return listen_inside_host();
  }
  const bool is_loopback = is_one_host && options.interface.empty();
  auto bound = bind_in_range(options, any_address(is_loopback ? AF_INET : AF_INET6, is_loopback));
  if (!bound && !is_loopback) {
    bound = bind_in_range(options, any_address(AF_INET, false));  // A system without IPv6.
  }
  if (!bound) {
    return bound.error();
  }
  Listener listener{.socket = std::move(bound.value()), .told = {}};
  const std::uint16_t port = bound_port(listener.socket.get());
  listener.told.network_token = network_token();
  if (is_loopback) {
    SocketAddress address = any_address(AF_INET, true);
    put_port(address, port);
    listener.told.addresses.push_back(address);
    return listener;
  }
  auto addresses = local_addresses(options.interface, port);
  if (!addresses) {
    return addresses.error();
  }
  listener.told.addresses = std::move(addresses.value());
  return listener;
}

Result<FileDescriptor> start_connect(const Options& options,
                                     const SocketAddress& address) noexcept {
  FileDescriptor socket{
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket.is_open()) {
    return system_error("cannot make a tcp socket", last_error_number());
  }
  size_buffers(socket.get(), options);
  if (!options.is_unix) {
    set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  }
  if (options.is_instance) {
    leave_by_interface(socket.get(), options, address);
  }
  const long connected =
      system_call([&] { return ::connect(socket.get(), address.get(), address.bytes); });
  if (connected < 0 && connected != -EINPROGRESS) {
    return system_error(address.text(), static_cast<int>(-connected));
  }
  return socket;
}

FileDescriptor accept_one(int listener, SocketAddress& address, int& error) noexcept {
  address.bytes = sizeof address.storage;
  const long fd = system_call([&] {
    return ::accept4(listener, address.get(), &address.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
  });
  error = fd < 0 ? static_cast<int>(-fd) : 0;
  return FileDescriptor{static_cast<int>(std::max(fd, -1L))};
}

void tune(int socket, const Options& options) noexcept {
  if (options.is_unix) {
    return;  // No delay, no pace, and its ends are seen at once.
  }
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (is_within_host(socket)) {
    // Nothing on the way can be full, and what a system uses for real ways may send by the clock
    // there (bbr): 16 MiB took half as long again. Every system allows this one to everybody.
    static constexpr std::string_view kWithoutClock = "reno";
    ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kWithoutClock.data(), kWithoutClock.size());
  }
  // What is sent again, or asked again, is so in time to have an answer within silence_ns.
  const int silence_ms = static_cast<int>(options.silence_ns / 1'000'000);
  set_option(socket, IPPROTO_TCP, kRetransmitMaxMs, std::clamp(silence_ms / 3, 1'000, 120'000));
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
  // The kernel asks an idle end in whole seconds, and gives up after the last question's pause.
  const int silence_s = silence_ms / 1'000;
  const int idle_s = std::max(silence_s / 3, 1);
  const int pause_s = std::max(silence_s / 9, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, pause_s);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, std::max((silence_s - idle_s) / pause_s, 1));
}

void tune_joining(int socket, const Options& options) noexcept {
  tune(socket, options);
  if (!options.is_unix) {
    set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT,
               static_cast<int>(options.silence_ns / 1'000'000));
  }
}

}  // namespace sterna::net::tcp
