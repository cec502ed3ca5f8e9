// The settings of the tcp driver.
#pragma once

#include <array>
#include <string_view>

#include "base/tunable.h"

namespace sterna::net::tcp {

/// Why a text is no value of `tcp_ports`.
[[nodiscard]] Result<> verify_ports(std::string_view ports);

inline constexpr Tunable kInterface{.name = "tcp_interface",
                                    .kind = TunableKind::text,
                                    .fallback = "",
                                    .help =
                                        "listen on this interface, address or prefix "
                                        "(10.0.1.0/24) only; tcp@NAME has its own"};
inline constexpr Tunable kPorts{.name = "tcp_ports",
                                .kind = TunableKind::text,
                                .fallback = "0",
                                .help = "port to listen on, or a range FIRST-LAST; 0: any free one",
                                .verify = verify_ports};
inline constexpr Tunable kPacketBytes{
    .name = "tcp_packet_bytes",
    .kind = TunableKind::bytes,
    .fallback = "260K",
    .minimum = 1024,
    .maximum = 1 << 20,
    .help = "largest packet of a connection, with its headers; the same in all nodes"};
inline constexpr Tunable kHostPacketBytes{
    .name = "tcp_host_packet_bytes",
    .kind = TunableKind::bytes,
    .fallback = "1M",
    .minimum = 1024,
    .maximum = 1 << 20,
    .help =
        "the same between two nodes of one host, where nothing else is on the way; "
        "tcp_packet_bytes if that is more"};
inline constexpr Tunable kBufferBytes{
    .name = "tcp_buffer_bytes",
    .kind = TunableKind::bytes,
    .fallback = "0",
    .maximum = 1 << 30,
    .help = "kernel buffers of a connection; 0: the system sizes them"};
inline constexpr Tunable kConnections{
    .name = "tcp_connections",
    .kind = TunableKind::integer,
    .fallback = "1",
    .minimum = 1,
    .maximum = 8,
    .help = "connections between two nodes, for each network named: a link of so many rails"};
inline constexpr Tunable kStrangers{
    .name = "tcp_strangers",
    .kind = TunableKind::integer,
    .fallback = "64",
    .minimum = 1,
    .maximum = 65536,
    .help = "connections that have not proven the job's secret, at most"};
inline constexpr Tunable kHandshake{.name = "tcp_handshake_timeout",
                                    .kind = TunableKind::time,
                                    .fallback = "5s",
                                    .minimum = 1'000'000,
                                    .help =
                                        "time for a new connection to prove the job's secret; ours "
                                        "waits on where the other host has taken its first bytes"};
inline constexpr Tunable kConnect{.name = "tcp_connect_timeout",
                                  .kind = TunableKind::time,
                                  .fallback = "20s",
                                  .minimum = 1'000'000,
                                  .help =
                                      "time to reach the host of a node over any of its "
                                      "addresses; its process may take longer to answer"};
inline constexpr Tunable kSilence{.name = "tcp_silence_timeout",
                                  .kind = TunableKind::time,
                                  .fallback = "30s",
                                  .minimum = 1'000'000'000,
                                  .maximum = 86'400'000'000'000,
                                  .help =
                                      "a connection whose other end's system answers nothing "
                                      "for so long is lost, whatever the process there does; "
                                      "an idle one is asked, too"};
inline constexpr std::array kTunables{kInterface,   kPorts,       kPacketBytes, kHostPacketBytes,
                                      kBufferBytes, kConnections, kStrangers,   kHandshake,
                                      kConnect,     kSilence};

}  // namespace sterna::net::tcp
