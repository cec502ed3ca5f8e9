// Words of a description of a machine that is not there.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace sterna::topology {

// Processors: to load so many takes seconds, and twice as many eight times as long.
inline constexpr std::uint64_t kSyntheticMax = 8192;
inline constexpr std::uint64_t kNetworkMax = 16 * kSyntheticMax;  // Of several machines alike.

/// Takes "key:N " off the front of the text. False: it is there, and wrong.
[[nodiscard]] inline bool take_option(std::string_view& text, std::string_view key,
                                      std::uint32_t most, std::uint32_t& value) noexcept {
  if (!text.starts_with(key)) {
    return true;
  }
  const std::string_view number = text.substr(key.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || value == 0 || value > most || end == number.data() + number.size() ||
      *end != ' ') {
    return false;
  }
  text = number.substr(static_cast<std::size_t>(end - number.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return true;
}

/// Of a description in hwloc's words: the product of the numbers of its levels, what stands in
/// brackets aside. kSyntheticMax + 1: more than that.
[[nodiscard]] inline std::uint64_t processors_of(std::string_view machine) noexcept {
  std::uint64_t product = 1;
  int depth = 0;
  for (std::size_t i = 0; i < machine.size(); ++i) {
    depth += machine[i] == '(' || machine[i] == '[' ? 1 : 0;
    depth -= machine[i] == ')' || machine[i] == ']' ? 1 : 0;
    const bool begins = depth == 0 && (i == 0 || machine[i - 1] == ':' || machine[i - 1] == ' ');
    std::uint64_t number = 0;
    if (!begins || machine[i] < '0' || machine[i] > '9') {
      continue;
    }
    const char* const end = machine.data() + machine.size();
    const std::errc error = std::from_chars(machine.data() + i, end, number).ec;
    if (error != std::errc{} || number > kSyntheticMax || product * number > kSyntheticMax) {
      return kSyntheticMax + 1;
    }
    product *= number;
  }
  return product;
}

}  // namespace sterna::topology
