// Reading standard input only as fast as rank 0 takes it, and only while we are in the foreground.
#include "launch/input_relay.h"

#include <array>
#include <csignal>

#include <poll.h>
#include <unistd.h>

namespace sterna::launch {
namespace {

constexpr std::size_t kWaitingBytesMax = std::size_t{1} << 20;

}  // namespace

bool input_is_terminal() noexcept {
  return ::isatty(0) != 0;
}

InputRelay::InputRelay(Loop& loop, Job& job) : loop_{loop}, job_{job} {
  // Started in the background of a shell: a read from the terminal would stop us.
  static_cast<void>(std::signal(SIGTTIN, SIG_IGN));
  if (input_is_terminal() && ::tcgetpgrp(0) != ::getpgrp()) {
    end();
  }
}

InputRelay::~InputRelay() {
  loop_.unwatch(0);
}

void InputRelay::step() {
  if (!is_open_ || job_.input_bytes_waiting() > kWaitingBytesMax) {
    loop_.unwatch(0);
  } else {
    loop_.watch(0, POLLIN, *this);
  }
}

void InputRelay::on_ready(int fd, short /*events*/) {
  std::array<std::byte, 65536> bytes;
  const long count = system_call([&] { return ::read(fd, bytes.data(), bytes.size()); });
  if (count > 0) {
    job_.give_input(std::span{bytes}.first(static_cast<std::size_t>(count)));
  } else if (count != -EAGAIN) {
    end();
  }
}

void InputRelay::end() {
  if (is_open_) {
    is_open_ = false;
    loop_.unwatch(0);
    job_.give_input({});
  }
}

}  // namespace sterna::launch
