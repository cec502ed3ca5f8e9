// Text in UTF-8 that has to be cut.
#pragma once

#include <cstddef>
#include <string_view>

namespace sterna {

/// How many bytes of `text`, which may have been cut anywhere, are whole characters. Bytes that are
/// no UTF-8 count as characters.
[[nodiscard]] inline std::size_t whole_characters(std::string_view text) noexcept {
  constexpr std::size_t kRestMax = 3;  // Of a character, after its first byte.
  std::size_t rest = 0;
  while (rest < kRestMax && rest < text.size() &&
         (static_cast<unsigned char>(text[text.size() - 1 - rest]) & 0xc0U) == 0x80U) {
    ++rest;
  }
  if (rest == text.size()) {
    return rest;
  }
  const auto first = static_cast<unsigned char>(text[text.size() - 1 - rest]);
  const std::size_t wanted = first >= 0xf8   ? 0
                             : first >= 0xf0 ? 3
                             : first >= 0xe0 ? 2
                             : first >= 0xc0 ? 1
                                             : 0;
  return rest < wanted ? text.size() - 1 - rest : text.size();
}

}  // namespace sterna
