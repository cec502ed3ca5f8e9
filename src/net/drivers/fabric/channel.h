// The way to one peer over the endpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "net/driver.h"
#include "net/drivers/fabric/blobs.h"
#include "net/drivers/fabric/endpoint.h"
#include "net/drivers/fabric/loans.h"

namespace sterna::net::fabric {

class FabricDriver;

/// All of it but `driver`, `node` and what is marked is under FabricDriver::lock_.
class FabricChannel final : public Channel {
 public:
  enum class State : std::uint8_t {
    joining,   // The peer has not yet said where its endpoint is: packets wait.
    standing,  // Packets go.
    ending,  // Lost, and not yet told: what did arrive comes first. Or closed, as `is_closed` says.
    ended,   // Closed by the peer in good order, or lost and told.
  };

  FabricChannel(FabricDriver& of, std::uint32_t peer) noexcept : driver{of}, node{peer} {}

  SendState try_send(std::span<const Piece> pieces) noexcept override;
  std::uint32_t lent_bytes_max() const noexcept override;
  SendState try_lend(Packet head, Piece bytes, Lent& loan) noexcept override;
  void take_back(Lent& loan) noexcept override;

  /// Packets on their way, or waiting, by FabricDriver::weight_of.
  [[nodiscard]] std::uint32_t under_way() const noexcept { return accepted - taken_there; }
  /// As if there had been no connection; its buffers stay.
  void begin(std::uint64_t own_token) noexcept {
    state = State::joining;
    is_closed = has_queued_end = has_said_hello = owes_taken = false;
    token_here = own_token;
    accepted = taken_there = taken_here = told = 0;
    does_peer_read.store(false, std::memory_order_relaxed);
    owed_ends.clear();
    reason.clear();
  }

  FabricDriver& driver;
  const std::uint32_t node;
  State state = State::joining;
  bool is_closed = false;         // By the peer, in good order.
  bool has_queued_end = false;    // Ours.
  bool wants_hello = false;       // Ours is to be said.
  bool has_said_hello = false;    // Over this connection.
  bool owes_taken = false;        // The peer waits for our word.
  std::uint64_t token_here = 0;   // What messages of the peer carry.
  std::uint64_t token_there = 0;  // And ours to it.
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::vector<std::byte> name;    // That `address` was made of.
  // Packets of this connection, with `end`, by their weight; as the next ones.
  std::uint32_t accepted = 0;
  std::uint32_t refused_weight = 0;  // Of what a sender was told `full` for.
  std::uint32_t taken_there = 0;     // The peer says so.
  std::uint32_t taken_here = 0;
  std::uint32_t told = 0;       // Of taken_here, in the last message to the peer.
  std::vector<Buffer*> free;    // To send from.
  std::deque<Buffer*> waiting;  // In order: the provider does not take them yet.
  // Lent packets: see loans.h.
  std::atomic<bool> does_peer_read{false};  // Written under the lock, read by anybody.
  std::vector<LentOut> lent;                // Ours, with the peer.
  std::uint64_t last_loan = 0;
  std::uint32_t borrowed = 0;     // The peer's, here, the sink not yet told of their ends.
  std::deque<LoanEnd> owed_ends;  // The peer is to be told.
  std::string broken;             // Why the connection is of no use; the poller ends it.
  std::string reason;             // Of the loss.
  std::uint64_t ending_since_ns = 0;
  std::uint64_t heard_look = 0;  // FabricDriver::looks_ when its last message came.
};

}  // namespace sterna::net::fabric
