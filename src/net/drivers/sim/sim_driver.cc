// The driver of the simulated network.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/drivers/sim/sim.h"

namespace sterna::net {

class SimChannel final : public Channel {
 public:
  SimChannel(SimNetwork& network, std::uint32_t from, std::uint32_t to) noexcept
      : network_{network}, from_{from}, to_{to} {}

  SendState try_send(std::span<const Piece> pieces) noexcept override {
    return network_.send(from_, to_, pieces);
  }
  bool gains_by_several() const noexcept override { return true; }  // For what is above.
  std::byte* try_place(std::uint32_t bytes) noexcept override {
    if (!network_.options().has_short_way) {
      return nullptr;
    }
    placed_.assign(bytes, std::byte{0xee});
    return placed_.data();
  }
  SendState send_placed(bool& /*must_ring*/) noexcept override {
    const Piece piece{placed_};
    return network_.send(from_, to_, {&piece, 1});
  }
  std::uint32_t lent_bytes_max() const noexcept override {
    return network_.options().lent_bytes_max;
  }
  SendState try_lend(Packet head, Piece bytes, Lent& lent) noexcept override {
    return lent_bytes_max() != 0 ? network_.lend(from_, to_, head, bytes, lent)
                                 : SendState::closed;
  }
  void take_back(Lent& lent) noexcept override { network_.take_back(lent); }
  bool can_write_remote() const noexcept override { return network_.options().has_direct; }
  Result<> write_remote(std::span<const Piece> local,
                        std::span<const RemotePiece> remote) noexcept override {
    std::vector<std::byte> bytes;
    for (const Piece& piece : local) {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    std::size_t offset = 0;
    for (const RemotePiece& piece : remote) {
      check(piece.bytes <= bytes.size() - offset, "both sides of a direct copy are as long");
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), piece.bytes,
                  reinterpret_cast<std::byte*>(piece.address));
      offset += piece.bytes;
    }
    check(offset == bytes.size(), "both sides of a direct copy are as long");
    pass_time(bytes.size());
    return Done{};
  }
  Result<> read_remote(std::byte* into, RemotePiece from) noexcept override {
    if (network_.is_read_refused()) {
      return Errc::refused;
    }
    std::copy_n(reinterpret_cast<const std::byte*>(from.address), from.bytes, into);
    pass_time(from.bytes);
    return Done{};
  }

 private:
  void pass_time(std::uint64_t bytes) const noexcept {
    const SimOptions& options = network_.options();
    if (options.direct_clock != nullptr) {
      options.direct_clock->advance(options.direct_latency_ns +
                                    bytes * options.direct_ps_per_byte / 1000);
    }
  }

  SimNetwork& network_;
  const std::uint32_t from_;
  const std::uint32_t to_;
  std::vector<std::byte> placed_;  // By the sender.
};

class SimDriver final : public Driver {
 public:
  SimDriver(SimNetwork& network, std::uint32_t node) noexcept : network_{network}, node_{node} {
    const SimOptions& options = network.options();
    capabilities_.packet_bytes_max = options.packet_bytes_max;
    capabilities_.is_ordered = options.is_ordered;
    capabilities_.can_revive = true;
    capabilities_.has_short_way = options.has_short_way;
    capabilities_.can_lend = options.lent_bytes_max != 0;
    capabilities_.is_reliable =
        options.hides_faults ||
        options.lost_per_mille + options.twice_per_mille + options.corrupt_per_mille == 0;
    if (options.profile_mb_per_s != 0) {
      capabilities_.bandwidth_mb_per_s = options.profile_mb_per_s;
    } else if (options.ps_per_byte != 0) {
      capabilities_.bandwidth_mb_per_s =
          static_cast<std::uint32_t>(std::max<std::uint64_t>(1'000'000 / options.ps_per_byte, 1));
    }
    capabilities_.latency_ns =
        options.profile_latency_ns != 0
            ? options.profile_latency_ns
            : static_cast<std::uint32_t>((options.delay_ns_min + options.delay_ns_max) / 2);
    capabilities_.direct_latency_ns = options.has_direct ? 500 : 0;
    capabilities_.direct_mb_per_s = options.has_direct ? 8000 : 0;
  }

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return {}; }
  bool reaches(std::uint32_t node, Packet peer_address) const noexcept override {
    return node < network_.options().node_count && peer_address.empty();
  }
  Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept override {
    if (!reaches(node, peer_address)) {
      return Error{Errc::invalid_argument, "sim: this is no address of a simulated node"};
    }
    channels_.push_back(std::make_unique<SimChannel>(network_, node_, node));
    return channels_.back().get();
  }

  Result<Channel*> revive(std::uint32_t node) noexcept override {
    if (network_.is_closed(node)) {
      return Errc::closed;
    }
    if (!network_.revive(node_, node)) {
      return Error{Errc::unreachable, "sim: the wire is cut"};
    }
    return connect(node, {});
  }

  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override {
    std::uint32_t count = end_placed(sink);
    while (count < packets_max && !sink.is_enough()) {
      SimNetwork::InFlight packet;
      if (!network_.take(node_, packet)) {
        break;
      }
      switch (packet.kind) {
        case SimNetwork::InFlight::Kind::packet:
          if (begin_placed(sink, packet)) {
            return count + 1;
          }
          sink.on_packet(packet.from, packet.bytes);
          break;
        case SimNetwork::InFlight::Kind::lost:
          sink.on_peer_lost(packet.from, "it was lost in the simulation");
          continue;
        default:
          take_loan(sink, std::move(packet));
          break;
      }
      ++count;
    }
    return count;
  }

  bool sight(std::uint32_t /*looks*/, Sight& seen) noexcept override {
    if (!capabilities_.has_short_way) {
      return false;
    }
    seen = {};
    if (!begun_.bytes.empty()) {
      return true;
    }
    const SpinGuard guard{network_.lock_};
    const SimNetwork::Node& node = network_.nodes_[node_];
    if (node.arriving.empty() ||
        node.arriving.begin()->first > network_.options_.clock->now_ns()) {
      return false;
    }
    const SimNetwork::InFlight& first = node.arriving.begin()->second;
    if (first.kind == SimNetwork::InFlight::Kind::packet) {
      seen = {first.from, first.bytes};
    }
    return true;
  }
  void pass_sight() noexcept override {
    const SpinGuard guard{network_.lock_};
    SimNetwork::Node& node = network_.nodes_[node_];
    --node.in_flight[node.arriving.begin()->second.from];
    node.arriving.erase(node.arriving.begin());
  }

  int fd() const noexcept override { return -1; }
  bool prepare_sleep() noexcept override { return false; }
  void end_sleep() noexcept override {}
  void lose_peer(std::uint32_t node) noexcept override { network_.lose(node); }
  void abandon(std::uint32_t node, std::string_view /*reason*/) noexcept override {
    if (!network_.is_severed(node_, node)) {
      network_.sever(node_, node);
      network_.mend(node_, node);
    }
  }
  void close() noexcept override { network_.close(node_); }
  bool is_drained() const noexcept override { return true; }

 private:
  /// News of what is lent.
  void take_loan(PacketSink& sink, SimNetwork::InFlight news) noexcept {
    using Kind = SimNetwork::InFlight::Kind;
    const auto packet_bytes = static_cast<std::uint32_t>(kPacketHeadBytes + news.loan_bytes);
    if (news.kind == Kind::offer) {
      const std::span<std::byte> place = sink.hold_place(news.from, news.bytes, packet_bytes);
      if (place.empty()) {
        network_.answer(node_, news, Kind::returned);
      } else {
        network_.begin_read(node_, std::move(news), place);
      }
      return;
    }
    if (news.kind == Kind::read) {
      const bool is_whole = network_.end_read(news);
      sink.on_lent_end(news.from, news.bytes, packet_bytes, is_whole);
      network_.answer(node_, news, is_whole ? Kind::taken : Kind::returned);
      return;
    }
    network_.end_loan(news.loan,
                      news.kind == Kind::taken ? Lent::State::taken : Lent::State::returned);
  }

  /// Every second packet that may have a place gets it: its first half in this poll, the rest in
  /// the next, unless its sender has been lost.
  bool begin_placed(PacketSink& sink, SimNetwork::InFlight& packet) noexcept {
    if (packet.bytes.size() <= kPacketHeadBytes || (is_next_whole_ = !is_next_whole_)) {
      return false;
    }
    const std::span<std::byte> place = place_of(sink, packet);
    if (place.empty()) {
      return false;
    }
    std::copy_n(packet.bytes.begin() + kPacketHeadBytes, place.size() / 2, place.begin());
    begun_ = std::move(packet);
    return true;
  }
  std::uint32_t end_placed(PacketSink& sink) noexcept {
    if (begun_.bytes.empty()) {
      return 0;
    }
    const SimNetwork::InFlight packet = std::exchange(begun_, {});
    if (network_.is_lost(packet.from)) {
      return 1;
    }
    const std::span<std::byte> place = place_of(sink, packet);
    if (!place.empty()) {
      std::copy(packet.bytes.begin() + kPacketHeadBytes, packet.bytes.end(), place.begin());
      network_.placed_count_.fetch_add(1, std::memory_order_relaxed);
      sink.on_placed(packet.from, std::span{packet.bytes}.first(kPacketHeadBytes),
                     static_cast<std::uint32_t>(packet.bytes.size()));
    }
    return 1;
  }
  static std::span<std::byte> place_of(PacketSink& sink,
                                       const SimNetwork::InFlight& packet) noexcept {
    const std::span<std::byte> place =
        sink.place(packet.from, std::span{packet.bytes}.first(kPacketHeadBytes),
                   static_cast<std::uint32_t>(packet.bytes.size()));
    check(place.empty() || place.size() == packet.bytes.size() - kPacketHeadBytes,
          "a place is as long as its bytes");
    return place;
  }

  SimNetwork& network_;
  const std::uint32_t node_;
  Capabilities capabilities_;
  bool is_next_whole_ = false;
  SimNetwork::InFlight begun_{};                    // Half of it is in its place.
  std::vector<std::unique_ptr<Channel>> channels_;  // The gates, one at a time each.
};

namespace {

template <std::size_t kRail>
Result<std::unique_ptr<Driver>> open_sim(const DriverOptions& options) noexcept {
  auto* bootstrap = static_cast<SimBootstrap*>(options.bootstrap);
  return try_make<Driver, SimDriver>(bootstrap->network(kRail), bootstrap->job().node_index);
}

template <std::size_t kRail>
constexpr DriverEntry sim_entry(std::string_view name) {
  return {.name = name,
          .summary = "simulated nodes in one process, for tests",
          .tunables = {},
          .open = open_sim<kRail>};
}

}  // namespace

constinit const DriverEntry kSimDriver = sim_entry<0>("sim");
constinit const DriverEntry kSecondSimDriver = sim_entry<1>("sim@second");
constinit const DriverEntry kThirdSimDriver = sim_entry<2>("sim@third");

}  // namespace sterna::net
