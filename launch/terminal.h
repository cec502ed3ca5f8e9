// A terminal that shows pages: keys come one by one, the screen is another one. However the program
// ends, but by SIGKILL, the terminal is as it was: normal end, signals, faults, being stopped.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sterna::launch {

struct TerminalSize {
  std::size_t width = 80;
  std::size_t height = 24;
};

/// One a process: signal handlers know it.
class Terminal {
 public:
  /// Standard input and output are terminals.
  [[nodiscard]] static bool is_there();
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  [[nodiscard]] TerminalSize size() const;
  void show(std::span<const std::string> lines);
  /// Waits for a key. 0: the time is over, or the window has changed. 'q' when the terminal has
  /// gone or a signal wants the end.
  [[nodiscard]] char wait_key(int milliseconds);
};

}  // namespace sterna::launch
