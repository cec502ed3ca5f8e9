// The node's end of the control channel: greeting, exchange, reports, orders.
//
// System calls are raw here: reports come from runtime code on any thread pointer, and from signal
// handlers.
#include "runtime/control.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>
#include <utility>

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

namespace sterna::runtime {
namespace {

constexpr std::uint64_t kGreetingNs = 30'000'000'000;
constexpr std::uint64_t kCrashWaitNs = 100'000'000;
constexpr std::size_t kFirstBytes = 4096;

void set_close_on_exec(int fd) noexcept {
  if (fd >= 0) {
    raw_system_call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
  }
}
/// One call for descriptors that follow each other, where the system can (Linux 5.11).
void set_close_on_exec(std::span<const int> fds) noexcept {
  while (!fds.empty()) {
    std::size_t count = 1;
    while (count < fds.size() && fds[count] == fds[count - 1] + 1) {
      ++count;
    }
    const std::span<const int> run = fds.first(count);
    if (count == 1 || raw_system_call(SYS_close_range, run.front(), run.back(),
                                      CLOSE_RANGE_CLOEXEC) != 0) {
      std::ranges::for_each(run, [](int fd) { set_close_on_exec(fd); });
    }
    fds = fds.subspan(count);
  }
}

Error no_launcher(std::string_view what) {
  return {Errc::closed, "control channel: " + std::string{what}};
}

Result<int> descriptor_of(std::string_view text) {
  int fd = -1;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), fd);
  int type = 0;
  socklen_t bytes = sizeof type;
  if (bad != std::errc{} || end != text.data() + text.size() ||
      ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_STREAM) {
    return Error{Errc::invalid_argument,
                 std::string{kControlVariable} + "=" + std::string{text} +
                     " names no socket of a launcher; unset it to run the program alone"};
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<ControlClient>> ControlClient::open() noexcept {
  const char* const text = std::getenv(kControlVariable);
  if (text == nullptr) {
    std::unique_ptr<ControlClient> client{new ControlClient};
    client->stand_alone();
    return client;
  }
  Result<int> fd = descriptor_of(text);
  if (!fd) {
    return fd.error();
  }
  // Programs that this one starts are no members of the job.
  ::unsetenv(kControlVariable);
  return open(FileDescriptor{fd.value()});
}

Result<std::unique_ptr<ControlClient>> ControlClient::open(FileDescriptor socket) noexcept {
  set_close_on_exec(socket.get());
  std::unique_ptr<ControlClient> client{new ControlClient};
  client->socket_ = std::move(socket);
  if (Result<> greeted = client->greet(); !greeted) {
    return greeted.error();
  }
  return client;
}

ControlClient::~ControlClient() = default;

void ControlClient::stand_alone() noexcept {
  job_.map.node_of_rank = {0};
  job_.map.host_of_node = {"localhost"};
  job_.map.job_id = static_cast<std::uint64_t>(raw_system_call(SYS_getpid));
  raw_system_call(SYS_getrandom, reinterpret_cast<long>(job_.map.secret.data()),
                  static_cast<long>(job_.map.secret.size()), 0);
  host_.nodes = {0};
  host_.bell_fds = {-1};
}

Result<> ControlClient::greet() {
  Hello hello;
  hello.pid = static_cast<std::uint32_t>(raw_system_call(SYS_getpid));
  send(encode(hello));
  const std::uint64_t deadline_ns = now_ns() + kGreetingNs;
  bool has_host = false;
  for (;;) {
    if (Result<> came = wait_frame(deadline_ns); !came) {
      return came;
    }
    if (header_.kind == FrameKind::host) {
      Result<net::HostShare> host = decode_host(body());
      if (!host) {
        return host.error();
      }
      host_ = std::move(host.value());
      has_host = true;
    } else if (header_.kind == FrameKind::job && has_host) {
      Result<Job> job = decode_job(body());
      if (!job) {
        return job.error();
      }
      job_ = std::move(job.value());
      break;
    } else {
      return no_launcher("the launcher ended the job before it began");
    }
  }
  set_close_on_exec(host_.segment_fd);
  set_close_on_exec(std::span<const int>{host_.bell_fds});
  return Done{};
}

ControlClient::Read ControlClient::read_frame() noexcept {
  for (;;) {
    std::size_t wanted = kFrameHeaderBytes;
    if (input_bytes_ >= kFrameHeaderBytes) {
      if (!has_header_) {
        Result<FrameHeader> header = decode_header({input_.data(), kFrameHeaderBytes});
        if (!header) {
          return Read::malformed;
        }
        header_ = header.value();
        has_header_ = true;
      }
      wanted += header_.body_bytes;
      if (input_bytes_ == wanted) {
        input_bytes_ = 0;
        has_header_ = false;
        return Read::frame;
      }
    }
    if (input_.size() < wanted) {
      input_.resize(std::max(wanted, kFirstBytes));
    }
    const long count = raw_system_call(SYS_recvfrom, socket_.get(),
                                       reinterpret_cast<long>(input_.data() + input_bytes_),
                                       static_cast<long>(wanted - input_bytes_), MSG_DONTWAIT);
    if (count == -EAGAIN) {
      return Read::nothing;
    }
    if (count == -EINTR) {
      continue;
    }
    if (count <= 0) {
      return Read::gone;
    }
    input_bytes_ += static_cast<std::size_t>(count);
  }
}

Result<> ControlClient::wait_frame(std::uint64_t deadline_ns) {
  for (;;) {
    switch (read_frame()) {
      case Read::frame:
        return Done{};
      case Read::gone:
        return no_launcher("the launcher has gone");
      case Read::malformed:
        return Error{Errc::malformed, "control channel: the launcher sent what is no message"};
      case Read::nothing:
        break;
    }
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns) {
      return Error{Errc::timed_out, "control channel: the launcher does not answer"};
    }
    // One second at most: the deadline may lie beyond what poll can count.
    const int wait_ms =
        static_cast<int>(std::min<std::uint64_t>((deadline_ns - now) / 1'000'000 + 1, 1000));
    pollfd descriptor{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    static_cast<void>(::poll(&descriptor, 1, wait_ms));
  }
}

std::span<const std::byte> ControlClient::body() const noexcept {
  return std::span{input_}.subspan(kFrameHeaderBytes, header_.body_bytes);
}

Result<std::vector<std::vector<std::byte>>> ControlClient::exchange(
    std::span<const std::byte> blob) noexcept {
  if (blob.size() > kExchangeBlobBytesMax) {
    return Error{Errc::invalid_argument, "control channel: a node gave " +
                                             std::to_string(blob.size()) +
                                             " bytes to exchange, more than allowed"};
  }
  if (is_alone()) {
    return std::vector<std::vector<std::byte>>{{blob.begin(), blob.end()}};
  }
  send(encode_exchange(blob));
  for (;;) {
    // No time limit: the ranks of a program may start MPI when they like; the launcher tells when
    // one of them has died.
    if (Result<> came = wait_frame(kNever); !came) {
      return came.error();
    }
    switch (header_.kind) {
      case FrameKind::blobs: {
        auto blobs = decode_blobs(body());
        if (blobs && blobs.value().size() != job_.map.node_count) {
          return Error{Errc::malformed, "control channel: an exchange of the wrong size"};
        }
        return blobs;
      }
      case FrameKind::peer_lost: {
        Result<std::uint32_t> node = decode_index(body());
        return no_launcher("node " + (node ? std::to_string(node.value()) : "?") +
                           " has gone before the job had begun");
      }
      case FrameKind::stop:
        return no_launcher("the job was ended before it had begun");
      default:
        break;  // Questions and orders come again when the job runs.
    }
  }
}

void ControlClient::send(std::span<const std::byte> frame) noexcept {
  if (is_alone()) {
    return;
  }
  send_lock_.lock();
  send_locked(frame);
  send_lock_.unlock();
}

void ControlClient::send_locked(std::span<const std::byte> frame) noexcept {
  while (!frame.empty()) {
    const long count =
        raw_system_call(SYS_sendto, socket_.get(), reinterpret_cast<long>(frame.data()),
                        static_cast<long>(frame.size()), MSG_NOSIGNAL);
    if (count > 0) {
      frame = frame.subspan(static_cast<std::size_t>(count));
    } else if (count == -EAGAIN) {
      pollfd descriptor{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
      static_cast<void>(::poll(&descriptor, 1, -1));
    } else if (count != -EINTR) {
      return;  // The launcher has gone; poll() says so.
    }
  }
}

void ControlClient::report_moved(const RankMove& move) noexcept {
  send(encode(move));
}

void ControlClient::report_ended(RankEnd end) noexcept {
  send(encode(end));
}

void ControlClient::report_abort(const RankAbort& abort) noexcept {
  send(encode(abort));
}

void ControlClient::report_status(const NodeStatus& status) noexcept {
  send(encode(status));
}

void ControlClient::report_way(const WayAnswer& answer) noexcept {
  send(encode(answer));
}

void ControlClient::report_crash(const RankCrash& crash) noexcept STERNA_LOCKS_UNCHECKED {
  if (is_alone()) {
    return;
  }
  std::byte frame[kCrashFrameBytesMax];
  const std::size_t bytes = encode_crash(crash, std::span<std::byte, kCrashFrameBytesMax>{frame});
  // The crash may have come in the middle of another report, which then holds the lock for ever.
  const std::uint64_t deadline_ns = now_ns() + kCrashWaitNs;
  while (!send_lock_.try_lock()) {
    if (now_ns() > deadline_ns) {
      return;
    }
    raw_system_call(SYS_sched_yield);
  }
  send_locked({frame, bytes});
  send_lock_.unlock();
}

void ControlClient::write_output(std::uint32_t rank, OutputStream stream,
                                 std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), kOutputBytesMax));
    if (is_alone()) {
      const long count =
          raw_system_call(SYS_write, static_cast<long>(stream), reinterpret_cast<long>(part.data()),
                          static_cast<long>(part.size()));
      if (count <= 0 && count != -EINTR) {
        return;  // Nobody reads any more.
      }
      bytes = bytes.subspan(static_cast<std::size_t>(std::max(count, 0L)));
      continue;
    }
    send(encode(RankOutput{.rank = rank, .stream = stream, .bytes = part}));
    bytes = bytes.subspan(part.size());
  }
}

std::uint32_t ControlClient::poll(ControlEvents& events) noexcept {
  std::uint32_t count = 0;
  while (!is_alone() && !stopped_) {
    const Read read = read_frame();
    if (read == Read::nothing) {
      break;
    }
    ++count;
    if (read != Read::frame || !handle_frame(events)) {
      stopped_ = true;
      events.on_stop();
    }
  }
  return count;
}

bool ControlClient::handle_frame(ControlEvents& events) {
  switch (header_.kind) {
    case FrameKind::peer_lost: {
      Result<std::uint32_t> node = decode_index(body());
      if (!node || node.value() >= job_.map.node_count) {
        return false;
      }
      events.on_peer_lost(node.value());
      return true;
    }
    case FrameKind::ask_status:
      events.on_status_wanted();
      return true;
    case FrameKind::explain: {
      Result<WayQuestion> question = decode_explain(body());
      if (!question || question.value().node >= job_.map.node_count) {
        return false;
      }
      events.on_way_wanted(question.value());
      return true;
    }
    case FrameKind::moved: {
      Result<RankMove> move = decode_moved(body());
      if (!move || move.value().rank >= job_.map.rank_count ||
          move.value().node >= job_.map.node_count) {
        return false;
      }
      events.on_rank_moved(move.value());
      return true;
    }
    case FrameKind::flush: {
      Result<std::uint32_t> number = decode_index(body());
      events.on_flush_ordered(number ? number.value() : 0);
      return number.has_value();
    }
    case FrameKind::move: {
      Result<MoveOrder> order = decode_move(body());
      if (!order || order.value().rank >= job_.map.rank_count ||
          order.value().node >= job_.map.node_count) {
        return false;
      }
      events.on_move_ordered(order.value().rank, order.value().node);
      return true;
    }
    default:
      return false;  // stop, or what has no place here.
  }
}

}  // namespace sterna::runtime
