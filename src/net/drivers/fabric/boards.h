// What libfabric finds on this host, for who only tells of it. Works in a build without its headers
// and on a host without it: then it finds nothing.
#pragma once

#include <string>
#include <vector>

namespace sterna::net::fabric {

/// What the driver could be opened on, as it is written behind "fabric@": "verbs:mlx5_0". Each
/// once, the favourites of libfabric first. Any thread, but: it loads libfabric, whose providers
/// may take seconds, print, and keep kernel threads. So best by a process that does nothing else.
[[nodiscard]] std::vector<std::string> boards();

}  // namespace sterna::net::fabric
