// The way from this node to one node of the same host, through that node's inbox.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/syscall.h"
#include "net/driver.h"
#include "net/drivers/shm/bulk_pool.h"
#include "net/drivers/shm/inbox.h"
#include "net/drivers/shm/recent_chunks.h"
#include "net/drivers/shm/segment.h"

namespace sterna::net::shm {

/// What a node tells the others of its host about itself (Driver::address).
struct DirectAddress {
  std::uint32_t pid;
  std::uint32_t version;
  std::uint64_t cookie_address;  // Where in that process the cookie is...
  std::uint64_t cookie;          // ...so that a copy can prove that it reads the right process.
};
inline constexpr std::uint32_t kAddressVersion = 0x354d4853;  // "SHM5"

/// What all channels of a node share. Constant after open, but for flags.
struct NodeSide {
  std::uint32_t local_index;
  Segment* segment;
  BulkPool* pool;
  std::atomic<bool> is_closed{false};  // Relaxed: a late sender's packet is only a little late.
  // Relaxed, a hint: the last packet that was looked for had come before. Who sent it is ahead of
  // us, and hardly looks for our answer already.
  std::atomic<bool> is_behind{false};
};

/// A peer of this host, as sender, as receiver, and as a process that may end.
class ShmChannel final : public Channel {
 public:
  struct Peer {
    std::uint32_t node;         // In the job.
    std::uint32_t local_index;  // On the host.
    int bell_fd;
  };

  ShmChannel(NodeSide& self, Peer peer, SegmentMapping mapping) noexcept
      : self_{&self},
        peer_{peer},
        segment_{std::move(mapping)},
        inbox_{*segment_, self.segment->claims[peer.local_index]} {}

  [[nodiscard]] SendState try_send(std::span<const Piece> pieces) noexcept override;

  [[nodiscard]] std::byte* try_place(std::uint32_t bytes) noexcept override;
  [[nodiscard]] SendState send_placed(bool& must_ring) noexcept override;
  void ring() noexcept override;

  [[nodiscard]] bool can_write_remote() const noexcept override {
    return direct_pid_.load(std::memory_order_relaxed) != 0 &&
           !is_write_forbidden_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool are_copies_refused() const noexcept override {
    return are_copies_refused_.load(std::memory_order_relaxed);
  }
  Result<> write_remote(std::span<const Piece> local,
                        std::span<const RemotePiece> remote) noexcept override;
  Result<> read_remote(std::byte* into, RemotePiece from) noexcept override;

  [[nodiscard]] bool is_read_as_ours() const noexcept override { return comes_back_; }
  [[nodiscard]] bool is_settled() const noexcept override {
    return fills_.load(std::memory_order_relaxed) >= kChunkCountMax;
  }
  [[nodiscard]] bool is_receiver_behind() const noexcept override {
    const std::uint32_t crowded = crowded_.load(std::memory_order_relaxed);
    return crowded != 0 && crowded != kCrowdedMax;
  }

  bool ring_absent(bool is_long) noexcept override;
  [[nodiscard]] PeerIs peer_is() const noexcept override;
  [[nodiscard]] InvitationBoard* invitations() noexcept override { return &segment_->invitations; }

  /// Asks the system whether this process may copy to and from the peer's. Fails with why not.
  Result<> open_direct(const DirectAddress& address) noexcept;
  [[nodiscard]] bool is_direct_tried() const noexcept {
    return is_direct_tried_.load(std::memory_order_relaxed);
  }
  void refuse_copies() noexcept { are_copies_refused_.store(true, std::memory_order_relaxed); }
  void note_direct_tried() noexcept { is_direct_tried_.store(true, std::memory_order_relaxed); }

  [[nodiscard]] const Peer& peer() const noexcept { return peer_; }
  [[nodiscard]] Segment& segment() noexcept { return *segment_; }

  // The rest is the poller's.

  /// A packet of the peer in a chunk is going to be read.
  void note_coming(RecentChunks::Entry entry) noexcept { comes_back_ = entry.comes_back; }
  /// The packet in a chunk was the peer's and is read: what is sent to the peer may go there. Not
  /// where the peer cuts its chunks otherwise than this node.
  void note_read(RecentChunks::Entry entry) noexcept { recent_.push(entry); }

  /// Whether a sender has been told `full` since the last accepted packet or true take_room().
  [[nodiscard]] bool is_refused() const noexcept {
    return is_refused_.load(std::memory_order_relaxed);
  }
  /// Asks the peer to ring when it has made room, in its inbox or of the chunks that it holds; a
  /// fence and take_room() must follow, of who was refused.
  void want_room() noexcept;
  /// Whether a refused sender may try again; says it once.
  [[nodiscard]] bool take_room() noexcept;

  /// Watches the process for its end: a descriptor for poll/epoll, or -1 when there is none.
  int watch() noexcept;
  void unwatch() noexcept { process_ = FileDescriptor{}; }
  [[nodiscard]] bool is_watched() const noexcept { return process_.is_open(); }

  /// No more packets go this way; the chunks that the peer holds are this node's again.
  ///
  /// A sender may be filling one of them. It says so, fences, and looks whether the peer is lost;
  /// here the loss is told, a fence passed, and then its word read: one of both sees the other's,
  /// so whoever is last takes the chunks back, and none before it is filled. The fences are those
  /// of doorbell.h, so the sender's costs nothing (all interleavings: lost_model_test.cc).
  void mark_lost(bool has_membarrier) noexcept;
  [[nodiscard]] bool is_lost() const noexcept { return is_lost_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool has_closed() noexcept {
    return (segment_->state.load(std::memory_order_acquire) & kClosed) != 0;
  }

 private:
  [[nodiscard]] Error copy_error(const char* what, long result) const noexcept;
  [[nodiscard]] SendState send_inline(std::span<const Piece> pieces, std::size_t bytes,
                                      bool& must_ring) noexcept;
  [[nodiscard]] SendState send_bulk(std::span<const Piece> pieces, std::size_t bytes,
                                    bool& must_ring) noexcept;
  [[nodiscard]] SendState send_chunk(RecentChunks::Entry chunk, std::uint32_t bytes,
                                     bool& must_ring) noexcept;
  /// `accepted`: the sender has `chunk`, until end_filling().
  [[nodiscard]] SendState begin_filling(RecentChunks::Entry& chunk,
                                        std::size_t bytes) noexcept;
  void end_filling() noexcept;
  [[nodiscard]] bool try_acquire(RecentChunks::Entry& chunk, std::size_t bytes) noexcept;
  void release_unsent(RecentChunks::Entry chunk) noexcept;
  [[nodiscard]] ChunkHead& head_of(RecentChunks::Entry chunk) noexcept {
    const std::uint32_t bytes = self_->pool->chunk_bytes();
    return (chunk.is_theirs ? *segment_ : *self_->segment).chunk(chunk.chunk, bytes);
  }
  [[nodiscard, gnu::noinline]] std::byte* place_bulk(std::uint32_t bytes) noexcept;
  [[nodiscard]] SendState refuse_full() noexcept;
  void publish(std::uint32_t ticket, std::uint32_t kind, bool& must_ring) noexcept;

  NodeSide* const self_;
  const Peer peer_;
  const SegmentMapping segment_;
  InboxSender inbox_;               // The sender's, as what is placed.
  std::uint32_t taken_before_ = 0;  // Of our own inbox, at the last packet. The sender's.
  struct {
    std::uint32_t bytes;
    std::uint32_t ticket;       // Of a packet that fits a cell...
    RecentChunks::Entry chunk;  // ...and of one that does not.
  } placed_{};
  RecentChunks recent_;
  // Chunks filled since there were more of them: new ones are slow, and too few are, too. Written
  // by the sender; relaxed: says only when measuring begins.
  std::atomic<std::uint32_t> fills_{0};
  std::uint32_t in_use_ = 0;  // In the pool then. The sender's.
  // Chunks filled, one after the other, that the receiver had just read: it is behind, as after a
  // long copy that it made itself. Where that goes on it is what packets cost. As fills_.
  std::atomic<std::uint32_t> crowded_{0};
  static constexpr std::uint32_t kCrowdedMax = 512;
  // Of the last chunk. One that goes one way says what is so because ours go another way: who
  // learned from that would never send in chunks again.
  bool comes_back_ = false;  // The poller's.
  // Relaxed: a hint for prepare_sleep; who got the answer `full` is ordered before its own sleep.
  std::atomic<bool> is_refused_{false};
  std::atomic<bool> is_lost_{false};          // Relaxed: as NodeSide::is_closed; else mark_lost().
  std::atomic<bool> is_filling_{false};       // By the sender: see mark_lost().
  std::atomic<std::uint32_t> direct_pid_{0};  // 0: no direct copy (yet).
  // Relaxed: who does not see it yet is refused once more. open_direct() has tried reading only,
  // for which no memory of the peer must be touched.
  std::atomic<bool> is_write_forbidden_{false};
  std::atomic<bool> is_direct_tried_{false};  // Relaxed: to try twice does no harm.
  std::atomic<bool> are_copies_refused_{false};  // Relaxed: who sees it late is refused itself.
  FileDescriptor process_;                    // The poller's.
};

}  // namespace sterna::net::shm
