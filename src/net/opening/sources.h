// What progress/ polls of a transport: each driver, and what waits inside the node.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "net/driver.h"
#include "progress/bound_source.h"
#include "progress/source.h"

namespace sterna::net {

class TransportCore;

/// One driver of this node, as progress/ polls it and as the driver calls up.
class Rail final : public progress::Source, public PacketSink {
 public:
  Rail(TransportCore& core, std::uint16_t index, std::unique_ptr<Driver> driver) noexcept
      : core_{core}, index_{index}, driver_{std::move(driver)} {}
  [[nodiscard]] Driver& driver() noexcept { return *driver_; }
  /// Before source(): it is polled near a place.
  void bind(progress::PollPlaces where) { where_ = std::move(where); }
  /// What `progress` polls: this, or what stands before it.
  [[nodiscard]] progress::Source& source(progress::Progress& progress);

  std::uint32_t poll() noexcept override;
  int fd() noexcept override { return driver_->fd(); }
  bool prepare_sleep() noexcept override;
  void end_sleep() noexcept override;
  bool hear() noexcept override { return driver_->hear(); }
  std::uint64_t rung_ns() noexcept override { return driver_->rung_ns(); }
  std::uint64_t next_deadline_ns() noexcept override { return driver_->next_deadline_ns(); }
  bool sight(std::uint32_t looks) noexcept override;
  bool wake_absent(bool is_long) noexcept override;

  void on_packet(std::uint32_t from_node, Packet packet) noexcept override;
  std::span<std::byte> place(std::uint32_t from_node, Packet head,
                             std::uint32_t packet_bytes) noexcept override;
  void on_placed(std::uint32_t from_node, Packet head,
                 std::uint32_t packet_bytes) noexcept override;
  std::span<std::byte> hold_place(std::uint32_t from_node, Packet head,
                                  std::uint32_t packet_bytes) noexcept override;
  void on_lent_end(std::uint32_t from_node, Packet head, std::uint32_t packet_bytes,
                   bool is_whole) noexcept override;
  void on_copies_refused(std::uint32_t node) noexcept override;
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override;

 private:
  TransportCore& core_;
  const std::uint16_t index_;  // Among the drivers of the job.
  const std::unique_ptr<Driver> driver_;
  progress::PollPlaces where_{};
  std::unique_ptr<progress::BoundSource> bound_;  // Made by source(), where it is bound.
};

/// What waits inside the node: messages to itself, large copies, and what links have to do.
class InnerSource final : public progress::Source {
 public:
  explicit InnerSource(TransportCore& core) noexcept : core_{core} {}
  std::uint32_t poll() noexcept override;
  bool prepare_sleep() noexcept override;
  bool hear() noexcept override;
  std::uint64_t next_deadline_ns() noexcept override;

 private:
  TransportCore& core_;
};

}  // namespace sterna::net
