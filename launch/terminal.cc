// Modes are set and taken back by write and tcsetattr only, which signal handlers may call.
#include "launch/terminal.h"

#include <array>
#include <csignal>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/syscall.h"

namespace sterna::launch {
namespace {

// Another screen, no cursor, no folding of long lines; and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr char kLeave[] = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::array kEnds{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Written before handlers are installed.
termios saved_modes;
volatile std::sig_atomic_t is_ours = 0;
volatile std::sig_atomic_t must_end = 0;

void put(const char* text, std::size_t bytes) {
  while (bytes != 0) {
    const long count = system_call([&] { return ::write(STDOUT_FILENO, text, bytes); });
    if (count <= 0) {
      return;
    }
    text += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

void enter() {
  termios modes = saved_modes;
  modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  modes.c_cc[VMIN] = 0;
  modes.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
  put(kEnter, sizeof kEnter - 1);
  is_ours = 1;
}

void leave() {
  if (is_ours != 0) {
    is_ours = 0;
    put(kLeave, sizeof kLeave - 1);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &saved_modes);
  }
}

void on_end(int) {
  must_end = 1;
}

void on_fault(int signal) {
  leave();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void on_stop(int) {
  leave();
  ::raise(SIGSTOP);
  enter();  // It goes on: SIGCONT has come.
}

void on_resize(int) {}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);  // Without SA_RESTART: poll ends.
}

}  // namespace

bool Terminal::is_there() {
  return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

Terminal::Terminal() {
  ::tcgetattr(STDIN_FILENO, &saved_modes);
  for (const int signal : kEnds) {
    handle(signal, on_end);
  }
  for (const int signal : kFaults) {
    handle(signal, on_fault);
  }
  handle(SIGTSTP, on_stop);
  handle(SIGWINCH, on_resize);
  enter();
}

Terminal::~Terminal() {
  leave();
}

TerminalSize Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.width = size.ws_col, .height = size.ws_row};
}

void Terminal::show(std::span<const std::string> lines) {
  std::string screen = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    screen += (i == 0 ? "\x1b[7m" : "\r\n") + lines[i] + (i == 0 ? "\x1b[0m\x1b[K" : "\x1b[K");
  }
  screen += "\x1b[J";
  put(screen.data(), screen.size());
}

char Terminal::wait_key(int milliseconds) {
  if (must_end != 0) {
    return 'q';
  }
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int count = ::poll(&input, 1, milliseconds);
  if (must_end != 0 || (count > 0 && (input.revents & POLLIN) == 0)) {
    return 'q';
  }
  char key = 0;
  if (count > 0 && ::read(STDIN_FILENO, &key, 1) == 0) {
    return 'q';  // The other end has gone.
  }
  return key;
}

}  // namespace sterna::launch
