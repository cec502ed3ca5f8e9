// Talking to the agent of another machine.
#include "launch/remote_crew.h"

#include <array>
#include <csignal>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/wire.h"

namespace sterna::launch {
namespace {

std::vector<std::string> own_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  return result;
}

std::vector<std::string> command_for(const std::string& ssh, const std::string& host) {
  std::vector<std::string> words = remote_command(ssh, host);
  words.push_back("exec '" + own_path() + "' agent");
  return words;
}

}  // namespace

std::vector<std::string> remote_command(const std::string& ssh, const std::string& host) {
  std::vector<std::string> words;
  std::istringstream stream{ssh};
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  if (ssh == "ssh") {
    // Nobody is there to type a password; a host that has lost its power says nothing any more.
    words.insert(words.end(), {"-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o",
                               "ServerAliveInterval=15"});
  }
  words.push_back(host);
  return words;
}

RemoteCrew::RemoteCrew(Loop& loop, CrewEvents& events, CrewOrder order, std::string ssh)
    : loop_{loop}, events_{events}, order_{std::move(order)}, ssh_{std::move(ssh)} {}

RemoteCrew::~RemoteCrew() {
  close();
}

Result<> RemoteCrew::start() {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) {
    return system_error("launcher: cannot make a pipe", last_error_number());
  }
  FileDescriptor their_input{in[0]};
  to_agent_ = FileDescriptor{in[1]};
  from_agent_ = FileDescriptor{out[0]};
  FileDescriptor their_output{out[1]};
  Result<Guardian> guardian = Guardian::start();
  if (!guardian) {
    return guardian.error();
  }
  guardian_.emplace(std::move(guardian.value()));
  const std::vector<std::string> words = command_for(ssh_, order_.host);
  const std::vector<std::string> environment = own_environment();
  Result<pid_t> pid = spawn({.arguments = &words,
                             .environment = &environment,
                             .directory = {},
                             .input_fd = their_input.get(),
                             .output_fd = their_output.get(),
                             .error_fd = 2,
                             .inherited_fds = {},
                             .group = guardian_->group()});
  if (!pid) {
    return Error{pid.error().code, fmt::format("host {} cannot be reached: {} (--launcher-exec)",
                                               order_.host, pid.error().text)};
  }
  pid_ = pid.value();
  for (const ProcessOrder& process : order_.processes) {
    running_.insert(process.node);
  }
  set_non_blocking(to_agent_.get());
  set_non_blocking(from_agent_.get());
  loop_.watch_child(pid_, *this);
  loop_.watch(from_agent_.get(), POLLIN, *this);
  tell(encode_relay(RelayKind::order, 0, encode_order(order_)));
  return Done{};
}

void RemoteCrew::tell(const Frame& frame) {
  if (to_agent_.is_open()) {
    sender_.push(frame);
    write();
  }
}

void RemoteCrew::write() {
  sender_.write_to(to_agent_.get());
  if (sender_.is_empty()) {
    loop_.unwatch(to_agent_.get());
  } else {
    loop_.watch(to_agent_.get(), POLLOUT, *this);
  }
}

void RemoteCrew::send(std::uint32_t node, const Frame& frame) {
  tell(encode_relay(RelayKind::to_node, node, frame));
}

void RemoteCrew::signal(int number) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, sizeof number};
  writer.i32(number);
  tell(encode_relay(RelayKind::signal, 0, bytes));
}

void RemoteCrew::give_input(std::span<const std::byte> bytes) {
  input_given_ += bytes.size();
  tell(encode_relay(RelayKind::input, 0, bytes));
}

void RemoteCrew::let_output_flow(bool flows) {
  if (from_agent_.is_open()) {
    loop_.watch(from_agent_.get(), flows ? POLLIN : 0, *this);
  }
}

void RemoteCrew::on_ready(int fd, short /*events*/) {
  if (fd == to_agent_.get()) {
    write();
    return;
  }
  const FrameReader::State state = reader_.read_from(fd);
  FrameHeader header;
  std::span<const std::byte> body;
  while (reader_.next(header, body)) {
    Result<Relay> relay = decode_relay(body);
    if (header.kind != FrameKind::relay || !relay || !handle(relay.value())) {
      lose("its agent sent what is no message; is the same version of Sterna installed there?");
      return;
    }
  }
  if (!reader_.is_well_formed()) {
    lose("what answered is no agent; does the shell there print something at its start?");
  } else if (state == FrameReader::State::ended) {
    loop_.unwatch(fd);
    from_agent_ = FileDescriptor{};
    if (pid_ < 0) {
      lose("the connection has ended");
    }
  }
}

bool RemoteCrew::handle(const Relay& relay) {
  const bool is_of_node = relay.kind != RelayKind::over && relay.kind != RelayKind::failed &&
                          relay.kind != RelayKind::taken;
  if (is_of_node && !running_.contains(relay.node) && relay.kind != RelayKind::output) {
    return false;
  }
  const std::string_view text{reinterpret_cast<const char*>(relay.bytes.data()),
                              relay.bytes.size()};
  wire::Reader reader{relay.bytes};
  switch (relay.kind) {
    case RelayKind::from_node: {
      Result<FrameHeader> header = runtime::decode_header(reader.raw(runtime::kFrameHeaderBytes));
      if (!header || header.value().body_bytes != reader.bytes_left()) {
        return false;
      }
      events_.on_frame(relay.node, header.value(), reader.raw(reader.bytes_left()));
      return true;
    }
    case RelayKind::output: {
      const std::uint8_t stream = reader.u8();
      if (stream != 1 && stream != 2) {
        return false;
      }
      events_.on_output(relay.node, static_cast<OutputStream>(stream),
                        reader.raw(reader.bytes_left()));
      return true;
    }
    case RelayKind::started:
      events_.on_started(relay.node, reader.u32());
      return reader.finished();
    case RelayKind::start_failed:
      events_.on_start_failed(relay.node, text);
      return true;
    case RelayKind::ended: {
      Result<ProcessEnd> end = decode_end(relay.bytes);
      if (!end) {
        return false;
      }
      running_.erase(relay.node);
      events_.on_process_end(relay.node, end.value());
      return true;
    }
    case RelayKind::taken: {
      Result<std::uint64_t> taken = decode_taken(relay.bytes);
      if (!taken || taken.value() < input_taken_ || taken.value() > input_given_) {
        return false;
      }
      input_taken_ = taken.value();
      return true;
    }
    case RelayKind::over:
      is_over_ = true;
      return true;
    case RelayKind::failed:
      lose(std::string{text});
      return true;
    default:
      return false;
  }
}

void RemoteCrew::lose(const std::string& why) {
  if (from_agent_.is_open()) {
    loop_.unwatch(from_agent_.get());
    from_agent_ = FileDescriptor{};
  }
  if (!is_over_ && !is_closing_) {
    events_.on_crew_lost(order_.host, why);
  }
  is_over_ = true;
  for (const std::uint32_t node : std::exchange(running_, {})) {
    events_.on_process_end(node, {.exit_code = 255});
  }
}

void RemoteCrew::on_child_end(pid_t /*pid*/, const ProcessEnd& end) {
  pid_ = -1;
  if (!is_over_) {
    lose(
        end.exit_code == 127
            ? fmt::format("there is no {} (Sterna must be installed at the same place)", own_path())
            : fmt::format("'{}' ended with code {}; does '{} {} true' work without a password?",
                          ssh_, end.exit_code, ssh_, order_.host));
  }
}

void RemoteCrew::leave() {
  is_closing_ = true;
  if (to_agent_.is_open()) {
    loop_.unwatch(to_agent_.get());
    to_agent_ = FileDescriptor{};  // The agent ends what is left, then itself.
  }
}

void RemoteCrew::close() {
  leave();
  if (from_agent_.is_open()) {
    loop_.unwatch(from_agent_.get());
    from_agent_ = FileDescriptor{};
  }
  if (guardian_) {
    guardian_->signal_group(SIGKILL);
    guardian_.reset();
  }
}

}  // namespace sterna::launch
