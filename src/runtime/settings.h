// Every setting of Sterna in one table, and the settings that belong to the runtime itself.
#pragma once

#include <span>
#include <string_view>

#include "base/tunable.h"

namespace sterna::runtime {

inline constexpr Tunable kDrivers{
    .name = "drivers",
    .kind = TunableKind::text,
    .fallback = "",
    .help =
        "networks to use, the preferred one first (for example: shm,tcp); empty: all there are"};
inline constexpr Tunable kLog{
    .name = "log",
    .kind = TunableKind::text,
    .fallback = "warn",
    .help =
        "what is logged: a level (error, warn, info, debug), or by subsystem: "
        "warn,net=debug"};
inline constexpr Tunable kStackSize{
    .name = "stack_size",
    .kind = TunableKind::bytes,
    .fallback = "8M",
    .minimum = 64 << 10,
    .help = "stack of a mobile rank; at most an eighth of its slot"};
inline constexpr Tunable kSpin{
    .name = "spin",
    .kind = TunableKind::time,
    .fallback = "20us",
    .maximum = 1'000'000'000,
    .help =
        "how long a waiting kernel thread polls before it sleeps; less when processes "
        "outnumber processors"};
inline constexpr Tunable kBalance{.name = "balance",
                                  .kind = TunableKind::choice,
                                  .fallback = "none",
                                  .choices = "none greedy refine",
                                  .help = "who moves ranks between nodes, by their measured load"};
inline constexpr Tunable kBalanceInterval{.name = "balance_interval",
                                          .kind = TunableKind::time,
                                          .fallback = "500ms",
                                          .minimum = 1'000'000,
                                          .help = "time between two balancings"};
inline constexpr Tunable kFault{.name = "fault",
                                .kind = TunableKind::text,
                                .fallback = "",
                                .help =
                                    "for tests: dies at a step of a move, as in source:offered or "
                                    "destination:received@2 (node 2)"};

inline constexpr Tunable kRankMemory{
    .name = "rank_memory",
    .kind = TunableKind::choice,
    .fallback = "shared",
    .choices = "shared private",
    .help =
        "how ranks have their memory: shared, so that they move within a host without a copy, or "
        "private"};
inline constexpr Tunable kShuffle{
    .name = "shuffle",
    .kind = TunableKind::integer,
    .fallback = "0",
    .maximum = 1'000'000,
    .help =
        "for tests: every rank moves to a random node at each n-th place where it can; 0: never"};
inline constexpr Tunable kShuffleSeed{.name = "shuffle_seed",
                                      .kind = TunableKind::integer,
                                      .fallback = "1",
                                      .maximum = 1'000'000'000,
                                      .help = "where the random numbers of shuffle begin"};

/// All tables of all layers, in the order of the floors. For `sterna info`, the launcher and nodes.
[[nodiscard]] std::span<const std::span<const Tunable>> all_tunables();

}  // namespace sterna::runtime
