// Words for what the system counts: signals, sizes, times.
#pragma once

#include <cstdint>
#include <string>

namespace sterna::launch {

/// "signal 11 (Segmentation fault)".
[[nodiscard]] std::string signal_text(int signal);

/// "1.25 s", "310 ms".
[[nodiscard]] std::string time_text(std::uint64_t ns);

}  // namespace sterna::launch
