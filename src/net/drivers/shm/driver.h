// The shm driver: the nodes of one host, through one shared memory inherited from the launcher.
//
// The inbox of this node is polled by its one poller; the ends of other processes are noticed
// through their pidfds, which sleep in one epoll set together with our bell.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/syscall.h"
#include "net/driver.h"
#include "net/drivers/shm/bulk_pool.h"
#include "net/drivers/shm/channel.h"
#include "net/drivers/shm/doorbell.h"
#include "net/drivers/shm/inbox.h"
#include "net/drivers/shm/read_ahead.h"
#include "net/drivers/shm/segment.h"
#include "net/opening/bootstrap.h"

namespace sterna::net::shm {

inline constexpr std::uint32_t kNotANode = ~0U;  // As a local index; in epoll data: our bell.

/// Of neighbouring caches. Where they lie far apart, what is measured soon says so.
inline constexpr Capabilities kProfile{.latency_ns = 120,
                                       .bandwidth_mb_per_s = 30'000,
                                       .packet_ns = 45,
                                       .cpu_ps_per_byte = 10,
                                       .direct_latency_ns = 1000,
                                       .direct_mb_per_s = 12'000,
                                       .has_short_way = true};

/// What to open with.
struct Options {
  std::uint32_t local_index;
  std::uint32_t chunk_count;
  std::uint32_t chunk_bytes;
  std::uint32_t stream_count;  // Of the chunks a stream to one node goes through so many.
  bool is_direct_wanted;
};

class ShmDriver final : public Driver {
 public:
  ShmDriver(const DriverOptions& given, const Options& options, SegmentMapping mapping) noexcept;
  ~ShmDriver() override;

  Result<> open() noexcept;

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return std::as_bytes(std::span{&address_, 1}); }
  bool reaches(std::uint32_t node, Packet peer_address) const noexcept override;
  Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept override;
  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override;
  bool sight(std::uint32_t looks, Sight& seen) noexcept override;
  void pass_sight() noexcept override;
  // The room that was told is a past place of the poller, mostly the present one: a hint.
  void expect_sight() noexcept override {
    fetch_for_reading(&segment_->cell(segment_->taken.load(std::memory_order_relaxed)));
  }
  int fd() const noexcept override { return waiting_.get(); }
  bool prepare_sleep() noexcept override;
  std::uint64_t next_deadline_ns() noexcept override { return doze_.end_ns(); }
  void end_sleep() noexcept override;
  bool hear() noexcept override;
  void lose_peer(std::uint32_t node) noexcept override;
  std::atomic<std::uint32_t>* absence_flag() noexcept override { return &segment_->absence; }
  InvitationBoard* invitations() noexcept override { return &segment_->invitations; }
  std::uint64_t rung_ns() noexcept override {
    return segment_->rung_ns.load(std::memory_order_relaxed);
  }
  void close() noexcept override;
  // A packet is handed over when it is in the inbox; the launcher keeps the memory.
  bool is_drained() const noexcept override { return true; }

 private:
  [[nodiscard]] std::uint32_t local_of(std::uint32_t node) const noexcept;
  Result<ShmChannel*> channel_to(std::uint32_t local) noexcept;
  void open_direct(ShmChannel& channel, const DirectAddress& address) noexcept;
  void hand_over(PacketSink& sink, const InboxReceiver::Head& head) noexcept;
  /// A chunk that a packet lies in, and to whom it goes when it is read.
  struct Chunk {
    ChunkHead* head;  // Null: none.
    std::uint16_t idle;
    bool may_return;  // With the next packet to who sent it.
    RecentChunks::Entry entry;
  };
  [[nodiscard]] Packet packet_of(ShmChannel& from, const InboxReceiver::Head& head,
                                 Chunk& chunk) noexcept;
  [[nodiscard]] Chunk chunk_of(ShmChannel& from, const BulkReference& reference) noexcept;
  [[nodiscard]] bool sight_unfamiliar(const InboxReceiver::Head& head, Sight& seen) noexcept;
  static void end_reading(ShmChannel& from, const Chunk& chunk) noexcept;
  void publish_room() noexcept {
    inbox_.publish_room();
    ringer_fence(segment_->state.load(std::memory_order_relaxed));
    // Acquire: pairs with C, the waiters' bits are set.
    if (segment_->is_room_wanted.load(std::memory_order_acquire) != 0) [[unlikely]] {
      wake_room_waiters();
    }
  }
  void wake_room_waiters() noexcept;
  void watch_new_peers() noexcept;
  void look_for_ends() noexcept;
  void report_ends(PacketSink& sink) noexcept;
  void skip_abandoned() noexcept;
  [[nodiscard]] bool is_spoilt() noexcept;
  void look_at_inbox() noexcept;
  [[nodiscard]] bool is_claimed(std::uint32_t ticket) noexcept;
  void note_end(std::uint32_t local) noexcept;
  void complain(std::string_view what) noexcept;

  Bootstrap& bootstrap_;
  Logger logger_;
  const bool is_direct_wanted_;
  Capabilities capabilities_;
  DirectAddress address_{};
  std::uint64_t cookie_ = 0;  // Peers read it through process_vm_readv.
  SegmentMapping segment_;
  BulkPool pool_;
  NodeSide self_;
  bool has_membarrier_ = false;  // Constant after open.
  FileDescriptor waiting_;       // epoll: our bell and the pidfds of the peers.

  InboxReceiver inbox_;  // The poller's, as all that follows but channels_.
  ReadAhead read_ahead_;
  Doze doze_;
  struct End {
    std::uint32_t local;
    std::uint32_t ticket;  // Packets before it are still handed over.
  };
  std::vector<End> ends_;
  struct {
    ShmChannel* from;
    Chunk chunk;
  } seen_{};  // By sight().
  // Who sent the last packet that was handed over, once nothing is to be done for it but to hand
  // over: channels stay where they are.
  struct {
    std::uint32_t local;
    std::uint32_t node;
  } familiar_{kNotANode, 0};
  std::uint32_t polls_until_look_ = 1;
  bool has_complained_ = false;
  bool is_inbox_lost_ = false;
  // The hole that the last look found, if one: only what stays is looked into.
  std::uint32_t suspect_ticket_ = 0;
  bool is_suspect_ = false;
  std::atomic<std::uint32_t> unwatched_count_{0};  // New channels that the poller has not watched.
  // By local index; set once by whoever comes first, freed with the driver.
  std::vector<std::atomic<ShmChannel*>> channels_;
};

}  // namespace sterna::net::shm
