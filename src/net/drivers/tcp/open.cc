// Opens the drivers that are made of sockets, and lists them.
#include <algorithm>
#include <new>

#include "net/drivers/builtin.h"
#include "net/drivers/settings_of.h"
#include "net/drivers/tcp/driver.h"
#include "net/drivers/tcp/tunables.h"

namespace sterna::net {
namespace tcp {

Result<std::unique_ptr<TcpDriver>> open_sockets(const DriverOptions& given, bool is_unix) noexcept {
  auto options = read_options(given);
  if (!options) {
    return options.error();
  }
  options.value().is_unix = is_unix;
  const JobMap& job = given.bootstrap->job();
  const bool is_one_host = std::ranges::all_of(
      job.host_of_node, [&](const std::string& host) { return host == job.host_of_node.front(); });
  auto listener = listen_for_peers(options.value(), is_one_host);
  if (!listener) {
    return listener.error();
  }
  std::unique_ptr<TcpDriver> driver{
      new (std::nothrow) TcpDriver(given, options.value(), std::move(listener.value()))};
  if (driver == nullptr) {
    return Errc::out_of_memory;
  }
  if (auto opened = driver->open(); !opened) {
    return opened.error();
  }
  return driver;
}

namespace {

Result<std::unique_ptr<Driver>> as_driver(Result<std::unique_ptr<TcpDriver>> opened) noexcept {
  if (!opened) {
    return opened.error();
  }
  return std::unique_ptr<Driver>{std::move(opened.value())};
}

Result<std::unique_ptr<Driver>> open_driver(const DriverOptions& given) noexcept {
  return as_driver(open_sockets(given, false));
}
Result<std::unique_ptr<Driver>> open_unix_driver(const DriverOptions& given) noexcept {
  return as_driver(open_sockets(given, true));
}

ProbedDriver probe_sockets(const DriverOptions& given, Capabilities profile) noexcept {
  profile.packet_bytes_max = static_cast<std::uint32_t>(number_of(given, kPacketBytes));
  auto options = read_options(given);
  return {profile, options ? std::string{} : options.error().text};
}
ProbedDriver probe(const DriverOptions& given) noexcept {
  ProbedDriver probed = probe_sockets(given, kProfile);
  auto options = read_options(given);
  if (options && !options.value().interface.empty()) {
    const auto found = local_addresses(options.value().interface, 0);
    probed.absent = found ? std::string{} : found.error().text;
  }
  return probed;
}
ProbedDriver probe_unix(const DriverOptions& given) noexcept {
  return probe_sockets(given, kUnixProfile);
}

std::vector<std::string> devices(const DriverOptions& given) noexcept {
  std::vector<std::string> found;
  if (auto options = read_options(given); options) {
    for (const std::string& name : interface_names(options.value().interface)) {
      found.push_back("class/net/" + name);
    }
  }
  return found;
}

}  // namespace
}  // namespace tcp

constinit const DriverEntry kTcpDriver{
    .name = "tcp",
    .summary = "nodes anywhere, over authenticated tcp connections",
    .tunables = tcp::kTunables,
    .open = tcp::open_driver,
    .profile = tcp::kProfile,
    .instances = "the name of a network interface, an address, or a prefix like 10.0.1.0/24",
    .connections = &tcp::kConnections,
    .devices = tcp::devices,
    .probe = tcp::probe,
};

constinit const DriverEntry kUnixDriver{
    .name = "unix",
    .summary = "nodes of one host over unix sockets, where shared memory is forbidden",
    .tunables = {},  // Those of tcp.
    .open = tcp::open_unix_driver,
    .profile = tcp::kUnixProfile,
    .is_on_request = true,
    .probe = tcp::probe_unix,
};

}  // namespace sterna::net
