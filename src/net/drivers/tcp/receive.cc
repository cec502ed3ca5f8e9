// What the socket of a channel has: received into the memory of its reader, or, of long packets,
// where their bytes belong.
#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/syscall.h>
#include <sys/uio.h>

#include "net/drivers/tcp/driver.h"

namespace sterna::net::tcp {
namespace {

long receive_bytes(int fd, std::span<std::byte> room) noexcept {
  long got;
  do {
    got = raw_system_call(SYS_recvfrom, fd, reinterpret_cast<long>(room.data()),
                          static_cast<long>(room.size()), MSG_DONTWAIT, 0, 0);
  } while (got == -EINTR);
  return got;
}

long receive_parts(int fd, std::span<std::byte> first, std::span<std::byte> second) noexcept {
  std::array<iovec, 2> vectors{{{.iov_base = first.data(), .iov_len = first.size()},
                                {.iov_base = second.data(), .iov_len = second.size()}}};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  long got;
  do {
    got = raw_system_call(SYS_recvmsg, fd, reinterpret_cast<long>(&message), MSG_DONTWAIT);
  } while (got == -EINTR);
  return got;
}

}  // namespace

void TcpDriver::receive(TcpChannel& channel, PacketSink& sink) noexcept {
  FrameReader& reader = channel.reader;
  if (reader.has_place() || reader.may_have_place()) {
    // Asked each time: between two polls the place may have ceased to be.
    const std::span<std::byte> place =
        channel.is_place_lost ? std::span<std::byte>{}
                              : sink.place(channel.node(), reader.head(), reader.packet_bytes());
    if (reader.has_place()) {
      channel.is_place_lost = place.empty();
    } else if (!place.empty()) {
      reader.begin_placed(place);
    }
    if (reader.has_place()) {
      receive_long(channel, place);
      return;
    }
  }
  const std::span<std::byte> room = reader.room();
  const long got = receive_bytes(channel.socket(), room);
  if (take_result(channel, got)) {
    reader.filled(static_cast<std::size_t>(got));
  }
}

void TcpDriver::receive_long(TcpChannel& channel, std::span<std::byte> place) noexcept {
  FrameReader& reader = channel.reader;
  if (channel.is_place_lost) {
    receive_between(channel, {});
    return;
  }
  const std::span<std::byte> missing = reader.missing(place);
  const long got = receive_parts(channel.socket(), missing, reader.room_behind());
  if (got == -EFAULT) {
    // Memory that its owner makes writable when it is touched: here that is a signal's doing.
    receive_between(channel, missing);
  } else if (take_result(channel, got)) {
    reader.filled_placed(static_cast<std::size_t>(got));
  }
}

/// By way of the reader's memory, to `place` or to nowhere.
void TcpDriver::receive_between(TcpChannel& channel, std::span<std::byte> place) noexcept {
  const std::span<std::byte> room = channel.reader.room_between();
  const long got = receive_bytes(channel.socket(), room);
  if (!take_result(channel, got)) {
    return;
  }
  const auto bytes = static_cast<std::size_t>(got);
  std::copy_n(room.begin(), std::min(bytes, place.size()), place.begin());
  channel.reader.passed_between(bytes);
}

void TcpDriver::end_placed(TcpChannel& channel, PacketSink& sink) noexcept {
  if (!channel.is_place_lost) {
    sink.on_placed(channel.node(), channel.reader.head(), channel.reader.packet_bytes());
  }
  channel.is_place_lost = false;
  channel.reader.end_placed();
}

bool TcpDriver::take_result(TcpChannel& channel, long got) noexcept {
  if (got > 0) {
    channel.is_readable = true;
    channel.empty_reads = 0;
    return true;
  }
  channel.is_readable = false;
  if (got == -EAGAIN) {
    ++channel.empty_reads;
  } else if (got == 0) {
    end(channel, "its end of the connection was closed: has its process ended?");
  } else {
    end(channel, error_number_text(static_cast<int>(-got)));
  }
  return false;
}

}  // namespace sterna::net::tcp
