// How many processors there are for us.
#pragma once

#include <cstdint>
#include <string_view>

namespace sterna {

/// Those that the calling kernel thread may use; at least 1.
[[nodiscard]] std::uint32_t usable_processors() noexcept;

/// Those of the machine that are online, as the system tells every process alike, whatever it may
/// use; 0: the system does not tell. Read once.
[[nodiscard]] std::uint32_t online_processors() noexcept;

/// How many a list as "0-3,8" names; 0: it is none.
[[nodiscard]] std::uint32_t count_of_list(std::string_view list) noexcept;

}  // namespace sterna
