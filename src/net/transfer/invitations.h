// Large messages that their sender writes, by itself, into a receive that was posted before: while
// the program of the receiver computes nobody needs to look there, and nobody is woken
// (receiver-initiated rendezvous).
//
// The receiver tells of a receive on the board of its node (net/invitation_board.h) when the next
// message of that sender, context and tag must be for it: it is the oldest of its lane, and no
// receive is posted that takes several senders or tags. The sender announces its message as ever.
// If it then waits for it, and finds the receive told of, it takes the invitation, writes, and says
// `finish`. Who of the two comes first, the sender with taking or the receiver with what was
// announced, has the receive: one exchange decides.
//
// Where the receiver finds the announcement while it is about to do something else, it leaves the
// message to whoever waits first: it tells of the receive again, and reads the message once it
// waits itself.
//
// Numbers make sure that it is the right message. The invitation says from which one of the pair on
// it holds; the sender knows which messages it has sent since, if these were few and announced, and
// that none of them was of that context and tag.
//
// Only between ranks that never move, whose processes may write each other's memory.
// Guard: the lock of that rank of this node, whose Endpoint is given.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/endpoint.h"
#include "net/invitation_board.h"

namespace sterna::net {

class Invitations {
 public:
  static constexpr std::uint32_t kNoRank = ~std::uint32_t{0};

  /// At start-up; null: there are none, and nothing happens here.
  void open(InvitationBoard* own) noexcept { own_ = own; }
  [[nodiscard]] const InvitationBoard* own() const noexcept { return own_; }
  /// The rank of this node that never moves.
  void set_rank(std::uint32_t rank) noexcept { rank_ = rank; }
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }

  // --- Receives: `id` of one that is told of, or written, is that of its pending entry -----------

  /// Tells of a receive that was posted, if the next message of its kind is for it; of those that
  /// have not come, or of those from this number on.
  void invite(Endpoint& at, RecvRequest& request) noexcept;
  void invite(Endpoint& at, RecvRequest& request, std::uint32_t sequence) noexcept;
  /// The receive is to end in another way. False: too late, its sender writes it: it keeps its id,
  /// for `finish`.
  [[nodiscard]] bool take_back(Endpoint& at, RecvRequest& request) noexcept;
  /// The same where the sender is lost.
  void drop(Endpoint& at, RecvRequest& request) noexcept;
  /// Tells of a receive that has matched this message, which may be read. False: there is no room.
  [[nodiscard]] bool leave(Endpoint& at, RecvRequest& request, const Message& announced,
                           std::uint32_t sequence) noexcept;
  /// A receive that was written, or whose sender is lost, ends.
  void end(RecvRequest& request) noexcept;

  struct Left {
    RecvRequest* request;  // Null: none.
    std::uint64_t address;
    std::uint64_t send_id;
  };
  /// One that was left and is to be read now, if `is_due(source, looks)`.
  template <typename IsDue>
  [[nodiscard]] Left take_left(Endpoint& at, IsDue is_due) noexcept {
    for (Told& told : told_) {
      if (told.left.send_id != 0 && is_due(told.request->envelope.source, told.looks++)) {
        const Left left = told.left;
        if (take_back(at, *left.request)) {
          return left;
        }
      }
    }
    return {};
  }
  [[nodiscard]] bool has_left() const noexcept {
    return left_count_.load(std::memory_order_relaxed) != 0;
  }
  /// The rank ends.
  void close() noexcept;

  // --- Sends -------------------------------------------------------------------------------------

  /// The message has this number, and its announcement waits for its gate or has gone.
  void announce(SendRequest& send, std::uint32_t sequence) noexcept;
  /// For ever: messages change numbers with others (packets/priority.h) from now on. Those that
  /// were invited before are announced: what is said of them names them in another way.
  void stop_sending() noexcept;
  /// It was answered, or has ended.
  void forget(SendRequest& send) noexcept;

  struct Waiting {
    SendRequest* send;
    std::uint32_t sequence;
    std::uint32_t looks;  // That found the receiver away, one after the other.
  };
  /// The oldest that wait for an answer.
  [[nodiscard]] std::span<Waiting> waiting(std::size_t most) noexcept {
    return {waiting_.data(), std::min<std::size_t>(most, waiting_count_)};
  }
  [[nodiscard]] bool has_waiting() const noexcept {
    return waiting_count_.load(std::memory_order_relaxed) != 0;
  }
  /// Whether the invitation is for this message.
  [[nodiscard]] bool is_meant(const Invitation& invitation, const Waiting& message) const noexcept;

 private:
  static constexpr std::uint32_t kRemembered = 64;
  static constexpr std::uint32_t kWaiting = 64;  // Others wait without being here.

  struct Told {
    RecvRequest* request = nullptr;  // Null: the slot is free.
    Left left{};                     // send_id 0: it waits for its message.
    std::uint32_t looks = 0;
  };
  [[nodiscard]] Told* find(const RecvRequest* request) noexcept;
  [[nodiscard]] bool tell(Endpoint& at, RecvRequest& request, const Pattern& exact,
                          std::uint32_t sequence, const Left& left) noexcept;
  [[nodiscard]] bool close(Told& told) noexcept;

  InvitationBoard* own_ = nullptr;
  std::uint32_t rank_ = kNoRank;
  std::array<Told, InvitationBoard::kSlots> told_{};
  std::array<Waiting, kWaiting> waiting_;  // In the order of announcement.
  // The last messages that were announced, those that have ended too.
  struct Announced {
    Target target;
    std::uint32_t sequence;
  };
  std::array<Announced, kRemembered> remembered_{};
  std::uint32_t remembered_count_ = 0;
  bool is_sending_ = true;
  // Read without the lock, as hints.
  std::atomic<std::uint32_t> left_count_{0};
  std::atomic<std::uint32_t> waiting_count_{0};
};

}  // namespace sterna::net
