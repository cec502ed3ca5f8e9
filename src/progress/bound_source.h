// A source that is polled near a place of the machine, as the tasks of PIOMan that are bound to a
// level of the topology: near its device, or near the threads that use it. One that may be polled
// anywhere is added to Progress as it is, and pays nothing for this.
//
// The binding is a preference. A caller of another place passes the source over for as long as one
// of its own place has polled it lately, and else polls it: while all workers of the place compute,
// sleep or are disabled, and where it has none, the source is polled as if it were not bound. What
// nobody may leave out is polled anyway: a round that was forced, a tick, the first round after a
// sleep.
#pragma once

#include <cstdint>
#include <vector>

#include "progress/progress.h"
#include "progress/source.h"
#include "topology/cpuset.h"

namespace sterna::threads {
class Worker;
}

namespace sterna::progress {

/// Where a source is polled. No place: anywhere.
struct PollPlaces {
  std::vector<topology::CpuSet> places;  // Disjoint.
  // The place is that of the last thread that called for progress by itself; none at first. Else it
  // is the first of `places`.
  bool follows_callers = false;
};

class BoundSource final : public Source {
 public:
  static constexpr std::uint32_t kNoProcessor = ~0U;
  /// The processor of a worker (of the caller, with null, or if it is none of a bound team), or
  /// kNoProcessor. Injected by tests of machines that are not there.
  using ProcessorOf = std::uint32_t (*)(const threads::Worker* worker) noexcept;
  [[nodiscard]] static std::uint32_t processor_of(const threads::Worker* worker) noexcept;

  /// `inner` and `progress` outlive it.
  BoundSource(Progress& progress, Source& inner, PollPlaces where,
              ProcessorOf processor = processor_of);

  std::uint32_t poll() noexcept override;
  bool sight(std::uint32_t looks) noexcept override;
  int fd() noexcept override { return inner_.fd(); }
  bool prepare_sleep() noexcept override;
  void end_sleep() noexcept override;
  bool hear() noexcept override;
  std::uint64_t rung_ns() noexcept override { return inner_.rung_ns(); }
  bool wake_absent(bool is_long) noexcept override { return inner_.wake_absent(is_long); }
  std::uint64_t next_deadline_ns() noexcept override { return inner_.next_deadline_ns(); }

 private:
  static constexpr std::uint32_t kNowhere = ~0U;
  [[nodiscard]] std::uint32_t place_of(std::uint32_t processor) const noexcept;
  [[nodiscard]] bool may_poll(std::uint64_t now) noexcept;
  void wake_near(std::uint64_t now) noexcept;

  Progress& progress_;
  Source& inner_;
  const PollPlaces where_;
  const ProcessorOf processor_;
  // The poller only, as all below: its place in `where_`, or kNowhere.
  std::uint32_t home_;
  // Until then it is taken to be polled from its place.
  std::uint64_t attended_until_ns_ = 0;
  std::uint64_t wake_at_ns_ = 0;
  bool must_poll_ = false;       // Whoever comes next: a sleep has ended, or found something.
  bool is_passed_over_ = false;  // In this round.
};

}  // namespace sterna::progress
