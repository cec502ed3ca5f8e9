// The cost model of one way to one peer: latency + bytes / rate + processor time per byte. It
// starts from the profile of the driver and is corrected by what is measured; it decides between
// eager and rendezvous, and how the bytes of a rendezvous go, and says why.
#pragma once

#include <cstdint>
#include <string>

#include "net/driver.h"

namespace sterna::net {

/// Figures in nanoseconds and picoseconds per byte. Not thread-safe: guarded by who holds it.
class CostModel {
 public:
  struct Options {
    std::uint64_t eager_bytes = 0;      // Forces the threshold; 0: the model decides.
    std::uint64_t eager_bytes_min = 0;  // Smaller ones are eager in any case.
    std::uint64_t eager_bytes_max = 64 << 10;
  };

  CostModel(const Capabilities& capabilities, bool is_direct, const Options& options) noexcept;

  /// Sent at once, copied on both sides; the receiver copies once more when it comes too early.
  [[nodiscard]] double eager_ns(std::uint64_t bytes) const noexcept;
  /// Announced, answered, then copied directly where that is possible, else sent in packets.
  [[nodiscard]] double rendezvous_ns(std::uint64_t bytes) const noexcept;

  /// Messages of at most so many bytes are eager. Constant between calls of measured_*.
  [[nodiscard]] std::uint64_t eager_bytes() const noexcept { return eager_bytes_; }

  /// Announced messages of at least so many bytes are copied directly, shorter ones sent in
  /// packets, of which one is filled while another is read. kNever: all in packets.
  [[nodiscard]] std::uint64_t direct_from_bytes() const noexcept { return direct_from_bytes_; }
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// A copy of `bytes` took `ns`: corrects the rate of direct writes or of packets by a moving
  /// mean.
  void measured_direct(std::uint64_t bytes, std::uint64_t ns) noexcept;
  void measured_packets(std::uint64_t bytes, std::uint64_t ns) noexcept;

  /// Direct writes turned out to be impossible.
  void lose_direct() noexcept;

  /// The sums behind the choice for `bytes`, one line.
  [[nodiscard]] std::string explain(std::uint64_t bytes) const;

 private:
  void decide() noexcept;
  [[nodiscard]] double packets_ns(std::uint64_t bytes) const noexcept;

  Options options_;
  bool is_direct_;
  double latency_ns_;
  double packet_ps_per_byte_;  // On the wire and of the processor.
  double copy_ps_per_byte_;    // An early message is copied once more.
  double direct_latency_ns_;
  double direct_ps_per_byte_;
  std::uint64_t eager_bytes_ = 0;
  std::uint64_t direct_from_bytes_ = 0;
};

}  // namespace sterna::net
