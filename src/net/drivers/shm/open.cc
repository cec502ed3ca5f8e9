// Opens the shm driver: its settings, its place on the host, its entry in the table.
#include <algorithm>
#include <array>
#include <new>

#include <unistd.h>

#include "net/drivers/builtin.h"
#include "net/drivers/settings_of.h"
#include "net/drivers/shm/driver.h"

namespace sterna::net {
namespace shm {
namespace {

constexpr Tunable kChunkBytes{
    .name = "shm_chunk_bytes",
    .kind = TunableKind::bytes,
    .fallback = "34K",  // 32 KB in one packet, which takes the short way; longer ones: eager_cut.h.
    .minimum = 1024,
    .maximum = 1 << 18,
    .help = "largest packet between two nodes of a host"};
constexpr Tunable kChunks{.name = "shm_chunks",
                          .kind = TunableKind::integer,
                          .fallback = "128",
                          .minimum = 2,
                          .maximum = kChunkCountMax,
                          .help = "packets above 376 bytes that a node has under way, at most"};
constexpr Tunable kDirect{.name = "shm_direct",
                          .kind = TunableKind::flag,
                          .fallback = "on",
                          .help = "copy large messages straight into the other process"};
constexpr std::array kTunables{kChunkBytes, kChunks, kDirect};

/// Twice as many as the second-level cache of a processor holds (docs/drivers/shm.md).
std::uint32_t stream_count_for(std::uint32_t chunk_bytes) noexcept {
  constexpr std::uint64_t kBytesIfUnknown = 2 << 20;
  constexpr std::uint64_t kCountMin = 16;  // Less would only make the sender wait.
  const long known = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  const std::uint64_t bytes = known > 0 ? static_cast<std::uint64_t>(known) : kBytesIfUnknown;
  const std::uint64_t stride = Segment::chunk_stride(chunk_bytes);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>((2 * bytes + stride - 1) / stride, kCountMin, kChunkCountMax));
}

ProbedDriver probe(const DriverOptions& options) noexcept {
  Capabilities capabilities = kProfile;
  capabilities.packet_bytes_max = static_cast<std::uint32_t>(number_of(options, kChunkBytes));
  return {.capabilities = capabilities};
}

Result<std::unique_ptr<Driver>> open(const DriverOptions& options) noexcept {
  const HostShare& host = options.bootstrap->host();
  const std::uint32_t node = options.bootstrap->job().node_index;
  const auto place = std::ranges::find(host.nodes, node);
  if (host.segment_fd < 0 || place == host.nodes.end()) {
    return Error{Errc::unsupported, "node " + std::to_string(node) +
                                        " shares no memory with others: its launcher made none"};
  }
  if (host.bell_fds.size() != host.nodes.size() || host.nodes.size() > kLocalNodesMax) {
    return Error{Errc::invalid_argument, "shared memory serves at most " +
                                             std::to_string(kLocalNodesMax) +
                                             " nodes of a host, each with a bell; this host has " +
                                             std::to_string(host.nodes.size()) + " nodes and " +
                                             std::to_string(host.bell_fds.size()) + " bells"};
  }
  Options chosen{};
  chosen.local_index = static_cast<std::uint32_t>(place - host.nodes.begin());
  auto mapping = SegmentMapping::map(host.segment_fd, chosen.local_index, host.segment_bytes);
  if (!mapping) {
    return mapping.error();
  }
  mapping.value().populate();
  chosen.is_direct_wanted = parse_tunable(kDirect, text_of(options, kDirect)).value() != 0;
  chosen.chunk_bytes = static_cast<std::uint32_t>(number_of(options, kChunkBytes));
  const std::uint64_t fitting =
      (host.segment_bytes - Segment::kChunksBegin) / Segment::chunk_stride(chosen.chunk_bytes);
  chosen.chunk_count = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(fitting, static_cast<std::uint64_t>(number_of(options, kChunks))));
  chosen.stream_count = stream_count_for(chosen.chunk_bytes);
  if (chosen.chunk_count < 2) {
    return Error{Errc::invalid_argument, "shm_chunk_bytes is too large for the memory of a node (" +
                                             std::to_string(host.segment_bytes) + " bytes)"};
  }
  std::unique_ptr<ShmDriver> driver{new (std::nothrow)
                                        ShmDriver(options, chosen, std::move(mapping.value()))};
  if (driver == nullptr) {
    return Errc::out_of_memory;
  }
  if (auto opened = driver->open(); !opened) {
    return opened.error();
  }
  return std::unique_ptr<Driver>{std::move(driver)};
}

}  // namespace
}  // namespace shm

constinit const DriverEntry kShmDriver{
    .name = "shm",
    .summary = "nodes of one host, through shared memory and copies between processes",
    .tunables = shm::kTunables,
    .open = shm::open,
    .profile = shm::kProfile,
    .probe = shm::probe,
};

}  // namespace sterna::net
