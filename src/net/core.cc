// Opening the drivers of a node, and polling them.
#include "net/core.h"

#include <fmt/format.h>

#include "base/wire.h"

namespace sterna::net {
namespace {

constexpr std::size_t kAddressBytesMax = 4096;  // Of one driver of one node.
constexpr std::size_t kDriversMax = 16;
constexpr std::size_t kMeasuredPacketBytes = 4 << 10;
constexpr std::uint32_t kMeasureEvery = 16;

}  // namespace

TransportCore::TransportCore(const TransportOptions& options, const CoreOptions& core_options)
    : job_{options.bootstrap->job()},
      node_{job_.node_index},
      limits_{job_.node_count, job_.rank_count},
      options_{core_options},
      clock_{options.clock != nullptr ? *options.clock : own_clock_},
      log_{options.log != nullptr ? Logger{*options.log, "net"} : Logger{}},
      ranks_{job_.node_index, job_.node_of_rank},
      gates_{std::make_unique<Gate[]>(job_.node_count)},
      links_{std::make_unique<NodeLink[]>(job_.node_count)} {
  check(job_.node_of_rank.size() == job_.rank_count, "the initial placement covers all ranks");
}

TransportCore::~TransportCore() {
  while (TransferJob* job = new_jobs_.pop()) {
    delete job;
  }
  for (TransferJob* job : jobs_) {
    delete job;
  }
  while (HeldPacket* packet = own_messages_.pop()) {
    pool_.release(packet);
  }
  while (HeldPacket* packet = stale_frames_.pop()) {
    pool_.release(packet);
  }
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    RankEntry& entry = ranks_[rank];
    const threads::OwnedGuard guard{entry.lock};
    while (entry.held_first != nullptr) {
      HeldPacket* packet = entry.held_first;
      entry.held_first = packet->next;
      pool_.release(packet);
    }
  }
  gates_.reset();  // What waits in them goes back to the pool.
}

Result<> TransportCore::open_drivers(const TransportOptions& options) {
  frame_payload_max_ = kPacketBytesMin - kHeaderBytes;
  if (limits_.node_count == 1) {
    return Done{};
  }
  bool reaches_all = false;
  for (const DriverEntry* entry : options.drivers) {
    Result<std::unique_ptr<Driver>> driver =
        entry->open({options.bootstrap, options.clock, options.log, options.settings});
    if (!driver) {
      return Error{driver.error().code,
                   fmt::format("network driver {}: {}", entry->name, driver.error().text)};
    }
    rails_.push_back(std::make_unique<Rail>(*this, std::move(driver.value())));
    driver_names_.emplace_back(entry->name);
    if (rails_.size() == 1) {
      // All nodes see the same answer: either all exchange addresses, or none does.
      reaches_all = true;
      for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
        reaches_all = reaches_all && (node == node_ || rails_[0]->driver().reaches(node, {}));
      }
      if (reaches_all) {
        break;
      }
    }
  }
  addresses_.assign(rails_.size(), std::vector<std::vector<std::byte>>(limits_.node_count));
  if (!reaches_all) {
    if (Result<> exchanged = exchange_addresses(*options.bootstrap); !exchanged) {
      return exchanged;
    }
  }
  return open_gates();
}

Result<> TransportCore::exchange_addresses(Bootstrap& bootstrap) {
  std::vector<std::byte> mine;
  wire::Writer writer{mine, kAddressBytesMax * kDriversMax};
  writer.u32(static_cast<std::uint32_t>(rails_.size()));
  for (const auto& rail : rails_) {
    writer.blob(rail->driver().address());
  }
  check(writer.ok(), "the addresses of the drivers fit the bound");
  auto blobs = bootstrap.exchange(mine);
  if (!blobs) {
    return blobs.error();
  }
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    wire::Reader reader{blobs.value()[node]};
    const bool is_same_count = reader.u32() == rails_.size();
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      const std::span<const std::byte> address = reader.blob(kAddressBytesMax);
      addresses_[i][node].assign(address.begin(), address.end());
    }
    if (!is_same_count || !reader.finished()) {
      return Error{Errc::malformed,
                   fmt::format("node {} opened other network drivers than node {}: start all with "
                               "the same --drivers",
                               node, node_)};
    }
  }
  return Done{};
}

Result<> TransportCore::open_gates() {
  std::uint32_t packet_bytes_max = ~std::uint32_t{0};
  for (const auto& rail : rails_) {
    const Capabilities& capabilities = rail->driver().capabilities();
    check(capabilities.packet_bytes_max >= kPacketBytesMin && capabilities.is_reliable,
          "a driver keeps what it accepts, in packets of a useful size");
    packet_bytes_max = std::min(packet_bytes_max, capabilities.packet_bytes_max);
  }
  // A frame may be forwarded over any rail: it fits the smallest.
  frame_payload_max_ = packet_bytes_max - kHeaderBytes;
  for (const auto& rail : rails_) {
    if (looked_at_ == nullptr && rail->driver().capabilities().has_short_way) {
      looked_at_ = &rail->driver();
    }
  }
  const GateShared shared{&pool_, options_.strategy, &waiting_gates_, &is_serial_, on_stale, this};
  for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
    for (std::size_t i = 0; i < rails_.size() && node != node_; ++i) {
      Driver& driver = rails_[i]->driver();
      if (driver.reaches(node, addresses_[i][node])) {
        const bool is_direct = driver.capabilities().direct_mb_per_s != 0;
        gates_[node].open(node, driver, addresses_[i][node],
                          CostModel{driver.capabilities(), is_direct, options_.cost}, shared);
        break;
      }
    }
    if (node != node_ && !gates_[node].is_open()) {
      return Error{Errc::unreachable,
                   fmt::format("no network driver of node {} reaches node {} on {}; add one that "
                               "does with --drivers",
                               node_, node, job_.host_of_node[node])};
    }
  }
  std::vector<Driver*> drivers;
  for (const auto& rail : rails_) {
    drivers.push_back(&rail->driver());
  }
  sampler_.open(std::move(drivers), driver_names_);
  return Done{};
}

void TransportCore::serve_one_caller(bool is_one) noexcept {
  is_serial_ = is_one;
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    ranks_[rank].lock.serve_one_caller(is_one);
  }
}

std::uint32_t Rail::poll() noexcept {
  const std::uint32_t count = driver_->poll(*this, core_.options_.poll_packets_max);
  // Answers to what came, and copies it has cleared, go at once rather than with the next round.
  return core_.may_have_inner() ? count + core_.poll_inner() : count;
}

bool Rail::prepare_sleep() noexcept {
  return driver_->prepare_sleep();
}

void Rail::end_sleep() noexcept {
  driver_->end_sleep();
  core_.sampler_.note_sleep();
}

void Rail::on_packet(std::uint32_t from_node, Packet packet) noexcept {
  core_.on_packet(from_node, packet);
}

void Rail::on_peer_lost(std::uint32_t node, std::string_view reason) noexcept {
  core_.on_peer_lost(*driver_, node, reason);
}

std::uint32_t InnerSource::poll() noexcept {
  return core_.rails_.empty() ? core_.poll_inner() : 0;  // Rails poll it, too.
}
bool InnerSource::prepare_sleep() noexcept {
  return !core_.has_inner_work();
}

std::uint32_t TransportCore::poll() noexcept {
  std::uint32_t count = 0;
  for (const auto& rail : rails_) {
    count += rail->poll();
  }
  return count + (rails_.empty() ? poll_inner() : 0);
}

std::uint32_t TransportCore::poll_inner() noexcept {
  std::uint32_t count = advance_jobs();
  if (!own_messages_.looks_empty()) [[unlikely]] {
    count += deliver_own();
  }
  if (!stale_frames_.looks_empty()) [[unlikely]] {
    count += send_stale();
  }
  if (waiting_gates_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
      count += gates_[node].advance();
    }
  }
  const bool is_closing = is_closing_.load(std::memory_order_relaxed);
  if (sampler_.is_active()) [[unlikely]] {
    if (is_closing) {
      sampler_.stop();  // Of no use any more, and what it sends would have to be waited for.
    } else {
      count += sampler_.step();
    }
  }
  if (is_closing && !are_drivers_closed_.load(std::memory_order_relaxed) && is_quiet())
      [[unlikely]] {
    for (const auto& rail : rails_) {
      rail->driver().close();
    }
    are_drivers_closed_.store(true, std::memory_order_release);
  }
  return count;
}

/// Something to do that no driver announces.
bool TransportCore::has_inner_work() noexcept {
  return job_count_.load(std::memory_order_relaxed) != 0 || !own_messages_.looks_empty() ||
         !stale_frames_.looks_empty();
}

bool TransportCore::is_quiet() noexcept {
  bool is_quiet = !has_inner_work();
  for (std::uint32_t node = 0; node < limits_.node_count && is_quiet; ++node) {
    is_quiet = gates_[node].is_empty() || gates_[node].is_lost();
  }
  return is_quiet;
}

bool TransportCore::is_drained() noexcept {
  bool is_drained =
      are_drivers_closed_.load(std::memory_order_acquire) || (rails_.empty() && is_quiet());
  for (const auto& rail : rails_) {
    is_drained = is_drained && rail->driver().is_drained();
  }
  return is_drained;
}

void TransportCore::on_packet(std::uint32_t from_node, Packet packet) noexcept {
  if (from_node >= limits_.node_count) {
    return;
  }
  // How fast packets are taken here stands for how fast the peer takes ours. Now and then: a look
  // at the clock is a good part of what a short packet takes.
  const bool is_measured = packet.size() >= kMeasuredPacketBytes && --packets_until_measure_ == 0;
  if (!is_measured) [[likely]] {
    accept_packet(from_node, packet);
    return;
  }
  packets_until_measure_ = kMeasureEvery;
  const std::uint64_t start_ns = clock_.now_ns();
  accept_packet(from_node, packet);
  if (gates_[from_node].is_direct()) {  // Else there is nothing to choose by it.
    gates_[from_node].measured_packets(packet.size(), clock_.now_ns() - start_ns);
  }
}

void TransportCore::accept_packet(std::uint32_t from_node, Packet packet) noexcept {
  if (is_serial_ && accept_plain(packet)) {
    return;
  }
  std::span<const std::byte> rest = packet;
  Frame frame;
  for (;;) {
    switch (decode_frame(rest, limits_, frame)) {
      case DecodeState::frame:
        break;
      case DecodeState::end:
        return;
      case DecodeState::malformed:
        counters_.malformed.add();
        log_.error("a packet of node {} breaks the format, {} of its {} bytes were dropped",
                   from_node, rest.size(), packet.size());
        return;
    }
    if (frame.header.kind >= FrameKind::node) [[unlikely]] {
      accept_node_frame(from_node, frame);
    } else {
      deliver(from_node, frame);
    }
  }
}

}  // namespace sterna::net
