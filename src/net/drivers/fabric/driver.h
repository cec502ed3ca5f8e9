// The driver fabric: packets over libfabric, with any of its providers.
//
// An endpoint has no connections: it takes messages of whoever knows its name. So each pair of
// nodes also has a connection of the driver tcp, with its proof of the job's secret
// (net/opening/auth.h). Over it each side says hello: the name of its endpoint, and a token that
// messages to it must carry. The connection says when a peer dies, closes or is cut, too, which
// many providers do not.
//
//   credit   A sender has `window` packets under way at most (of long ones less, where a provider
//            cannot hold them: weight_of); each message says how many its sender has taken, and one
//            that says nothing else goes when half of the window is owed. So there is always a
//            buffer for what comes, and a channel is bounded with any provider.
//   loans    Long packets may be lent: their bytes go from memory to memory (fabric/loans.h).
//   locks    All calls into libfabric are made under lock_, by the senders as by the poller; no
//            upcall is. See fabric/endpoint.h.
//   sleep    The completion queue's descriptor, the connections' and a bell of our own, in one
//            epoll set. A provider without one (shm, efa) wakes nobody: then sleeps are naps
//            (fabric/naps.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/annotate.h"
#include "base/clock.h"
#include "base/kernel_lock.h"
#include "base/syscall.h"
#include "net/drivers/fabric/channel.h"
#include "net/drivers/fabric/endpoint.h"
#include "net/drivers/fabric/naps.h"
#include "net/drivers/tcp/driver.h"
#include "net/opening/bootstrap.h"

namespace sterna::net::fabric {

inline constexpr Capabilities kProfile{.can_revive = true,
                                       .latency_ns = 8'000,
                                       .bandwidth_mb_per_s = 2'000,
                                       .packet_ns = 900,
                                       .cpu_ps_per_byte = 400,
                                       .can_lend = true};
/// With such an endpoint, that can read from peers or not.
[[nodiscard]] constexpr Capabilities capabilities_of(const EndpointOptions& options,
                                                     bool can_read) noexcept {
  Capabilities its = kProfile;
  its.packet_bytes_max = options.message_bytes - static_cast<std::uint32_t>(kFrameBytes);
  its.can_lend = can_read;
  return its;
}

class FabricDriver final : public Driver, private PacketSink {
 public:
  struct Options {
    EndpointOptions endpoint;
    std::uint32_t window = 0;
  };
  FabricDriver(const DriverOptions& given, Options options) noexcept;
  ~FabricDriver() override;

  Result<> open(const DriverOptions& given);

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return address_; }
  bool reaches(std::uint32_t node, Packet peer_address) const noexcept override;
  Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept override;
  Result<Channel*> revive(std::uint32_t node) noexcept override;
  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override;
  int fd() const noexcept override { return waiting_.get(); }
  bool prepare_sleep() noexcept override;
  std::uint64_t next_deadline_ns() noexcept override;
  void end_sleep() noexcept override;
  void lose_peer(std::uint32_t node) noexcept override { control_->lose_peer(node); }
  void abandon(std::uint32_t node, std::string_view reason) noexcept override;
  std::string figures() const override;
  void close() noexcept override;
  bool is_drained() const noexcept override { return is_shut_; }

  /// Channel::try_send of a packet of a right size.
  SendState send(FabricChannel& channel, std::span<const Piece> pieces, std::size_t bytes) noexcept;
  /// Channel::try_lend, take_back and lent_bytes_max of a peer that reads.
  SendState lend(FabricChannel& channel, Packet head, Piece bytes, Lent& lent) noexcept;
  void take_back(FabricChannel& channel, Lent& lent) noexcept;
  std::uint32_t loan_bytes_max() const noexcept;

 private:
  /// A message that came, of a peer that has proven itself.
  struct Arrival {
    FabricChannel* channel = nullptr;  // Null: it is no message of the job.
    FrameKind kind = FrameKind::data;
    Packet packet;
    Buffer* buffer = nullptr;
    Borrowed* borrowed = nullptr;  // Of a Loan.
  };

  // driver.cc: messages.
  /// How much of the window a packet of `bytes` takes: one, but where the provider cannot hold a
  /// window of long ones, more; never more than what its receiver may leave untold.
  [[nodiscard]] std::uint32_t weight_of(FrameKind kind, std::size_t bytes) const noexcept {
    if (kind != FrameKind::data) {
      return kind == FrameKind::taken ? 0 : 1;
    }
    return static_cast<std::uint32_t>(
        std::min<std::size_t>(1 + bytes / weighed_bytes_, options_.window / 2));
  }
  Buffer* queue_frame(FabricChannel& channel, FrameKind kind, std::size_t bytes = 0) noexcept
      STERNA_REQUIRES(lock_);
  void push(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  void say_taken(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  void on_sent(Buffer& buffer, int error) noexcept STERNA_REQUIRES(lock_);
  Arrival on_arrival(Buffer& buffer) noexcept STERNA_REQUIRES(lock_);
  void take(const Arrival& arrival) noexcept STERNA_REQUIRES(lock_);
  void post_receives() noexcept STERNA_REQUIRES(lock_);
  void count_look(std::uint32_t read, std::size_t asked) noexcept STERNA_REQUIRES(lock_);
  std::uint32_t poll_endpoint(PacketSink& sink, std::uint32_t packets_max) noexcept;

  // sleep.cc
  Result<> open_bell();
  void ring() noexcept;
  void clear_bell() noexcept;
  [[nodiscard]] bool does_provider_wake() const noexcept { return endpoint_->fd() >= 0; }
  [[nodiscard]] bool is_pressed() const noexcept STERNA_REQUIRES(lock_);

  // loans.cc: lent packets.
  void on_returned(FabricChannel& channel, Packet packet) noexcept STERNA_REQUIRES(lock_);
  void return_loans(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  Borrowed* borrow(FabricChannel& channel, Packet packet) noexcept STERNA_REQUIRES(lock_);
  static void ask_place(PacketSink& sink, Borrowed& borrowed) noexcept;
  void begin_read(Borrowed& borrowed) noexcept STERNA_REQUIRES(lock_);
  void start_read(Borrowed& borrowed) noexcept STERNA_REQUIRES(lock_);
  void end_read(Borrowed& borrowed, bool is_whole) noexcept STERNA_REQUIRES(lock_);
  void start_reads() noexcept STERNA_REQUIRES(lock_);
  void tell_ended_reads(PacketSink& sink) noexcept;
  void say_ends(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  bool are_reads_over(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  void shut_endpoint() noexcept STERNA_REQUIRES(lock_);

  // peers.cc: who is there. By the poller, but where it says otherwise.
  /// Any thread. Null: no memory.
  FabricChannel* channel_to(std::uint32_t node) STERNA_REQUIRES(lock_);
  void say_hello(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  void on_packet(std::uint32_t from_node, Packet packet) noexcept override;  // A hello.
  std::string judge(FabricChannel& channel, const Hello& hello) STERNA_REQUIRES(lock_);
  void on_peer_lost(std::uint32_t node, std::string_view reason) noexcept override;
  void find_closed() noexcept;
  void care(PacketSink& sink) noexcept;
  void care_for(FabricChannel& channel) noexcept STERNA_REQUIRES(lock_);
  /// Whether the end of a channel is due; then `reason` is to be told, if there is one.
  bool ends(FabricChannel& channel, std::string& reason) noexcept STERNA_REQUIRES(lock_);
  void finish_close() noexcept;

  // With nothing of a peer in so many looks at the queue, nothing of it is on its way here.
  static constexpr std::uint64_t kQuietLooks = 16;

  const Options options_;
  const std::uint32_t self_;
  const std::uint32_t node_count_;
  std::size_t weighed_bytes_ = 1;  // Constant after open.
  Capabilities capabilities_;
  std::unique_ptr<Endpoint> endpoint_;  // Constant after open; called under lock_.
  std::unique_ptr<tcp::TcpDriver> control_;
  std::vector<std::byte> address_;
  FileDescriptor waiting_;  // epoll
  FileDescriptor wake_;     // eventfd: a sender moved something while the poller slept.

  mutable KernelLock lock_;
  // By node; a channel lives as long as the driver.
  std::vector<std::unique_ptr<FabricChannel>> channels_ STERNA_GUARDED_BY(lock_);
  std::vector<Buffer*> unposted_ STERNA_GUARDED_BY(lock_);  // To receive, not with the provider.
  // What peers have lent us. Freed once the sink has been told of the end, by the poller.
  std::vector<std::unique_ptr<Borrowed>> borrowed_ STERNA_GUARDED_BY(lock_);
  bool has_ended_reads_ = false;  // The poller's.
  bool is_asleep_ STERNA_GUARDED_BY(lock_) = false;
  Naps naps_ STERNA_GUARDED_BY(lock_);
  std::atomic<bool> is_closed_{false};   // Relaxed: a late close is a little late.
  std::atomic<bool> needs_care_{false};  // Set under lock_: care() has something to do.

  // The poller's.
  std::uint32_t polls_until_control_ = 1;
  bool is_control_closed_ = false;
  bool is_shut_ = false;  // The endpoint: a process need not destroy us in order to leave nothing.
  // How often the completion queue was read to its end. As many completions as it holds, read
  // without seeing the end, count as kQuietLooks of these: all that was in it has been read.
  std::uint64_t looks_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t unended_ STERNA_GUARDED_BY(lock_) = 0;  // Completions read since the last look.
  // Figures.
  std::uint64_t sent_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t injected_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t deferred_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t lent_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t returned_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t unregistered_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t read_ STERNA_GUARDED_BY(lock_) = 0;
  std::uint64_t strange_ STERNA_GUARDED_BY(lock_) = 0;
};

}  // namespace sterna::net::fabric
