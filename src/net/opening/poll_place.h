// Where each network of a node is polled: the setting net_poll_at, and what the system says of
// devices and of the machine. For transports that are opened, and for `sterna info`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tunable.h"
#include "net/drivers/choice.h"
#include "progress/bound_source.h"
#include "topology/cpuset.h"

namespace sterna::net {

/// Why a text is no value of the setting: a place for all networks, then places of some, as in
/// "device,tcp@eth0=any".
[[nodiscard]] Result<> verify_poll_at(std::string_view text);

inline constexpr Tunable kPollAt{
    .name = "net_poll_at",
    .kind = TunableKind::text,
    .fallback = "any",
    .help =
        "who polls a network: any: whoever has nothing else to do; application: workers of the "
        "NUMA node where a thread called last; device: workers near its device, as far as the "
        "system tells; while none of these polls the others do; of one network alone as in "
        "any,tcp@eth0=device",
    .verify = verify_poll_at};

enum class PollAt : std::uint8_t {
  any,          // Whoever has nothing else to do.
  application,  // The NUMA node where a thread called last.
  device,       // The processors near the device.
};

/// Of one network, by a verified text: what it says of just this one ("tcp@eth0"), else of its
/// driver ("tcp"), else of all.
[[nodiscard]] PollAt poll_at(std::string_view text, const DriverChoice& choice) noexcept;

struct PollPlace {
  progress::PollPlaces where;  // Empty: anywhere.
  std::string text;            // Where, or why not where it was asked for.
};

/// What is injected: the machine.
struct PollMachine {
  std::string system = "/sys";
  topology::CpuSet usable;                   // What this process may use.
  std::vector<topology::CpuSet> numa_nodes;  // Its NUMA nodes, where `application` asks for them.
};
/// The one that this process runs on. `wants_nodes`: tens of milliseconds.
[[nodiscard]] PollMachine this_machine(bool wants_nodes);
/// Whether some network is polled at the application.
[[nodiscard]] bool wants_numa_nodes(std::string_view text, std::span<const DriverChoice> choices);

[[nodiscard]] PollPlace find_poll_place(PollAt at, const DriverChoice& choice,
                                        const DriverOptions& options, const PollMachine& machine);

}  // namespace sterna::net
