// The links of one node (link.h): who has one, which rails it takes, and as one driver to the gates
// above, which see no rails.
//
// Both ends of a way come to the same answer from the same facts, which drivers reach the other
// node and what they are capable of, so a packet needs no negotiation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/spin_lock.h"
#include "net/rails/lent_parts.h"
#include "net/rails/link.h"
#include "net/rails/plan.h"

namespace sterna::net {

class Bond final : public Driver {
 public:
  /// Upcalls, by the poller.
  class Owner {
   public:
    virtual void on_link_lost(std::uint32_t node, std::string_view why) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  Bond(std::uint32_t node_count, LinkShared shared, Owner& owner);

  /// At start-up. The ways of one bond are alike: each gate asks its capabilities.
  void add(std::uint32_t node, std::span<const Link::RailOpening> rails);
  [[nodiscard]] bool has(std::uint32_t node) const noexcept { return rail_count(node) != 0; }
  [[nodiscard]] std::uint32_t rail_count(std::uint32_t node) const noexcept {
    return static_cast<std::uint32_t>(openings_[node].size());
  }
  [[nodiscard]] std::vector<std::string_view> rail_names(std::uint32_t node) const;
  [[nodiscard]] const LinkShared& shared() const noexcept { return shared_; }
  [[nodiscard]] LentParts& lent_parts() noexcept { return lent_parts_; }

  // --- As the gates see it ---------------------------------------------------------------------
  const Capabilities& capabilities() const noexcept override { return capabilities_; }
  Packet address() const noexcept override { return {}; }
  bool reaches(std::uint32_t node, Packet /*peer_address*/) const noexcept override {
    return has(node);
  }
  Result<Channel*> connect(std::uint32_t node, Packet peer_address) noexcept override;
  void lose_peer(std::uint32_t node) noexcept override;
  // The rails are polled, and slept for, by themselves.
  std::uint32_t poll(PacketSink& /*sink*/, std::uint32_t /*packets_max*/) noexcept override {
    return 0;
  }
  int fd() const noexcept override { return -1; }
  bool prepare_sleep() noexcept override { return true; }
  void end_sleep() noexcept override {}
  void close() noexcept override {}
  bool is_drained() const noexcept override { return true; }

  // --- The poller ------------------------------------------------------------------------------
  /// What came by rail `index` and is to go up; not empty.
  [[nodiscard]] Packet take(std::uint16_t index, std::uint32_t from_node, Packet packet) noexcept;
  void lose_rail(std::uint16_t index, std::uint32_t node, std::string_view reason) noexcept;
  std::uint32_t step(bool is_closing) noexcept;
  [[nodiscard]] std::uint64_t due_ns() const noexcept;
  /// Everything sent is known to have come, and what came is acknowledged; or it has been waited
  /// for long enough. After step(true).
  [[nodiscard]] bool may_close() const noexcept { return may_close_; }

  /// As Link::try_send_by(); the gate to the node has a channel. By the poller.
  [[nodiscard]] SendState try_send_by(std::uint32_t node, std::uint16_t index,
                                      std::span<const Piece> pieces) noexcept;
  /// As Link::is_through(); true where there is no link yet. Any thread.
  [[nodiscard]] bool is_through(std::uint32_t node, std::uint16_t index) const noexcept {
    const Link* const made = find(node);
    return made == nullptr || made->is_through(index);
  }
  /// As Link::know(); the link need not be in use yet. Any thread.
  void know(std::uint32_t node, std::uint16_t index, const WayCosts& costs) noexcept;
  /// How messages to a node are cut, by what is known. Any thread.
  [[nodiscard]] Cut cut(std::uint32_t node) noexcept;
  /// The rails to a node, as indices of drivers.
  [[nodiscard]] std::span<const Link::RailOpening> rails(std::uint32_t node) const noexcept {
    return openings_[node];
  }

  /// Any thread. The link to a node, if there is one and it is in use.
  [[nodiscard]] const Link* find(std::uint32_t node) const noexcept {
    return links_[node].load(std::memory_order_acquire);
  }

 private:
  Link& link(std::uint32_t node) noexcept;
  void give_up_ways() noexcept;

  std::atomic<bool> is_choice_told_{false};
  LinkShared shared_;
  Owner& owner_;
  Capabilities capabilities_;
  LentParts lent_parts_;
  std::vector<std::vector<Link::RailOpening>> openings_;  // By node. Constant after add().
  // By node; made by whoever needs it first, under make_lock_; released by the store.
  std::unique_ptr<std::atomic<Link*>[]> links_;
  SpinLock make_lock_;
  std::vector<std::unique_ptr<Link>> made_ STERNA_GUARDED_BY(make_lock_);
  struct Known {
    std::uint16_t rail;  // Index of the driver.
    WayCosts costs;
  };
  std::vector<std::vector<Known>> known_costs_ STERNA_GUARDED_BY(make_lock_);  // By node.
  // The poller's: nodes whose link exists, and of them those reported lost.
  std::vector<std::uint32_t> known_;
  std::vector<bool> is_reported_;
  std::atomic<std::uint32_t> made_count_{0};
  std::uint64_t closing_since_ns_ = kNever;
  std::uint64_t quiet_since_ns_ = kNever;
  bool has_lossy_ = false;
  bool may_close_ = false;
};

}  // namespace sterna::net
