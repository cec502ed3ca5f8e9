// What the code of a rank gets instead of libc's: functions that know ranks, and variables that
// each rank has of its own. Bound by name when a program is opened; nothing else in the process
// sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sterna::program {

struct Shim {
  std::string_view name;
  std::uintptr_t function = 0;      // Of the host; 0: it is a variable.
  std::size_t variable_offset = 0;  // In RankData.
};

template <typename Function>
[[nodiscard]] Shim function_shim(std::string_view name, Function* function) noexcept {
  return {.name = name, .function = reinterpret_cast<std::uintptr_t>(function)};
}

[[nodiscard]] constexpr Shim variable_shim(std::string_view name, std::size_t offset) noexcept {
  return {.name = name, .variable_offset = offset};
}

// One table for each file shims_*.cc. Constant; built at the first call.
[[nodiscard]] std::span<const Shim> start_shims();
[[nodiscard]] std::span<const Shim> stdio_shims();
[[nodiscard]] std::span<const Shim> print_shims();
[[nodiscard]] std::span<const Shim> environment_shims();
[[nodiscard]] std::span<const Shim> getopt_shims();
[[nodiscard]] std::span<const Shim> file_shims();
[[nodiscard]] std::span<const Shim> descriptor_shims();
[[nodiscard]] std::span<const Shim> memory_shims();
[[nodiscard]] std::span<const Shim> thread_shims();
[[nodiscard]] std::span<const Shim> c11_thread_shims();
[[nodiscard]] std::span<const Shim> time_shims();
[[nodiscard]] std::span<const Shim> library_shims();
[[nodiscard]] std::span<const Shim> shared_shims();

}  // namespace sterna::program
