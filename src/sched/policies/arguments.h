// Reading what stands in brackets after the name of a policy.
#pragma once

#include <optional>

#include "sched/policy.h"

namespace sterna::sched {

/// "numa", "core" and so on; nothing for other words.
[[nodiscard]] std::optional<topology::PlaceKind> to_place_kind(std::string_view word) noexcept;

/// "slice=0.2": milliseconds, as ns. Nothing for other words; an error for a number that cannot be.
[[nodiscard]] Result<std::optional<std::uint64_t>> to_slice_ns(std::string_view word);

[[nodiscard]] Error unexpected_argument(std::string_view policy, std::string_view word,
                                        std::string_view allowed);

}  // namespace sterna::sched
