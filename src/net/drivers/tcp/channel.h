// The tcp way to one peer: a connection once there is one, what waits to be sent, what has arrived.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/syscall.h"
#include "net/driver.h"
#include "net/drivers/tcp/address.h"
#include "net/drivers/tcp/frames.h"
#include "net/drivers/tcp/silence.h"

namespace sterna::net::tcp {

class TcpChannel final : public Channel {
 public:
  enum class State : std::uint8_t {
    idle,    // No connection; nobody has asked for one, or the driver has not begun.
    open,    // Connected, both sides have proven themselves.
    ending,  // Something is wrong or over; the poller will close the socket and report.
    ended,   // Closed; until it is revived.
  };
  enum class Flush : std::uint8_t {
    done,     // Nothing waits.
    waiting,  // The kernel takes no more now: the socket rings when it does.
    busy,     // A sender is at it: look again.
    broken,   // The connection is; reading will say so.
  };

  /// Without a timer nobody minds how long its connection is silent.
  TcpChannel(std::uint32_t node, std::uint32_t packet_bytes_max, SilenceTimer* silence_timer,
             KeptCount* kept) noexcept
      : node_{node},
        packet_bytes_max_{packet_bytes_max},
        silence_timer_{silence_timer},
        kept_{kept},
        is_minded_{silence_timer == nullptr} {}

  [[nodiscard]] SendState try_send(std::span<const Piece> pieces) noexcept override;

  [[nodiscard]] std::size_t try_send_several(std::span<const std::span<const Piece>> packets,
                                             SendState& state) noexcept override;
  [[nodiscard]] bool gains_by_several() const noexcept override { return true; }

  [[nodiscard]] std::uint32_t node() const noexcept { return node_; }
  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }

  // The rest is the poller's.

  /// Takes over an authenticated connection. False: no memory.
  [[nodiscard]] bool adopt(FileDescriptor socket, std::uint64_t connection) noexcept;
  /// The connection that it has or had last (Handshake::connection); 0: none so far.
  [[nodiscard]] std::uint64_t connection() const noexcept { return connection_; }
  /// After ended: as if there had been no connection. False: a sender is at it, try again.
  [[nodiscard]] bool revive() noexcept;

  /// Sends what waits.
  Flush flush() noexcept;

  /// The driver closes: accepts no more packets.
  void close() noexcept { is_closed_.store(true, std::memory_order_relaxed); }
  /// After close: sends the end mark behind what waits. False: a sender is at it, try again.
  [[nodiscard]] bool queue_end() noexcept;

  /// No more sends; the socket is closed by finish().
  void end(std::string_view reason) noexcept;
  /// Closes the socket. False: a sender is using it, try again.
  [[nodiscard]] bool finish() noexcept;
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

  /// Something waits until the socket takes more. By the poller, as a hint.
  [[nodiscard]] bool has_unsent() const noexcept {
    return waiting_bytes_.load(std::memory_order_relaxed) != 0 ||
           is_refused_.load(std::memory_order_relaxed);
  }

  /// A sender is at it. Asked before sleep: it may have found no connection, or no room, and not
  /// yet have left its packet in unsent_, after the poller has seen the connection stand or the
  /// socket ring. Either O comes first, and the poller sees that it is owned, or the sender sees
  /// the connection: both sides are sequentially consistent. (The kernel orders room likewise.)
  [[nodiscard]] bool is_in_use() const noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return is_owned_.load(std::memory_order_acquire);  // Pairs with disown(): flush() sees all.
  }

  /// Whether a refused sender may try again; says it once.
  [[nodiscard]] bool take_room() noexcept;
  /// Everything accepted is with the peer's kernel, or will never be.
  [[nodiscard]] bool is_drained() const noexcept;

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }

  /// After something was sent: the next tick looks whether it was acknowledged.
  void mind() noexcept {
    if (!is_minded_.load(std::memory_order_relaxed)) [[unlikely]] {
      begin_to_mind();
    }
  }
  /// At a tick: from here on what is sent makes another one.
  [[nodiscard]] bool take_minded() noexcept {
    return is_minded_.exchange(false, std::memory_order_relaxed);
  }

  FrameReader reader;
  Silence silence;
  bool is_active = false;    // In the driver's list of channels that every poll asks.
  bool is_readable = false;  // Not yet read until "nothing more".
  bool has_ended_well = false;
  std::uint32_t empty_reads = 0;
  bool is_place_lost = false;  // Of the packet that had one: what is left of it is dropped.

 private:
  [[nodiscard]] bool try_own() noexcept {
    return !is_owned_.exchange(true, std::memory_order_seq_cst);  // O: see is_in_use().
  }
  void disown() noexcept { is_owned_.store(false, std::memory_order_release); }
  [[nodiscard]] SendState send_owned(std::span<const Piece> pieces, std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t send_several_owned(
      std::span<const std::span<const Piece>> packets) noexcept;
  void append(const FrameStart& start, std::span<const Piece> pieces, std::size_t skip) noexcept;
  Flush flush_owned() noexcept;
  void begin_to_mind() noexcept;
  void note_waiting() noexcept;  // Under is_owned_.

  const std::uint32_t node_;
  const std::uint32_t packet_bytes_max_;
  SilenceTimer* const silence_timer_;
  KeptCount* const kept_;  // Has one of it while waiting_bytes_ is not 0.
  // Forward only, but for revive(). `open` is stored with release after socket_ is set.
  std::atomic<State> state_{State::idle};
  // Who has it may write to socket_ and use unsent_. Not a lock: nobody waits for it, a sender
  // that does not get it is told `full`.
  std::atomic<bool> is_owned_{false};
  std::atomic<bool> is_refused_{false};  // Relaxed: a hint for prepare_sleep.
  std::atomic<bool> is_closed_{false};   // Relaxed: checked again under ownership by queue_end.
  std::atomic<bool> is_minded_;          // Relaxed: see silence.h.
  bool has_queued_end_ = false;          // The poller's.
  FileDescriptor socket_;                // Set by adopt(), closed by finish(), which owns.
  std::vector<std::byte> unsent_;        // Under is_owned_; bytes [sent_, size) wait.
  std::size_t sent_ = 0;
  std::atomic<std::size_t> waiting_bytes_{0};  // unsent_.size() - sent_, for the poller to look at.
  std::string reason_;                         // The poller's, as connection_.
  std::uint64_t connection_ = 0;
};

}  // namespace sterna::net::tcp
