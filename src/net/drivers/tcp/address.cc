// Finds, writes and reads the addresses that nodes tell each other.
#include "net/drivers/tcp/address.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/hash.h"
#include "base/syscall.h"
#include "base/system_file.h"
#include "base/wire.h"

namespace sterna::net::tcp {
namespace {

constexpr std::uint32_t kBlobMagic = 0x31504354;  // "TCP1"
constexpr std::size_t kBlobBytesMax = 1024;
constexpr std::uint8_t kNamed = 1;  // Beside 4 and 6: an abstract name, of so many bytes.

std::uint16_t port_of(const SocketAddress& address) noexcept {
  return ntohs(address.storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

std::string host_text(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.storage.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr,
                text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr,
                text.data(), text.size());
  }
  return text.data();
}

SocketAddress make_v4(const in_addr& host, std::uint16_t port) noexcept {
  SocketAddress address;
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  plain.sin_port = htons(port);
  plain.sin_addr = host;
  std::memcpy(&address.storage, &plain, sizeof plain);
  address.bytes = sizeof plain;
  return address;
}

SocketAddress make_v6(const in6_addr& host, std::uint16_t port) noexcept {
  SocketAddress address;
  sockaddr_in6 plain{};
  plain.sin6_family = AF_INET6;
  plain.sin6_port = htons(port);
  plain.sin6_addr = host;
  std::memcpy(&address.storage, &plain, sizeof plain);
  address.bytes = sizeof plain;
  return address;
}

std::span<const std::byte> host_bytes(const SocketAddress& address) noexcept {
  if (address.storage.ss_family == AF_INET6) {
    const auto& host = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
    return std::as_bytes(std::span{&host, 1});
  }
  const auto& host = reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr;
  return std::as_bytes(std::span{&host, 1});
}

/// Whether `prefix` is one ("10.0.1.0/24", "fd00::/8") that the address begins with.
bool has_prefix(const SocketAddress& address, std::string_view prefix) noexcept {
  const std::size_t slash = prefix.find('/');
  if (slash == std::string_view::npos || slash >= INET6_ADDRSTRLEN) {
    return false;
  }
  std::array<char, INET6_ADDRSTRLEN + 1> host{};
  prefix.copy(host.data(), slash);
  const std::string_view digits = prefix.substr(slash + 1);
  std::size_t bits = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  std::array<std::byte, sizeof(in6_addr)> wanted{};
  const std::span<const std::byte> own = host_bytes(address);
  if (error != std::errc{} || end != digits.data() + digits.size() || bits > 8 * own.size() ||
      ::inet_pton(address.storage.ss_family, host.data(), wanted.data()) != 1) {
    return false;
  }
  for (std::size_t i = 0; i < bits; ++i) {
    const auto mask = std::byte{0x80} >> (i % 8);
    if ((own[i / 8] & mask) != (wanted[i / 8] & mask)) {
      return false;
    }
  }
  return true;
}

/// The name of an abstract socket, without the zero in front; empty: it has none.
std::span<const std::byte> socket_name(const SocketAddress& address) noexcept {
  const auto* const local = reinterpret_cast<const sockaddr_un*>(&address.storage);
  constexpr std::size_t kBegin = offsetof(sockaddr_un, sun_path) + 1;
  return std::as_bytes(
      std::span{local->sun_path + 1, address.bytes > kBegin ? address.bytes - kBegin : 0});
}

SocketAddress make_local(std::span<const std::byte> name) noexcept {
  SocketAddress address;
  auto* const local = reinterpret_cast<sockaddr_un*>(&address.storage);
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path + 1, name.data(), name.size());
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

/// None: it is down, or has no address that means something to a peer.
std::optional<SocketAddress> address_of(const ifaddrs& entry, std::uint16_t port) noexcept {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) {
    return std::nullopt;
  }
  if (entry.ifa_addr->sa_family == AF_INET) {
    return make_v4(reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr, port);
  }
  if (entry.ifa_addr->sa_family != AF_INET6) {
    return std::nullopt;
  }
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
  if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) {
    return std::nullopt;  // Means nothing without an interface of the peer.
  }
  return make_v6(v6->sin6_addr, port);
}

/// Whether `interface`, as a user writes it, stands for this one.
bool is_meant(std::string_view interface, const ifaddrs& entry, const SocketAddress& address) {
  return interface.empty() || interface == entry.ifa_name || interface == host_text(address) ||
         has_prefix(address, interface);
}

}  // namespace

bool SocketAddress::is_loopback() const noexcept {
  if (storage.ss_family == AF_UNIX) {
    return true;  // It means nothing outside of the network namespace.
  }
  if (storage.ss_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  }
  const auto host = ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr);
  return (host >> 24) == 127;
}

bool SocketAddress::operator==(const SocketAddress& other) const noexcept {
  return bytes == other.bytes && std::memcmp(get(), other.get(), bytes) == 0;
}

std::string SocketAddress::text() const {
  if (storage.ss_family == AF_UNIX) {
    const auto name = socket_name(*this);
    std::string text =
        "unix " + std::string{reinterpret_cast<const char*>(name.data()), name.size()};
    // Who connects chooses its name, and it goes to the log.
    std::ranges::replace_if(
        text, [](char c) { return c < ' ' || c > '~'; }, '.');
    return text;
  }
  const std::string host = host_text(*this);
  return (storage.ss_family == AF_INET6 ? "[" + host + "]" : host) + ":" +
         std::to_string(port_of(*this));
}

std::vector<std::byte> encode(const Listening& listening) {
  std::vector<std::byte> blob;
  wire::Writer writer{blob, kBlobBytesMax};
  writer.u32(kBlobMagic);
  writer.u64(listening.network_token);
  writer.u32(static_cast<std::uint32_t>(listening.addresses.size()));
  for (const SocketAddress& address : listening.addresses) {
    if (address.storage.ss_family == AF_UNIX) {
      writer.u8(kNamed);
      writer.u16(static_cast<std::uint16_t>(socket_name(address).size()));
      writer.raw(socket_name(address));
      continue;
    }
    const bool is_v6 = address.storage.ss_family == AF_INET6;
    writer.u8(is_v6 ? 6 : 4);
    writer.u16(port_of(address));
    if (is_v6) {
      const auto& host = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
      writer.raw(std::as_bytes(std::span{&host, 1}));
    } else {
      const auto& host = reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr;
      writer.raw(std::as_bytes(std::span{&host, 1}));
    }
  }
  check(writer.ok(), "kAddressesMax addresses fit in a blob");
  return blob;
}

Result<Listening> decode(std::span<const std::byte> blob) noexcept {
  constexpr auto kMalformed = "the address of a node does not have the format of the tcp driver";
  wire::Reader reader{blob};
  Listening listening;
  const bool is_ours = reader.u32() == kBlobMagic;
  listening.network_token = reader.u64();
  const std::uint32_t count = reader.count(4);
  if (!is_ours || !reader.ok() || count == 0 || count > kAddressesMax) {
    return Error{Errc::malformed, kMalformed};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint8_t family = reader.u8();
    const std::uint16_t port = reader.u16();
    if (family == kNamed) {
      const auto name = reader.raw(port);
      if (!reader.ok() || name.empty() || name.size() > kSocketNameBytesMax) {
        return Error{Errc::malformed, kMalformed};
      }
      listening.addresses.push_back(make_local(name));
      continue;
    }
    const auto host = reader.raw(family == 6 ? sizeof(in6_addr) : sizeof(in_addr));
    if (!reader.ok() || (family != 4 && family != 6) || port == 0) {
      return Error{Errc::malformed, kMalformed};
    }
    if (family == 6) {
      in6_addr v6;
      std::memcpy(&v6, host.data(), sizeof v6);
      listening.addresses.push_back(make_v6(v6, port));
    } else {
      in_addr v4;
      std::memcpy(&v4, host.data(), sizeof v4);
      listening.addresses.push_back(make_v4(v4, port));
    }
  }
  if (!reader.finished()) {
    return Error{Errc::malformed, kMalformed};
  }
  return listening;
}

std::uint64_t network_token() noexcept {
  struct stat status {};
  if (::stat("/proc/self/ns/net", &status) != 0) {
    return 0;
  }
  std::uint64_t token = mix64(status.st_ino ^ mix64(status.st_dev));
  // The number of a namespace means something within one boot of one machine only.
  const std::string boot = boot_id();
  for (const char byte : boot) {
    token = mix64(token ^ static_cast<unsigned char>(byte));
  }
  return boot.empty() ? 0 : token;
}

Result<std::vector<SocketAddress>> local_addresses(std::string_view interface,
                                                   std::uint16_t port) noexcept {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return system_error("cannot list the network interfaces", last_error_number());
  }
  std::vector<SocketAddress> found;
  std::string known;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::optional<SocketAddress> address = address_of(*entry, port);
    if (!address) {
      continue;
    }
    known +=
        fmt::format("{}{} {}", known.empty() ? "" : ", ", entry->ifa_name, host_text(*address));
    if (is_meant(interface, *entry, *address)) {
      found.push_back(*address);
    }
  }
  ::freeifaddrs(list);
  if (found.empty()) {
    return Error{Errc::unreachable,
                 interface.empty()
                     ? "no network interface is up: tcp cannot be used"
                     : fmt::format("no interface that is up has the name, address or prefix "
                                   "\"{}\" (--drivers tcp@..., tcp_interface); here are: {}",
                                   interface, known)};
  }
  std::ranges::stable_sort(found, std::greater{}, &SocketAddress::is_loopback);
  found.resize(std::min(found.size(), kAddressesMax));
  return found;
}

std::vector<std::string> interface_names(std::string_view interface) noexcept {
  ifaddrs* list = nullptr;
  std::vector<std::string> names;
  if (::getifaddrs(&list) != 0) {
    return names;
  }
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::optional<SocketAddress> address = address_of(*entry, 0);
    if (address && !address->is_loopback() && is_meant(interface, *entry, *address) &&
        std::ranges::find(names, entry->ifa_name) == names.end()) {
      names.emplace_back(entry->ifa_name);
    }
  }
  ::freeifaddrs(list);
  return names;
}

std::vector<SocketAddress> usable_addresses(const Listening& peer, std::uint64_t own_token) {
  std::vector<SocketAddress> usable;
  const bool is_shared = own_token != 0 && own_token == peer.network_token;
  for (const SocketAddress& address : peer.addresses) {
    if (!address.is_loopback() || is_shared) {
      usable.push_back(address);
    }
  }
  return usable;
}

}  // namespace sterna::net::tcp
