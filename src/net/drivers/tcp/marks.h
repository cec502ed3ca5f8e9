// What an event of the epoll set belongs to: a kind in the upper half of its data, an index below.
#pragma once

#include <cstdint>

namespace sterna::net::tcp {

enum class Mark : std::uint32_t { listener, wake, timer, silence, channel, joining };

[[nodiscard]] constexpr std::uint64_t mark_of(Mark kind, std::uint64_t index = 0) noexcept {
  return (std::uint64_t{static_cast<std::uint32_t>(kind)} << 32) | index;
}
[[nodiscard]] constexpr Mark kind_of(std::uint64_t mark) noexcept {
  return static_cast<Mark>(mark >> 32);
}
[[nodiscard]] constexpr std::uint32_t index_of(std::uint64_t mark) noexcept {
  return static_cast<std::uint32_t>(mark);
}

}  // namespace sterna::net::tcp
