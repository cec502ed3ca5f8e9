// Signals and times as a reader wants them.
#include "launch/describe.h"

#include <cstring>

#include <fmt/format.h>

namespace sterna::launch {

std::string signal_text(int signal) {
  const char* const words = ::sigdescr_np(signal);
  return words != nullptr ? fmt::format("signal {} ({})", signal, words)
                          : fmt::format("signal {}", signal);
}

std::string time_text(std::uint64_t ns) {
  const auto seconds = static_cast<double>(ns) / 1e9;
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

}  // namespace sterna::launch
