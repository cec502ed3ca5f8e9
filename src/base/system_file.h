// Small files in which the system describes itself.
#pragma once

#include <optional>
#include <string>

namespace sterna {

/// The first line of a file of less than 4 KiB, without its end. Nothing: it cannot be read, or is
/// empty.
[[nodiscard]] std::optional<std::string> first_line_of(const char* path);

/// What is the same on two nodes exactly if they run on one machine (one kernel), since it was
/// started last; empty where the system does not say.
[[nodiscard]] std::string boot_id();

}  // namespace sterna
