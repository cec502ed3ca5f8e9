// Writes packets to a socket without waiting; keeps only what the kernel did not take.
#include "net/drivers/tcp/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/check.h"

namespace sterna::net::tcp {
namespace {

constexpr std::size_t kGatherBytesMax = 1024;  // Up to here one copy and send() beat sendmsg().
constexpr std::size_t kLongPieceBytes = 4096;  // Shorter ones may lie as they do.

long send_bytes(int fd, const std::byte* bytes, std::size_t count) noexcept {
  long sent;
  do {
    sent = raw_system_call(SYS_sendto, fd, reinterpret_cast<long>(bytes), static_cast<long>(count),
                           MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
  } while (sent == -EINTR);
  return sent;
}

long send_vectors(int fd, std::span<iovec> vectors) noexcept {
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  long sent;
  do {
    sent = raw_system_call(SYS_sendmsg, fd, reinterpret_cast<long>(&message),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent == -EINTR);
  return sent;
}

iovec vector_of(std::span<const std::byte> bytes) noexcept {
  return {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
}

/// For the first long piece of packets that are sent in one call.
std::size_t padding_of(std::span<const std::span<const Piece>> packets) noexcept {
  std::size_t before = 0;
  for (const std::span<const Piece>& packet : packets) {
    before += kLengthBytes;
    for (const Piece& piece : packet) {
      if (piece.size() >= kLongPieceBytes) {
        return padding_before(before, piece.data());
      }
      before += piece.size();
    }
  }
  return 0;
}

long send_pieces(int fd, const FrameStart& start, std::span<const Piece> pieces) noexcept {
  std::array<iovec, kPacketPiecesMax + 1> vectors;
  vectors[0] = vector_of(start.bytes());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    vectors[i + 1] = vector_of(pieces[i]);
  }
  return send_vectors(fd, {vectors.data(), pieces.size() + 1});
}

long send_gathered(int fd, const FrameStart& start, std::span<const Piece> pieces) noexcept {
  std::array<std::byte, kLengthBytes + kGatherBytesMax> frame;
  std::memcpy(frame.data(), start.bytes().data(), kLengthBytes);
  std::byte* to = frame.data() + kLengthBytes;
  for (const Piece& piece : pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  return send_bytes(fd, frame.data(), static_cast<std::size_t>(to - frame.data()));
}

}  // namespace

SendState TcpChannel::try_send(std::span<const Piece> pieces) noexcept {
  const std::size_t bytes = bytes_of(pieces);
  check(bytes > 0 && bytes <= packet_bytes_max_,
        "a packet has between 1 and packet_bytes_max bytes");
  check(pieces.size() <= kPacketPiecesMax, "a packet has at most kPacketPiecesMax pieces");
  if (state() >= State::ending || is_closed_.load(std::memory_order_relaxed)) [[unlikely]] {
    return SendState::closed;
  }
  SendState result = SendState::full;
  if (try_own()) {
    result = send_owned(pieces, bytes);
    disown();
  }
  if (result == SendState::full) {
    is_refused_.store(true, std::memory_order_relaxed);
  }
  return result;
}

SendState TcpChannel::send_owned(std::span<const Piece> pieces, std::size_t bytes) noexcept {
  const State now = state_.load(std::memory_order_seq_cst);  // After O, for is_in_use().
  if (now >= State::ending || is_closed_.load(std::memory_order_relaxed)) {
    return SendState::closed;
  }
  if (now == State::idle) {
    const bool fits = unsent_.size() + kLengthBytes + bytes <= 2 * packet_bytes_max_;
    if (!fits) {
      return SendState::full;
    }
    // Sent by the poller, which sees waiting_bytes_ when it has adopted.
    append(FrameStart{static_cast<std::uint32_t>(bytes), 0}, pieces, 0);
    return SendState::accepted;
  }
  if (sent_ != unsent_.size()) {
    const Flush flushed = flush_owned();
    if (flushed != Flush::done) {
      return SendState::full;  // When it is broken the poller finds out, after what did arrive.
    }
  }
  const bool is_short = bytes <= kGatherBytesMax;
  const FrameStart start{static_cast<std::uint32_t>(bytes),
                         is_short ? 0 : padding_of({&pieces, 1})};
  const long sent = is_short ? send_gathered(socket_.get(), start, pieces)
                             : send_pieces(socket_.get(), start, pieces);
  mind();
  if (sent == static_cast<long>(start.bytes().size() + bytes)) [[likely]] {
    return SendState::accepted;
  }
  if (sent < 0 && sent != -EAGAIN) {
    return SendState::full;  // As above.
  }
  // Kept even when the kernel took nothing: only a channel with bytes that wait answers `full`, and
  // whose socket will ring.
  append(start, pieces, static_cast<std::size_t>(std::max(sent, 0L)));
  return SendState::accepted;
}

std::size_t TcpChannel::try_send_several(std::span<const std::span<const Piece>> packets,
                                         SendState& state) noexcept {
  state = SendState::full;
  if (!try_own()) {
    is_refused_.store(true, std::memory_order_relaxed);
    return 0;
  }
  state = SendState::accepted;
  std::size_t count = 0;
  // Sequentially consistent: as in send_owned().
  if (state_.load(std::memory_order_seq_cst) == State::open &&
      !is_closed_.load(std::memory_order_relaxed) &&
      (sent_ == unsent_.size() || flush_owned() == Flush::done)) {
    count = send_several_owned(packets);
  }
  while (count < packets.size()) {
    state = send_owned(packets[count], bytes_of(packets[count]));
    if (state != SendState::accepted) {
      break;
    }
    ++count;
  }
  disown();
  if (state == SendState::full) {
    is_refused_.store(true, std::memory_order_relaxed);
  }
  return count;
}

/// Nothing waits. Of the packet of which the kernel took a part the rest is kept.
std::size_t TcpChannel::send_several_owned(
    std::span<const std::span<const Piece>> packets) noexcept {
  std::array<std::optional<FrameStart>, kPacketsAtOnceMax> starts;
  std::array<std::uint32_t, kPacketsAtOnceMax> lengths;
  std::array<iovec, kPacketsAtOnceMax + kPacketPiecesMax> vectors;
  std::size_t vector_count = 0;
  check(packets.size() <= starts.size(), "as many packets at once as it takes");
  for (std::size_t i = 0; i < packets.size(); ++i) {
    lengths[i] = static_cast<std::uint32_t>(bytes_of(packets[i]));
    check(lengths[i] > 0 && lengths[i] <= packet_bytes_max_,
          "a packet has between 1 and packet_bytes_max bytes");
    check(vector_count + 1 + packets[i].size() <= vectors.size(),
          "packets sent at once have at most kPacketPiecesMax pieces");
    starts[i].emplace(lengths[i], i == 0 ? padding_of(packets) : 0);
    vectors[vector_count++] = vector_of(starts[i]->bytes());
    for (const Piece& piece : packets[i]) {
      vectors[vector_count++] = vector_of(piece);
    }
  }
  long sent = send_vectors(socket_.get(), {vectors.data(), vector_count});
  mind();
  std::size_t count = 0;
  while (sent > 0) {
    const std::size_t whole = starts[count]->bytes().size() + std::size_t{lengths[count]};
    if (sent < static_cast<long>(whole)) {
      append(*starts[count], packets[count], static_cast<std::size_t>(sent));
    }
    sent -= static_cast<long>(whole);
    ++count;
  }
  return count;
}

void TcpChannel::append(const FrameStart& start, std::span<const Piece> pieces,
                        std::size_t skip) noexcept {
  if (unsent_.capacity() == 0) {
    unsent_.reserve(2 * (std::size_t{packet_bytes_max_} + kStartBytesMax));
  }
  const auto add = [&](std::span<const std::byte> piece) {
    const std::size_t skipped = std::min(skip, piece.size());
    skip -= skipped;
    piece = piece.subspan(skipped);
    unsent_.insert(unsent_.end(), piece.begin(), piece.end());
  };
  add(start.bytes());
  for (const Piece& piece : pieces) {
    add(piece);
  }
  note_waiting();
}

void TcpChannel::note_waiting() noexcept {
  const std::size_t bytes = unsent_.size() - sent_;
  const bool was_any = waiting_bytes_.load(std::memory_order_relaxed) != 0;
  waiting_bytes_.store(bytes, std::memory_order_relaxed);
  if (kept_ != nullptr && was_any != (bytes != 0)) {
    bytes != 0 ? kept_->add() : kept_->remove();
  }
}

TcpChannel::Flush TcpChannel::flush_owned() noexcept {
  while (sent_ < unsent_.size()) {
    const long sent = send_bytes(socket_.get(), unsent_.data() + sent_, unsent_.size() - sent_);
    if (sent < 0) {
      return sent == -EAGAIN ? Flush::waiting : Flush::broken;
    }
    mind();
    sent_ += static_cast<std::size_t>(sent);
    note_waiting();
  }
  unsent_.clear();
  sent_ = 0;
  return Flush::done;
}

void TcpChannel::begin_to_mind() noexcept {
  is_minded_.store(true, std::memory_order_relaxed);
  silence_timer_->begin();  // M.
}

TcpChannel::Flush TcpChannel::flush() noexcept {
  if (state() != State::open || waiting_bytes_.load(std::memory_order_relaxed) == 0) {
    return Flush::done;
  }
  if (!try_own()) {
    return Flush::busy;
  }
  const Flush flushed = flush_owned();
  disown();
  return flushed;
}

bool TcpChannel::adopt(FileDescriptor socket, std::uint64_t connection) noexcept {
  check(state() == State::idle, "a channel takes one connection");
  if (!reader.init(packet_bytes_max_)) {
    return false;
  }
  socket_ = std::move(socket);
  connection_ = connection;
  is_place_lost = false;
  silence = {};
  state_.store(State::open, std::memory_order_release);
  return true;
}

bool TcpChannel::queue_end() noexcept {
  if (has_queued_end_ || state() != State::open) {
    return true;
  }
  if (!try_own()) {
    return false;
  }
  has_queued_end_ = true;
  const std::uint32_t mark = kEndMark;
  const auto bytes = std::as_bytes(std::span{&mark, 1});
  unsent_.insert(unsent_.end(), bytes.begin(), bytes.end());
  note_waiting();
  flush_owned();
  disown();
  return true;
}

void TcpChannel::end(std::string_view reason) noexcept {
  reason_ = reason;
  state_.store(State::ending, std::memory_order_release);
}

bool TcpChannel::finish() noexcept {
  if (!try_own()) {
    return false;
  }
  socket_ = FileDescriptor{};
  unsent_ = {};
  sent_ = 0;
  note_waiting();
  state_.store(State::ended, std::memory_order_release);
  disown();
  return true;
}

bool TcpChannel::revive() noexcept {
  check(state() == State::ended, "what is revived has ended");
  if (!try_own()) {
    return false;
  }
  // Whoever owns it after us sees `idle` and an empty buffer; finish() has emptied it.
  reason_.clear();
  state_.store(State::idle, std::memory_order_release);
  disown();
  return true;
}

bool TcpChannel::take_room() noexcept {
  if (!is_refused_.load(std::memory_order_relaxed)) {
    return false;
  }
  // While bytes wait, the socket rings when it takes more.
  if (state() < State::ending && waiting_bytes_.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  is_refused_.store(false, std::memory_order_relaxed);
  return true;
}

bool TcpChannel::is_drained() const noexcept {
  if (waiting_bytes_.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  int in_kernel = 0;
  return !socket_.is_open() || ::ioctl(socket_.get(), SIOCOUTQ, &in_kernel) != 0 || in_kernel == 0;
}

}  // namespace sterna::net::tcp
