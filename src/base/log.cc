// Formats lines of the log and writes them, each with one system call.
#include "base/log.h"

#include <algorithm>
#include <array>
#include <optional>

#include <unistd.h>

#include "base/syscall.h"

namespace sterna {

namespace {

constexpr std::array<std::string_view, 4> kLevelNames{"error", "warn", "info", "debug"};
constexpr std::size_t kLineBytesMax = 4096;  // PIPE_BUF: a shorter write to a pipe is not torn.

std::optional<LogLevel> level_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kLevelNames.size(); ++i) {
    if (kLevelNames[i] == name) {
      return static_cast<LogLevel>(i);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<> parse_log_levels(std::string_view text, LogOptions& options) {
  LogOptions parsed = options;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(item.size() == text.size() ? item.size() : item.size() + 1);
    const std::size_t equals = item.find('=');
    const bool names_subsystem = equals != std::string_view::npos;
    const std::optional<LogLevel> level =
        level_named(names_subsystem ? item.substr(equals + 1) : item);
    if (!level || equals == 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("log levels: \"{}\" means nothing; write error, warn, info or "
                               "debug, or <subsystem>=<level>, separated by commas",
                               item)};
    }
    if (names_subsystem) {
      parsed.subsystems.emplace_back(item.substr(0, equals), *level);
    } else {
      parsed.level = *level;
    }
  }
  options = std::move(parsed);
  return Done{};
}

LogLevel Log::level(std::string_view subsystem) const noexcept {
  LogLevel level = options_.level;
  for (const auto& [name, own_level] : options_.subsystems) {
    if (name == subsystem) {
      level = own_level;  // The last one wins.
    }
  }
  return level;
}

void Log::write(std::string_view subsystem, LogLevel level, std::string_view text) const noexcept {
  std::string line = "sterna: ";
  if (!options_.prefix.empty()) {
    line += options_.prefix + ": ";
  }
  line += subsystem;
  line += ": ";
  line += kLevelNames[static_cast<std::size_t>(level)];
  line += ": ";
  line += text;
  line.resize(std::min(line.size(), kLineBytesMax - 1));
  for (char& c : line) {
    // No control characters: a stranger's bytes may be in a text, and lines must stay lines.
    if (static_cast<unsigned char>(c) < ' ') {
      c = ' ';
    }
  }
  line += '\n';
  static_cast<void>(system_call([&] { return ::write(options_.fd, line.data(), line.size()); }));
}

}  // namespace sterna
