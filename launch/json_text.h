// JSON as text. What it tells of (words of a command line, names of files) need not be UTF-8: what
// is not becomes U+FFFD, where dump() alone would end the program.
#pragma once

#include <string>

namespace sterna::launch {

/// On one line; with `indent` on many.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sterna::launch
