// The log: levels by subsystem, one line = one write(2) to standard error.
// A Log belongs to a node; each layer keeps a Logger, which names its subsystem.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"

namespace sterna {

enum class LogLevel : std::uint8_t {
  error,  // Something the user asked for did not happen.
  warn,   // It happened otherwise than asked, or will not for long.
  info,   // A milestone of a job, at most a few lines a second.
  debug,  // For who develops Sterna.
};

struct LogOptions {
  std::string prefix = {};  // Who speaks, for example "node 2". Empty: nobody.
  LogLevel level = LogLevel::warn;
  std::vector<std::pair<std::string, LogLevel>> subsystems = {};  // They override `level`.
  int fd = 2;
};

/// Reads the format of STERNA_LOG, "info" or "warn,net=debug,mpi=info", into level and subsystems.
[[nodiscard]] Result<> parse_log_levels(std::string_view text, LogOptions& options);

/// Constant after construction; any thread may write. What does not get written is lost.
class Log {
 public:
  explicit Log(LogOptions options = {}) : options_{std::move(options)} {}

  [[nodiscard]] LogLevel level(std::string_view subsystem) const noexcept;
  /// One line "sterna: <prefix>: <subsystem>: <level>: <text>"; line ends inside become spaces.
  void write(std::string_view subsystem, LogLevel level, std::string_view text) const noexcept;

 private:
  const LogOptions options_;
};

/// Two words and a level: copied freely; the Log must outlive it. A Logger of no Log is silent.
class Logger {
 public:
  Logger() noexcept = default;
  /// `subsystem` is a literal.
  Logger(const Log& log, const char* subsystem) noexcept
      : log_{&log}, subsystem_{subsystem}, level_{log.level(subsystem)} {}

  [[nodiscard]] bool is_enabled(LogLevel level) const noexcept {
    return log_ != nullptr && level <= level_;
  }

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::error, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::warn, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::info, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const noexcept {
    write(LogLevel::debug, format, std::forward<Args>(args)...);
  }

 private:
  template <typename... Args>
  void write(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const noexcept {
    if (is_enabled(level)) [[unlikely]] {
      log_->write(subsystem_, level, fmt::format(format, std::forward<Args>(args)...));
    }
  }

  const Log* log_ = nullptr;
  const char* subsystem_ = "";
  LogLevel level_ = LogLevel::error;
};

}  // namespace sterna
