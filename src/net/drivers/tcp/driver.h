// The tcp driver: one listening socket a node, one connection a pair of nodes that talk.
//
// A connection is made on first use by whoever sends first. When both begin at once, the attempt of
// the node with the lower index stays and the other is declined. Attempts time out, at any step and
// on either side, but for one whose hello is with the other host (dialling.cc); of several there,
// over several addresses, each counts. That both ends nevertheless have one connection, or none,
// follows from this:
//
// (1) Who connects has the connection from the verdict on; before, it may give up at any time.
// (2) Who has sent the verdict "admitted" has made a pledge. It keeps it until the confirmation
//     comes, which makes it a channel, or the connection ends: then the other side had given up,
//     and nothing is lost, since nothing was sent. It has no limit of time and gives way to nobody.
// (3) Of one node there is one pledge at most; what else comes from there is declined, to come
//     again.
// (4) The lower of two nodes either makes an attempt or has made a pledge, never both. So when the
//     higher one gets the verdict on its own attempt, the attempt to which it has made a pledge
//     itself was given up before, and it adopts its own one.
//
// Nothing of a connection is parsed before both sides have proven the secret of the job
// (net/opening/auth.h); until then it counts among the strangers, whose number and time are
// bounded.
//
// Waiting: one epoll set is the driver's fd. Connections are in it edge-triggered, both ways: an
// edge makes a channel active, and active channels are read in every poll, without epoll, until
// they have been silent for a while. So a spinning exchange with one peer costs one recv a poll.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/spin_lock.h"
#include "base/syscall.h"
#include "net/driver.h"
#include "net/drivers/tcp/channel.h"
#include "net/drivers/tcp/joining.h"
#include "net/drivers/tcp/silence.h"
#include "net/drivers/tcp/sockets.h"
#include "net/opening/bootstrap.h"

namespace sterna::net::tcp {

inline constexpr Capabilities kProfile{.can_revive = true,
                                       .latency_ns = 4'000,
                                       .bandwidth_mb_per_s = 6'000,
                                       .packet_ns = 430,
                                       .cpu_ps_per_byte = 250};

/// As tcp without the network's part of the way, and with bytes that the system copies once more.
inline constexpr Capabilities kUnixProfile{.can_revive = true,
                                           .latency_ns = 3'000,
                                           .bandwidth_mb_per_s = 5'000,
                                           .packet_ns = 400,
                                           .cpu_ps_per_byte = 250};

class TcpDriver final : public Driver {
 public:
  TcpDriver(const DriverOptions& given, const Options& options, Listener listener) noexcept;
  ~TcpDriver() override;

  Result<> open() noexcept;

  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  std::uint32_t packet_bytes_to(std::uint32_t node) const noexcept override;
  Packet address() const noexcept override { return address_; }
  bool reaches(std::uint32_t node, Packet peer_address) const noexcept override;
  Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept override;
  Result<Channel*> revive(std::uint32_t node) noexcept override;
  std::uint32_t poll(PacketSink& sink, std::uint32_t packets_max) noexcept override;
  int fd() const noexcept override { return waiting_.get(); }
  bool prepare_sleep() noexcept override;
  void end_sleep() noexcept override {}
  bool hear() noexcept override;
  void lose_peer(std::uint32_t node) noexcept override;
  void close() noexcept override;
  bool is_drained() const noexcept override;

  // For a driver whose connections these are (drivers/fabric), by the poller's thread.

  /// The way to `node` if there is one, made by connect() or by the peer; else null.
  [[nodiscard]] TcpChannel* known_channel(std::uint32_t node) const noexcept {
    return channels_[node].load(std::memory_order_acquire);
  }
  /// The connection to `node` is of no use: it is closed, and on_peer_lost is called, here at the
  /// next poll, there as for one that broke. Nothing happens where none stands.
  void abandon(std::uint32_t node, std::string_view reason) noexcept override;

 private:
  /// Our attempts to reach one node.
  struct Dial {
    std::vector<SocketAddress> addresses;
    std::size_t next = 0;             // Whose turn it is.
    std::uint64_t deadline_ns = 0;    // Of all attempts together, unless one is patient.
    std::uint64_t retry_ns = kNever;  // When to begin the next one; kNever: one is under way.
    std::string failures;             // Of the last round over all addresses.
  };
  struct Request {
    std::uint32_t node;
    std::vector<SocketAddress> addresses;
  };

  void ask(Request request) noexcept;
  [[nodiscard]] TcpChannel* channel_to(std::uint32_t node) noexcept;

  // driver.cc: traffic.
  std::uint32_t read(TcpChannel& channel, PacketSink& sink, std::uint32_t packets_max) noexcept;
  void look() noexcept;
  void activate(TcpChannel& channel) noexcept;
  void retire_silent() noexcept;
  void push_waiting() noexcept;
  void end(TcpChannel& channel, std::string_view reason) noexcept;
  void report_ends(PacketSink& sink) noexcept;
  [[nodiscard]] bool watch(int fd, std::uint32_t events, std::uint64_t mark,
                           int operation) noexcept;

  /// silence.cc: at its tick, ends channels of whose other end nothing is heard.
  void look_for_silence() noexcept;

  // receive.cc: what the socket of a channel has.
  /// Receives once. `is_readable` says whether there may be more.
  void receive(TcpChannel& channel, PacketSink& sink) noexcept;
  void receive_long(TcpChannel& channel, std::span<std::byte> place) noexcept;
  void receive_between(TcpChannel& channel, std::span<std::byte> place) noexcept;
  static void end_placed(TcpChannel& channel, PacketSink& sink) noexcept;
  /// Whether bytes came. If not, the socket is empty, or it has ended.
  bool take_result(TcpChannel& channel, long got) noexcept;

  // membership.cc: who gets in.
  void accept_all() noexcept;
  void make_place() noexcept;
  void advance(std::size_t slot) noexcept;
  void decide(std::size_t slot) noexcept;
  void admit(std::size_t slot) noexcept;
  void drop(std::size_t slot) noexcept;
  void fail(std::size_t slot, std::string_view reason) noexcept;
  void on_timer() noexcept;
  std::size_t add_joining(std::unique_ptr<Joining> joining) noexcept;
  [[nodiscard]] bool has_pledged(std::uint32_t node) const noexcept;
  void tell_stranger(const SocketAddress& address, std::string_view reason) noexcept;

  // dialling.cc: whom we call.
  void take_requests() noexcept;
  void begin_attempt(std::uint32_t node) noexcept;
  void attempt_failed(std::size_t slot, std::string_view reason) noexcept;
  /// One that has no slot any more, of the address whose turn it was.
  void attempt_failed(std::uint32_t node, const SocketAddress& address,
                      std::string_view reason) noexcept;
  void attempt_declined(std::size_t slot) noexcept;
  /// The time of an attempt is over. Whether it waits on nevertheless: its host has our hello.
  [[nodiscard]] bool becomes_patient(std::size_t slot) noexcept;
  void give_up(std::uint32_t node) noexcept;
  void drop_attempts(std::uint32_t node) noexcept;
  enum class Attempts : std::uint8_t { all, in_time, patient };
  [[nodiscard]] bool has_attempt(std::uint32_t node, Attempts which) const noexcept;
  /// To the next address at which no attempt waits.
  void pass_turn(std::uint32_t node) noexcept;
  void look_at_dials(std::uint64_t now) noexcept;
  void set_timer() noexcept;

  Bootstrap& bootstrap_;
  MonotonicClock machine_clock_;
  Clock& clock_;
  const Logger logger_;
  KeptCount* const kept_;
  const Options options_;
  Capabilities capabilities_;
  const std::uint32_t self_;
  const std::uint32_t node_count_;
  std::uint64_t network_token_ = 0;
  std::vector<std::byte> address_;
  FileDescriptor waiting_;  // epoll
  FileDescriptor wake_;     // eventfd: requests_ has something.
  FileDescriptor timer_;
  SilenceTimer silence_;

  SpinLock lock_;
  std::vector<Request> requests_ STERNA_GUARDED_BY(lock_);
  std::vector<std::vector<SocketAddress>> known_
      STERNA_GUARDED_BY(lock_);                  // By node: of connect().
  std::atomic<std::uint32_t> request_count_{0};  // Requests made and not yet taken up.
  std::atomic<bool> is_closed_{false};           // Relaxed: late calls are only a little late.
  // By node; set once by whoever comes first (D), freed with the driver.
  std::vector<std::atomic<TcpChannel*>> channels_;

  // All below: the poller's.
  FileDescriptor listener_;
  std::vector<TcpChannel*> active_;
  std::vector<TcpChannel*> ending_;
  std::vector<std::unique_ptr<Joining>> joinings_;  // Slots; empty ones are reused.
  std::vector<std::unique_ptr<Dial>> dials_;        // By node.
  std::uint32_t dial_count_ = 0;
  std::uint32_t joining_count_ = 0;
  std::uint32_t polls_until_look_ = 1;
  bool is_timer_set_ = false;
  std::uint64_t ticked_ns_ = 0;  // When the timer was last looked at, or set.
  bool is_listener_paused_ = false;
  bool has_new_channel_ = false;  // Since the last look: its socket rings for what is known.
  std::uint64_t strangers_told_ns_ = 0;
  std::uint64_t admitted_ns_ = 0;  // When the last connection became a channel.
  std::uint64_t strangers_untold_ = 0;
};

/// Opens tcp, or unix. The settings are those of tcp.
[[nodiscard]] Result<std::unique_ptr<TcpDriver>> open_sockets(const DriverOptions& given,
                                                              bool is_unix) noexcept;

}  // namespace sterna::net::tcp
