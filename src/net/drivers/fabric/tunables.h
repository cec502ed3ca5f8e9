// The settings of the driver fabric. Its connections have those of tcp.
#pragma once

#include <array>

#include "base/tunable.h"

namespace sterna::net::fabric {

inline constexpr Tunable kProvider{
    .name = "fabric_provider",
    .kind = TunableKind::text,
    .fallback = "",
    .help =
        "libfabric provider, like verbs or tcp; empty: the first that goes between hosts; "
        "fabric@NAME has its own"};
inline constexpr Tunable kDomain{
    .name = "fabric_domain",
    .kind = TunableKind::text,
    .fallback = "",
    .help =
        "device or interface, as the provider calls it (mlx5_0, eth0); empty: its first; "
        "fabric@NAME:DOMAIN has its own"};
inline constexpr Tunable kMessageBytes{
    .name = "fabric_message_bytes",
    .kind = TunableKind::bytes,
    .fallback = "16K",
    .minimum = 1024,
    .maximum = 1 << 20,
    .help = "largest message of an endpoint; the same in all nodes"};
inline constexpr Tunable kWindow{
    .name = "fabric_window",
    .kind = TunableKind::integer,
    .fallback = "128",
    .minimum = 4,
    .maximum = 1024,
    .help = "messages on their way to a peer, at most; the same in all nodes"};
inline constexpr Tunable kRead{
    .name = "fabric_read",
    .kind = TunableKind::flag,
    .fallback = "on",
    .help =
        "the receiver's node reads long messages from the sender's memory, if the provider can"};
inline constexpr std::array kTunables{kProvider, kDomain, kMessageBytes, kWindow, kRead};

}  // namespace sterna::net::fabric
