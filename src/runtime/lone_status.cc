// A kernel thread that answers those who look.
#include "runtime/lone_status.h"

#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "runtime/control_protocol.h"
#include "runtime/status_folder.h"
#include "threads/carriers/kernel_thread.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr int kClientCountMax = 16;
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};  // With a client that does not go on.
constexpr std::string_view kRequest = "status\n";

std::uint64_t process_cpu_ns() noexcept {
  timespec time{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

/// Whether it asked what we answer.
bool has_asked(int client) noexcept {
  char request[kRequest.size() + 1] = {};
  std::size_t bytes = 0;
  while (bytes < sizeof request && (bytes == 0 || request[bytes - 1] != '\n')) {
    const long more =
        system_call([&] { return ::read(client, request + bytes, sizeof request - bytes); });
    if (more <= 0) {
      return false;
    }
    bytes += static_cast<std::size_t>(more);
  }
  return std::string_view{request, bytes} == kRequest;
}

}  // namespace

Result<std::unique_ptr<LoneStatus>> LoneStatus::open(Runtime::StatusFiller filler, void* argument) {
  Result<std::string> folder = status_folder();
  if (!folder) {
    return folder.error();
  }
  const std::string name = fmt::format("program-{}", ::getpid());
  Result<FileDescriptor> listener = listen_in_folder(folder.value(), name, kClientCountMax);
  if (!listener) {
    return listener.error();
  }
  std::unique_ptr<LoneStatus> status{
      new LoneStatus{filler, argument, std::move(listener.value()), folder.value() + "/" + name}};
  const int error =
      threads::start_kernel_thread(status->kernel_thread_, {.stack_bytes = kStackBytes,
                                                            .main = main,
                                                            .argument = status.get(),
                                                            .signals = threads::Signals::faults});
  if (error != 0) {
    status->kernel_thread_ = {};
    return system_error("cannot start a kernel thread that answers sterna ps (setting visible)",
                        error);
  }
  return status;
}

LoneStatus::~LoneStatus() {
  ::unlink(path_.c_str());
  if (kernel_thread_ != pthread_t{}) {
    (void)::shutdown(listener_.get(), SHUT_RDWR);  // Ends its poll().
    (void)::pthread_join(kernel_thread_, nullptr);
  }
}

void* LoneStatus::main(void* status) noexcept {
  static_cast<LoneStatus*>(status)->serve();
  return nullptr;
}

void LoneStatus::serve() noexcept {
  for (;;) {
    pollfd listener{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (system_call([&] { return ::poll(&listener, 1, -1); }) < 0 ||
        (listener.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      return;
    }
    const FileDescriptor client{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!client.is_open()) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 50'000'000};  // No descriptor is left: later.
      (void)::nanosleep(&pause, nullptr);
    } else if (is_ours(client.get())) {
      answer(client.get());
    }
  }
}

void LoneStatus::answer(int client) noexcept {
  (void)::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  (void)::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (!has_asked(client)) {
    return;
  }
  NodeStatus status;
  status.cpu_ns = process_cpu_ns();
  filler_(argument_, status);
  const Frame frame = encode(status);
  for (std::size_t sent = 0; sent < frame.size();) {
    const long more = system_call(
        [&] { return ::send(client, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL); });
    if (more <= 0) {
      return;
    }
    sent += static_cast<std::size_t>(more);
  }
}

}  // namespace sterna::runtime
