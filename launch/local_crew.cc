// Starting and following the processes of a job on this machine.
#include "launch/local_crew.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory_file.h"
#include "launch/spawn.h"
#include "net/nodes/host_board.h"

namespace sterna::launch {
namespace {

constexpr std::size_t kOutputReadBytes = std::size_t{64} << 10;

Result<std::pair<FileDescriptor, FileDescriptor>> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return system_error("launcher: cannot make a pipe", last_error_number());
  }
  return std::pair{FileDescriptor{ends[0]}, FileDescriptor{ends[1]}};
}

// A program that was linked with another MPI of the standard ABI names that one's folder, and would
// start as jobs of one rank each on it. Ours goes first, if it lies beside us.
void put_own_library_first(std::vector<std::string>& environment) {
  constexpr std::string_view kVariable = "LD_LIBRARY_PATH=";
  const std::string folder = own_folder() + "/../lib";
  if (::access((folder + "/libmpi_abi.so.1").c_str(), R_OK) != 0) {
    return;
  }
  for (std::string& variable : environment) {
    if (variable.starts_with(kVariable)) {
      variable.insert(kVariable.size(), variable.size() > kVariable.size() ? folder + ":" : folder);
      return;
    }
  }
  environment.push_back(std::string{kVariable} + folder);
}

}  // namespace

LocalCrew::LocalCrew(Loop& loop, CrewEvents& events, CrewOrder order, Options options)
    : loop_{loop},
      events_{events},
      host_{std::move(order.host)},
      segment_bytes_{order.segment_bytes},
      options_{options} {
  for (ProcessOrder& process : order.processes) {
    index_of_node_[process.node] = processes_.size();
    processes_.emplace_back().order = std::move(process);
  }
}

LocalCrew::~LocalCrew() {
  close();
}

Result<> LocalCrew::share_memory() {
  Result<FileDescriptor> segments = create_memory_file(
      "sterna-segments", segment_bytes_ * processes_.size() + net::kHostBoardBytes);
  if (!segments) {
    return Error{segments.error().code,
                 "launcher: cannot make shared memory: " + segments.error().text};
  }
  segments_ = std::move(segments.value());
  share_.segment_fd = segments_.get();
  share_.segment_bytes = segment_bytes_;
  shared_fds_.push_back(segments_.get());
  for (const Process& process : processes_) {
    FileDescriptor& bell = bells_.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell.is_open()) {
      return system_error("launcher: cannot make an eventfd (raise 'ulimit -n')",
                          last_error_number());
    }
    share_.nodes.push_back(process.order.node);
    share_.bell_fds.push_back(bell.get());
    shared_fds_.push_back(bell.get());
  }
  return Done{};
}

Result<> LocalCrew::start() {
  raise_descriptor_limit();
  Result<Guardian> guardian = Guardian::start();
  if (!guardian) {
    return guardian.error();
  }
  guardian_.emplace(std::move(guardian.value()));
  if (Result<> shared = share_memory(); !shared) {
    return shared;
  }
  bool can_start = true;
  for (Process& process : processes_) {
    const std::uint32_t node = process.order.node;
    // What keeps one from starting keeps the others too: a missing program, a limit.
    if (Result<> started = can_start ? start_process(process) : Done{}; !started) {
      can_start = false;
      events_.on_start_failed(node, started.error().text);
    }
    if (can_start) {
      events_.on_started(node, static_cast<std::uint32_t>(process.pid));
    } else {
      events_.on_process_end(node, {.exit_code = 127});
    }
  }
  return Done{};
}

Result<> LocalCrew::start_process(Process& process) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error("launcher: cannot make a socket (raise 'ulimit -n')", last_error_number());
  }
  FileDescriptor control{ends[0]};
  FileDescriptor theirs{ends[1]};
  auto output = make_pipe();
  auto error = make_pipe();
  auto input = make_pipe();
  if (!output || !error || !input) {
    return Error{Errc::system, "launcher: cannot make a pipe (raise 'ulimit -n')"};
  }
  std::vector<int> inherited = shared_fds_;
  inherited.push_back(theirs.get());
  std::vector<std::string> environment = process.order.environment;
  put_own_library_first(environment);
  environment.push_back(std::string{runtime::kControlVariable} + "=" +
                        std::to_string(theirs.get()));
  const bool has_pipe = process.order.takes_input && options_.input_fd < 0;
  const int given_input = process.order.takes_input ? options_.input_fd : -1;
  Result<pid_t> pid = spawn({.arguments = &process.order.arguments,
                             .environment = &environment,
                             .directory = process.order.directory,
                             .input_fd = has_pipe ? input.value().first.get() : given_input,
                             .output_fd = output.value().second.get(),
                             .error_fd = error.value().second.get(),
                             .inherited_fds = inherited,
                             .group = guardian_->group()});
  if (!pid) {
    return pid.error();
  }
  process.pid = pid.value();
  process.control = std::move(control);
  process.output = std::move(output.value().first);
  process.error = std::move(error.value().first);
  const std::size_t index = static_cast<std::size_t>(&process - processes_.data());
  for (const FileDescriptor* fd : {&process.control, &process.output, &process.error}) {
    set_non_blocking(fd->get());
    index_of_fd_[fd->get()] = index;
  }
  if (has_pipe) {
    input_writer_ = std::move(input.value().second);
    set_non_blocking(input_writer_.get());
    write_input();
  }
  loop_.watch_child(process.pid, *this);
  watch(process);
  return Done{};
}

void LocalCrew::watch(Process& process) {
  const short reading = output_flows_ ? POLLIN : 0;
  if (process.control.is_open()) {
    const short writing = process.sender.is_empty() ? 0 : POLLOUT;
    loop_.watch(process.control.get(), static_cast<short>(reading | writing), *this);
  }
  for (const FileDescriptor* fd : {&process.output, &process.error}) {
    if (fd->is_open()) {
      loop_.watch(fd->get(), reading, *this);
    }
  }
}

void LocalCrew::let_output_flow(bool flows) {
  if (flows != output_flows_) {
    output_flows_ = flows;
    for (Process& process : processes_) {
      watch(process);
    }
  }
}

void LocalCrew::on_ready(int fd, short events) {
  if (fd == input_writer_.get()) {
    write_input();
    return;
  }
  const auto found = index_of_fd_.find(fd);
  if (found == index_of_fd_.end()) {
    return;
  }
  Process& process = processes_[found->second];
  if (fd == process.output.get()) {
    read_output(process, process.output, OutputStream::output);
  } else if (fd == process.error.get()) {
    read_output(process, process.error, OutputStream::error);
  } else {
    if ((events & POLLOUT) != 0) {
      process.sender.write_to(fd);
      watch(process);
    }
    if ((events & ~POLLOUT) != 0) {
      read_control(process);
    }
  }
}

void LocalCrew::read_control(Process& process) {
  if (!process.control.is_open()) {
    return;
  }
  const FrameReader::State state = process.reader.read_from(process.control.get());
  FrameHeader header;
  std::span<const std::byte> body;
  while (process.reader.next(header, body)) {
    if (header.kind == FrameKind::hello) {
      greet(process);
    }
    events_.on_frame(process.order.node, header, body);
  }
  if (!process.reader.is_well_formed()) {
    events_.on_frame(process.order.node, {}, {});  // Of no kind there is.
  }
  if (state == FrameReader::State::ended || !process.reader.is_well_formed()) {
    forget(process.control);
  }
}

void LocalCrew::greet(Process& process) {
  send(process.order.node, runtime::encode(share_));
}

bool LocalCrew::read_output(Process& process, FileDescriptor& from, OutputStream stream) {
  std::array<std::byte, kOutputReadBytes> bytes;
  const long count = system_call([&] { return ::read(from.get(), bytes.data(), bytes.size()); });
  if (count > 0) {
    events_.on_output(process.order.node, stream,
                      std::span{bytes}.first(static_cast<std::size_t>(count)));
    return true;
  }
  if (count != -EAGAIN) {
    forget(from);
  }
  return false;
}

void LocalCrew::forget(FileDescriptor& fd) {
  if (fd.is_open()) {
    loop_.unwatch(fd.get());
    index_of_fd_.erase(fd.get());
    fd = FileDescriptor{};
  }
}

void LocalCrew::on_child_end(pid_t pid, const ProcessEnd& end) {
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [&](const Process& process) { return process.pid == pid; });
  if (found == processes_.end()) {
    return;
  }
  found->pid = -1;
  // Its last words count before its end does.
  for (bool more = true; more && found->control.is_open();) {
    std::array<char, 1> byte{};
    more = ::recv(found->control.get(), byte.data(), 1, MSG_PEEK | MSG_DONTWAIT) > 0;
    read_control(*found);
  }
  events_.on_process_end(found->order.node, end);
}

void LocalCrew::send(std::uint32_t node, const Frame& frame) {
  const auto found = index_of_node_.find(node);
  if (found == index_of_node_.end() || !processes_[found->second].control.is_open()) {
    return;
  }
  Process& process = processes_[found->second];
  process.sender.push(frame);
  process.sender.write_to(process.control.get());
  watch(process);
}

void LocalCrew::signal(int number) {
  if (guardian_) {
    guardian_->signal_group(number);
  }
  for (const Process& process : processes_) {
    if (process.pid > 0) {
      ::kill(process.pid, number);  // It may have left the group.
    }
  }
}

void LocalCrew::give_input(std::span<const std::byte> bytes) {
  if (is_input_refused_) {
    return;
  }
  if (bytes.empty()) {
    input_ends_ = true;
  }
  input_.push({bytes.begin(), bytes.end()});
  write_input();
}

void LocalCrew::write_input() {
  if (!input_writer_.is_open()) {
    return;
  }
  const bool has_reader = input_.write_to(input_writer_.get());
  is_input_refused_ = !has_reader;
  if (!has_reader || (input_ends_ && input_.is_empty())) {
    loop_.unwatch(input_writer_.get());
    input_writer_ = FileDescriptor{};
  } else if (input_.is_empty()) {
    loop_.unwatch(input_writer_.get());
  } else {
    loop_.watch(input_writer_.get(), POLLOUT, *this);
  }
}

bool LocalCrew::is_over() const noexcept {
  return std::all_of(processes_.begin(), processes_.end(), [](const Process& process) {
    return process.pid < 0 && !process.output.is_open() && !process.error.is_open();
  });
}

void LocalCrew::close() {
  if (guardian_) {
    guardian_->signal_group(SIGKILL);
    guardian_.reset();
  }
  for (Process& process : processes_) {
    forget(process.control);
    forget(process.output);
    forget(process.error);
  }
  if (input_writer_.is_open()) {
    loop_.unwatch(input_writer_.get());
    input_writer_ = FileDescriptor{};
  }
}

}  // namespace sterna::launch
