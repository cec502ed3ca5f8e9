// Sending through an inbox, and copying straight into another process.
#include "net/drivers/shm/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/check.h"
#include "net/buffer.h"
#include "net/drivers/shm/doorbell.h"

namespace sterna::net::shm {
namespace {

constexpr std::size_t kVectorsMax = 64;  // Of one process_vm_writev.

void copy_pieces(std::byte* to, std::span<const Piece> pieces) noexcept {
  for (const Piece& piece : pieces) {
    copy_bytes(to, piece.data(), piece.size());
    to += piece.size();
  }
}

/// The last first. Into a cell: its receiver looks at the first line all the time, and takes it
/// away from who waits for another one behind it.
void copy_pieces_from_end(std::byte* end, std::span<const Piece> pieces) noexcept {
  for (std::size_t i = pieces.size(); i-- != 0;) {
    end -= pieces[i].size();
    copy_bytes(end, pieces[i].data(), pieces[i].size());
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

/// A place in a sequence of pieces; makes io vectors of what follows it.
template <typename Sequence>
class Cursor {
 public:
  explicit Cursor(std::span<const Sequence> pieces) noexcept : pieces_{pieces} {}

  std::size_t fill(std::array<iovec, kVectorsMax>& vectors) const noexcept {
    std::size_t count = 0;
    std::uint64_t skip = done_;
    for (std::size_t i = next_; i < pieces_.size() && count < kVectorsMax; ++i) {
      vectors[count++] = {.iov_base = address(pieces_[i], skip),
                          .iov_len = length(pieces_[i]) - skip};
      skip = 0;
    }
    return count;
  }
  void advance(std::uint64_t bytes) noexcept {
    while (next_ < pieces_.size() && bytes >= length(pieces_[next_]) - done_) {
      bytes -= length(pieces_[next_++]) - done_;
      done_ = 0;
    }
    done_ += bytes;
  }
  [[nodiscard]] bool at_end() const noexcept { return next_ == pieces_.size(); }

 private:
  static std::uint64_t length(const Piece& piece) noexcept { return piece.size(); }
  static std::uint64_t length(const RemotePiece& piece) noexcept { return piece.bytes; }
  static void* address(const Piece& piece, std::uint64_t skip) noexcept {
    return const_cast<std::byte*>(piece.data()) + skip;
  }
  static void* address(const RemotePiece& piece, std::uint64_t skip) noexcept {
    return reinterpret_cast<void*>(piece.address + skip);
  }

  std::span<const Sequence> pieces_;
  std::size_t next_ = 0;
  std::uint64_t done_ = 0;  // Of pieces_[next_].
};

}  // namespace

SendState ShmChannel::try_send(std::span<const Piece> pieces) noexcept {
  const std::size_t bytes = bytes_of(pieces);
  check(bytes > 0 && bytes <= self_->pool->chunk_bytes(),
        "a packet has between 1 and packet_bytes_max bytes");
  check(pieces.size() <= kPacketPiecesMax, "a packet has at most kPacketPiecesMax pieces");
  if (is_lost() || self_->is_closed.load(std::memory_order_relaxed) || has_closed()) [[unlikely]] {
    return SendState::closed;
  }
  bool must_ring = false;
  const SendState sent = bytes <= kInlineBytesMax ? send_inline(pieces, bytes, must_ring)
                                                  : send_bulk(pieces, bytes, must_ring);
  if (must_ring) [[unlikely]] {
    ring();
  }
  return sent;
}

inline void ShmChannel::publish(std::uint32_t ticket, std::uint32_t kind,
                                bool& must_ring) noexcept {
  inbox_.publish(ticket, self_->local_index, kind);
  // A hint: what has come here since the last one may be of anybody.
  const std::uint32_t taken = self_->segment->taken.load(std::memory_order_relaxed);
  if (taken == taken_before_ || self_->is_behind.load(std::memory_order_relaxed)) {
    inbox_.fetch_after(ticket, kind);
  } else {
    inbox_.fetch_rest(ticket, kind);
  }
  taken_before_ = taken;
  ringer_fence(segment_->state.load(std::memory_order_relaxed));
  if (is_refused_.load(std::memory_order_relaxed)) [[unlikely]] {
    is_refused_.store(false, std::memory_order_relaxed);
  }
  if (is_asleep(*segment_)) [[unlikely]] {
    must_ring = true;
  }
}

SendState ShmChannel::send_inline(std::span<const Piece> pieces, std::size_t bytes,
                                  bool& must_ring) noexcept {
  std::uint32_t ticket;
  if (!inbox_.try_claim(ticket)) {
    return refuse_full();
  }
  copy_pieces_from_end(inbox_.payload(ticket) + bytes, pieces);
  publish(ticket, static_cast<std::uint32_t>(bytes), must_ring);
  return SendState::accepted;
}

SendState ShmChannel::send_bulk(std::span<const Piece> pieces, std::size_t bytes,
                                bool& must_ring) noexcept {
  if (!inbox_.has_room()) {
    return refuse_full();  // Before the copy, which would be in vain.
  }
  RecentChunks::Entry chunk;
  const SendState state = begin_filling(chunk, bytes);
  if (state != SendState::accepted) {
    return state == SendState::full ? refuse_full() : state;
  }
  copy_pieces(Segment::bytes_of(head_of(chunk)), pieces);
  return send_chunk(chunk, static_cast<std::uint32_t>(bytes), must_ring);
}

SendState ShmChannel::begin_filling(RecentChunks::Entry& chunk, std::size_t bytes) noexcept {
  is_filling_.store(true, std::memory_order_relaxed);
  ringer_fence(segment_->state.load(std::memory_order_relaxed));
  const SendState state = is_lost()                   ? SendState::closed
                          : try_acquire(chunk, bytes) ? SendState::accepted
                                                      : SendState::full;
  if (state != SendState::accepted) [[unlikely]] {
    end_filling();
  }
  return state;
}

void ShmChannel::end_filling() noexcept {
  is_filling_.store(false, std::memory_order_release);  // E.
  ringer_fence(segment_->state.load(std::memory_order_relaxed));
  if (is_lost()) [[unlikely]] {
    self_->pool->reclaim(peer_.local_index);
  }
}

bool ShmChannel::try_acquire(RecentChunks::Entry& chunk, std::size_t bytes) noexcept {
  if (const std::uint32_t fills = fills_.load(std::memory_order_relaxed); fills < kChunkCountMax)
      [[unlikely]] {
    fills_.store(fills + 1, std::memory_order_relaxed);
  }
  while (recent_.pop(chunk)) {
    std::uint16_t idle =
        chunk.is_theirs ? idle_at(self_->local_index) : idle_at_home(peer_.local_index);
    if (head_of(chunk).idle.compare_exchange_strong(idle, 0, std::memory_order_acquire,
                                                    std::memory_order_relaxed)) {
      return true;
    }
  }
  const std::uint32_t own = self_->pool->try_acquire(peer_.local_index, bytes);
  if (const std::uint32_t in_use = self_->pool->in_use(); in_use != in_use_) [[unlikely]] {
    in_use_ = in_use;
    fills_.store(0, std::memory_order_relaxed);
  }
  const std::uint32_t crowded = crowded_.load(std::memory_order_relaxed);
  crowded_.store(self_->pool->is_crowded() ? std::min(crowded + 1, kCrowdedMax) : 0,
                 std::memory_order_relaxed);
  chunk = {.chunk = static_cast<std::uint16_t>(own), .is_theirs = false, .comes_back = false};
  return own != BulkPool::kNone;
}

void ShmChannel::release_unsent(RecentChunks::Entry chunk) noexcept {
  if (!chunk.is_theirs) {
    self_->pool->release_unsent(chunk.chunk);
    return;
  }
  head_of(chunk).idle.store(idle_at(self_->local_index), std::memory_order_release);
  shm::ring(peer_.bell_fd);  // It may have found no chunk meanwhile, and sleep until it has room.
}

SendState ShmChannel::send_chunk(RecentChunks::Entry chunk, std::uint32_t bytes,
                                 bool& must_ring) noexcept {
  std::uint32_t ticket;
  if (!inbox_.try_claim(ticket)) {
    release_unsent(chunk);
    end_filling();
    return refuse_full();
  }
  const BulkReference reference{.chunk = chunk.chunk | (chunk.is_theirs ? kOfReceiver : 0) |
                                         (chunk.comes_back ? kComesBack : 0),
                                .bytes = bytes};
  std::memcpy(inbox_.payload(ticket), &reference, sizeof reference);
  publish(ticket, kBulk, must_ring);
  end_filling();
  return SendState::accepted;
}

std::byte* ShmChannel::try_place(std::uint32_t bytes) noexcept {
  if (is_lost() || self_->is_closed.load(std::memory_order_relaxed) || has_closed()) [[unlikely]] {
    return nullptr;
  }
  placed_.bytes = bytes;
  if (bytes > kInlineBytesMax) {
    return place_bulk(bytes);
  }
  return inbox_.try_claim(placed_.ticket) ? inbox_.payload(placed_.ticket) : nullptr;
}

std::byte* ShmChannel::place_bulk(std::uint32_t bytes) noexcept {
  if (bytes > self_->pool->chunk_bytes() || !inbox_.has_room()) {
    return nullptr;
  }
  return begin_filling(placed_.chunk, bytes) == SendState::accepted
             ? Segment::bytes_of(head_of(placed_.chunk))
             : nullptr;
}

SendState ShmChannel::send_placed(bool& must_ring) noexcept {
  if (placed_.bytes > kInlineBytesMax) {
    return send_chunk(placed_.chunk, placed_.bytes, must_ring);
  }
  publish(placed_.ticket, placed_.bytes, must_ring);
  return SendState::accepted;
}

void ShmChannel::ring() noexcept {
  ring_asleep(*segment_, peer_.bell_fd);
}

SendState ShmChannel::refuse_full() noexcept {
  is_refused_.store(true, std::memory_order_relaxed);
  return SendState::full;
}

void ShmChannel::want_room() noexcept {
  const std::uint32_t index = self_->local_index;
  segment_->room_waiters[index / 64].fetch_or(std::uint64_t{1} << (index % 64),
                                              std::memory_order_acq_rel);
  segment_->is_room_wanted.store(1, std::memory_order_release);  // C: the bit is set.
}

bool ShmChannel::take_room() noexcept {
  std::atomic<std::uint64_t> no_claim{0};
  InboxSender look{*segment_, no_claim};  // Its own: the sender's may be in use.
  const bool has_news =
      is_lost() || has_closed() || (look.has_room() && self_->pool->has_room(peer_.local_index));
  if (has_news) {
    is_refused_.store(false, std::memory_order_relaxed);
  }
  return has_news;
}

int ShmChannel::watch() noexcept {
  const std::uint32_t pid = segment_->pid.load(std::memory_order_relaxed);
  const long fd = pid == 0 ? -1 : raw_system_call(SYS_pidfd_open, static_cast<long>(pid), 0);
  process_ = FileDescriptor{static_cast<int>(std::max(fd, -1L))};
  return static_cast<int>(fd);
}

void ShmChannel::mark_lost(bool has_membarrier) noexcept {
  is_lost_.store(true, std::memory_order_relaxed);
  sleeper_fence(has_membarrier);
  if (!is_filling_.load(std::memory_order_acquire)) {  // Pairs with E.
    self_->pool->reclaim(peer_.local_index);
  }
}

Result<> ShmChannel::open_direct(const DirectAddress& address) noexcept {
  std::uint64_t seen = 0;
  const iovec here{.iov_base = &seen, .iov_len = sizeof seen};
  const iovec there{.iov_base = reinterpret_cast<void*>(address.cookie_address),
                    .iov_len = sizeof seen};
  const long count =
      raw_system_call(SYS_process_vm_readv, address.pid, reinterpret_cast<long>(&here), 1,
                      reinterpret_cast<long>(&there), 1, 0);
  if (count < 0) {
    return system_error("the system forbids copies between processes (process_vm_writev)",
                        static_cast<int>(-count));
  }
  if (count != sizeof seen || seen != address.cookie) {
    return Error{Errc::refused, "process " + std::to_string(address.pid) + " is not that node"};
  }
  direct_pid_.store(address.pid, std::memory_order_relaxed);
  return Done{};
}

Result<> ShmChannel::write_remote(std::span<const Piece> local,
                                  std::span<const RemotePiece> remote) noexcept {
  const std::uint32_t pid = direct_pid_.load(std::memory_order_relaxed);
  if (pid == 0) {
    return Errc::unsupported;
  }
  if (is_lost()) {
    return Errc::closed;
  }
  Cursor<Piece> from{local};
  Cursor<RemotePiece> to{remote};
  from.advance(0);  // Past empty pieces.
  to.advance(0);
  while (!from.at_end() && !to.at_end()) {
    std::array<iovec, kVectorsMax> here;
    std::array<iovec, kVectorsMax> there;
    const std::size_t here_count = from.fill(here);
    const std::size_t there_count = to.fill(there);
    const long count =
        raw_system_call(SYS_process_vm_writev, static_cast<long>(pid),
                        reinterpret_cast<long>(here.data()), static_cast<long>(here_count),
                        reinterpret_cast<long>(there.data()), static_cast<long>(there_count), 0);
    if (count <= 0) {
      if (count == -EPERM || count == -ENOSYS || count == -EACCES) {
        is_write_forbidden_.store(true, std::memory_order_relaxed);
      }
      return copy_error("write into", count);
    }
    from.advance(static_cast<std::uint64_t>(count));
    to.advance(static_cast<std::uint64_t>(count));
  }
  check(from.at_end() && to.at_end(), "both sides of a remote write have the same length");
  return Done{};
}

Result<> ShmChannel::read_remote(std::byte* into, RemotePiece from) noexcept {
  const std::uint32_t pid = direct_pid_.load(std::memory_order_relaxed);
  if (pid == 0) {
    return Errc::unsupported;
  }
  if (is_lost()) {
    return Errc::closed;
  }
  while (from.bytes != 0) {
    const iovec here{.iov_base = into, .iov_len = from.bytes};
    const iovec there{.iov_base = reinterpret_cast<void*>(from.address), .iov_len = from.bytes};
    const long count =
        raw_system_call(SYS_process_vm_readv, static_cast<long>(pid), reinterpret_cast<long>(&here),
                        1, reinterpret_cast<long>(&there), 1, 0);
    if (count <= 0) {
      return copy_error("read", count);
    }
    into += count;
    from.address += static_cast<std::uint64_t>(count);
    from.bytes -= static_cast<std::uint64_t>(count);
  }
  return Done{};
}

bool ShmChannel::ring_absent(bool is_long) noexcept {
  std::atomic<std::uint32_t>& flag = segment_->absence;
  std::uint32_t away = flag.load(std::memory_order_relaxed);
  const bool is_to_wake = away == AbsenceFlag::kAway || away == AbsenceFlag::kAwayByBell ||
                          (is_long && away == AbsenceFlag::kAwayForMoment);
  if (!is_to_wake ||
      !flag.compare_exchange_strong(away, AbsenceFlag::kRung, std::memory_order_acq_rel)) {
    return false;
  }
  if (away == AbsenceFlag::kAwayByBell) {
    shm::ring(peer_.bell_fd);
  } else {
    raw_system_call(SYS_futex, reinterpret_cast<long>(&flag), FUTEX_WAKE, 1);
  }
  return true;
}

PeerIs ShmChannel::peer_is() const noexcept {
  if (segment_->absence.load(std::memory_order_relaxed) != AbsenceFlag::kPresent) {
    return PeerIs::away;
  }
  const bool is_asleep = (segment_->state.load(std::memory_order_relaxed) & kAsleep) != 0;
  return is_asleep ? PeerIs::asleep : PeerIs::at_hand;
}

Error ShmChannel::copy_error(const char* what, long result) const noexcept {
  if (result == -ESRCH) {
    return Error{Errc::closed, "its process has ended"};
  }
  Error error = system_error(std::string{"cannot "} + what + " the memory of node " +
                                 std::to_string(peer_.node) + " (process " +
                                 std::to_string(direct_pid_.load(std::memory_order_relaxed)) + ")",
                             result == 0 ? EFAULT : static_cast<int>(-result));
  error.code = Errc::refused;
  return error;
}

}  // namespace sterna::net::shm
