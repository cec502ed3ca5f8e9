// How far apart ticks are where processors are scarce: a process that gets a sixteenth of one needs
// a sixteenth of the ticks, each of which takes the processor from somebody who computes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sterna::threads {

class Carrier;
class TeamState;

/// Processor time of a carrier's kernel thread, ns.
[[nodiscard]] std::uint64_t processor_time(const Carrier& carrier) noexcept;
/// Whether the kernel has the carrier asleep; false, too, where /proc does not say.
[[nodiscard]] bool is_asleep(const Carrier& carrier) noexcept;

/// Ticks are never further apart than so many intervals: what comes for who computes waits so long.
inline constexpr std::uint32_t kIntervalsMax = 16;

/// What a kernel thread had and wanted of processors, from its start.
struct Share {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  // For a processor, until it last had one.
};

/// None where the system does not say.
[[nodiscard]] std::optional<Share> share_of(const Carrier& carrier) noexcept;

/// After how many intervals the next tick comes for who had and wanted so much since the last one:
/// one that had half of what it wanted needs half of the ticks.
[[nodiscard]] std::uint32_t intervals_for(const Share& since) noexcept;

/// The shares of the workers of a team, from tick to tick. Of one thread.
class Crowd {
 public:
  explicit Crowd(std::size_t worker_count) : looks_(worker_count) {}

  /// At a tick: intervals until the next one, 1 to kIntervalsMax, by whom needs the most ticks of
  /// those that compute. Reads what each had only where the whole process had little, and then not
  /// at each tick.
  [[nodiscard]] std::uint32_t look(std::uint64_t now_ns, const TeamState& team) noexcept;

 private:
  struct Look {
    const Carrier* carrier = nullptr;
    Share share = {};
  };

  void look_at_all(const TeamState& team) noexcept;
  [[nodiscard]] bool had_little(std::uint64_t now_ns, std::size_t computing) noexcept;
  [[nodiscard]] static std::optional<std::uint32_t> look_at(const Carrier& carrier,
                                                            Look& look) noexcept;

  std::vector<Look> looks_;  // By worker.
  std::uint32_t intervals_ = 1;  // As of the last look at each...
  std::uint32_t good_for_ = 0;   // ...which is the answer for so many ticks more.
  std::uint64_t last_ns_ = 0;
  std::uint64_t last_used_ns_ = 0;
};

}  // namespace sterna::threads
