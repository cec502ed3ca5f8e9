// Moves ranks between nodes: one handshake, never two copies of a rank, never none.
//
//   source                                destination
//   (PREPARE, while it runs    ---------> opens and maps its memory, fills its page tables
//                              <--------- done)
//   the rank freezes itself
//   OFFER shape                ---------> maps the slot, expects the rank's messages
//                              <--------- ACCEPT (how the bytes come) or REFUSE
//   no answer in time: CANCEL  ---------> forgets the offer, or refuses it when it gets to it
//   bytes, if they are copied  ---------> into the live extents, which the offer names
//   RECEIVED?                  ---------> all bytes here
//                              <--------- yes
//   COMMIT                     ---------> installs the rank and lets it run
//   forgets the rank
//
// On one host the memory itself is opened by the destination: nothing is copied, a move that others
// ask for is prepared ahead, and the node that a rank leaves keeps it mapped in case it comes back
// (ahead.cc), which only saves time. There a rank is given without an offer (take.cc).
//
// Until it sends COMMIT the source owns the rank: whatever fails before (the destination dies,
// refuses, does not answer in time) lets the rank go on where it was, and CANCEL takes the offer
// back, by its number: also one that the destination has heard and not yet looked at. After it has
// said "all bytes here" the destination only installs the rank on COMMIT, or when the source dies,
// which then cannot run it any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/annotate.h"
#include "base/log.h"
#include "base/spin_lock.h"
#include "memory/iso_space.h"
#include "migration/fault.h"
#include "migration/offer.h"
#include "migration/rank_host.h"
#include "migration/refusal.h"
#include "migration/residents.h"
#include "migration/steps.h"
#include "migration/withdrawn.h"
#include "net/transport.h"
#include "rpc/rpc.h"
#include "threads/team.h"

namespace sterna::migration {

struct MigratorOptions {
  memory::IsoSpace* space = nullptr;  // All outlive the Migrator.
  threads::Team* team = nullptr;
  net::Transport* transport = nullptr;
  progress::Progress* progress = nullptr;
  rpc::Rpc* rpc = nullptr;
  RankHost* host = nullptr;
  Residents* residents = nullptr;
  const Log* log = nullptr;
  std::uint64_t fingerprint = 0;  // Ranks move between equal ones only; 0: none from here.
  std::string fault_step;         // For tests: see fault.h.
  // A destination that does not answer, or takes no byte, for so long is as good as dead, and the
  // rank stays. By the clock of the team.
  std::uint64_t answer_ns = 10'000'000'000;
};

struct MigratorStatistics {
  std::uint64_t arrived = 0;
  std::uint64_t left = 0;
  std::uint64_t refused = 0;       // Asked, and stayed.
  std::uint64_t bytes_copied = 0;  // Of ranks that left by copy.
  std::uint64_t bytes_shared = 0;  // Of ranks that left with their memory.
};

/// One a node.
class Migrator {
 public:
  /// Registers its services with rpc: before the first poll.
  explicit Migrator(MigratorOptions options);
  ~Migrator();
  Migrator(const Migrator&) = delete;
  Migrator& operator=(const Migrator&) = delete;

  /// Called by a rank for itself, in runtime code, at a safe point. Comes back on `to_node`, or
  /// here when it cannot move: the reason is told to the RankHost. Switches.
  void move_self(memory::RankSlot& slot, std::uint32_t to_node) noexcept;

  /// Asks a rank of this node to move at its next safe point. False: it is not here.
  bool ask(std::uint32_t rank, std::uint32_t to_node) noexcept;

  /// The same for a rank that computes meanwhile: first the destination maps its memory, if that is
  /// shared, and the rank is asked when that is done. Does not wait.
  bool ask_ahead(std::uint32_t rank, std::uint32_t to_node) noexcept;

  /// The rank ends on this node: what was prepared for it elsewhere is dropped.
  void rank_ends(std::uint32_t rank) noexcept;

  /// The process of `node` has ended: what came from there is completed or given up. By the poller.
  void lose_peer(std::uint32_t node) noexcept;

  /// A rank was committed to another node, and this one is not done with it yet.
  [[nodiscard]] bool is_departing() noexcept {
    const SpinGuard guard{lock_};
    return !departing_.empty();
  }

  /// The team has stopped, all ranks have ended: tells of the last moves what their movers did not
  /// come to tell.
  void tell_last_moves() noexcept;

  [[nodiscard]] MigratorStatistics statistics() const noexcept;

 private:
  struct Departure;
  struct Arrival;
  struct AheadTask;
  struct RankTask;
  enum class ClaimFor : std::uint8_t { commit, cancel, drop, take };
  /// A rank of this node that somebody was asked to prepare for.
  struct Ahead {
    std::uint32_t to_node;
    std::uint64_t asker = 0;  // Number of the thread that asks it now, and then the rank; 0: none.
    memory::RankShape shape{};  // As it is mapped there, as far as is known here.
  };

  /// A rank that was committed to `to_node`.
  struct Departing {
    std::uint32_t to_node;
    bool is_dropped = false;        // It has ended there, or gone on: nothing is kept for it.
    bool is_wanted = false;         // It comes back, and waits until its memory here is unmapped.
    std::uint64_t untold_move = 0;  // Given, and the launcher does not know; 0: it does.
  };

  // Source (departure.cc).
  static void begin_departure(threads::Thread& thread, void* departure);
  static void run_departure(void* departure);
  void depart(Departure& departure);
  [[nodiscard]] Result<> hand_over(Departure& departure);
  [[nodiscard]] Result<> send_bytes(Departure& departure, const Offer& offer,
                                    std::uint64_t landing_id);
  [[nodiscard]] Result<> commit(Departure& departure);
  void note_memory(Departure& departure);
  void tell_move(std::uint32_t rank) noexcept;
  void go_on_here(Departure& departure, const Error& reason);
  void forget_departing(std::uint32_t rank);
  void stay(memory::RankSlot& slot, std::uint32_t to_node, Refusal refusal,
            const std::string& detail) noexcept;
  [[nodiscard]] Refusal why_not(memory::RankSlot& slot, std::uint32_t to_node,
                                std::string& detail) noexcept;
  [[nodiscard]] Offer make_offer(memory::RankSlot& slot, std::uint32_t to_node);
  void add_extents(memory::RankSlot& slot, Offer& offer);
  [[nodiscard]] Result<> send_bulk(Departure& departure, const Offer& offer,
                                   std::uint64_t landing_id);
  [[nodiscard]] std::uint64_t answer_deadline_ns() const noexcept {
    return options_.team->now_ns() + options_.answer_ns;
  }
  [[nodiscard]] Result<Acceptance> send_offer(Departure& departure, Offer& offer);

  // Source, the short way (take.cc).
  void wake_destination(std::uint32_t to_node) noexcept;
  [[nodiscard]] bool is_mapped_there(const Departure& departure);
  [[nodiscard]] Result<> give(Departure& departure, Offer* description);
  [[nodiscard]] Result<> send_away(Departure& departure, bool& is_given);

  // Source, ahead of the move (ahead.cc).
  [[nodiscard]] bool make_ahead_offer(std::uint32_t rank, std::uint32_t to_node, Offer& offer);
  static void run_ahead(void* task);
  [[nodiscard]] bool request_move(std::uint32_t rank, std::uint32_t to_node) noexcept;
  void notice_request(std::uint32_t rank) noexcept;
  void withdraw_request(std::uint32_t rank, std::uint32_t to_node) noexcept;
  void prepare_there(const AheadTask& task);
  [[nodiscard]] Ahead* find_asked(const AheadTask& task) STERNA_REQUIRES(lock_);
  void drop_ahead(std::uint32_t rank, std::uint32_t but_node = kNoNode) noexcept;
  [[nodiscard]] bool keep_mapped(const Departure& departure);
  void note_kept(const Arrival& arrival);

  // Destination (arrival.cc; on_prepare and on_drop: ahead.cc; on_wake, on_take, on_gift: take.cc).
  static Result<rpc::Bytes> on_prepare(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_drop(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_wake(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_take(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_gift(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_offer(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_received(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_commit(void* self, const rpc::Request& request);
  static Result<rpc::Bytes> on_cancel(void* self, const rpc::Request& request);
  [[nodiscard]] Result<> map_arrival(Arrival& arrival, const Offer& offer);
  [[nodiscard]] Result<> map_anew(Arrival& arrival, const Offer& offer);
  void expect_arrival(Arrival& arrival, const Offer& offer);
  [[nodiscard]] Result<Arrival*> take_in(const rpc::Request& request, const Offer& offer);
  [[nodiscard]] Result<Arrival*> open_arrival(const Offer& offer, std::uint32_t from_node,
                                              bool is_ahead);
  [[nodiscard]] Result<Arrival*> try_open(const Offer& offer, std::uint32_t from_node,
                                          bool is_ahead, bool& must_retry, Arrival*& stale)
      STERNA_REQUIRES(lock_);
  [[nodiscard]] bool must_hurry(const Arrival& arrival) noexcept;
  [[nodiscard]] bool is_as_given(const Arrival& arrival, std::uint64_t given) const noexcept;
  void put_back(Arrival& arrival);
  [[nodiscard]] bool take_opened(Arrival& arrival, std::uint64_t given);
  [[nodiscard]] Result<rpc::Bytes> accept(Arrival& arrival);
  void install(Arrival& arrival);
  void install_taken(Arrival& arrival);
  void give_up(Arrival& arrival);
  void unmap_in_steps(std::uint32_t rank);
  [[nodiscard]] bool is_waited_for(std::uint32_t rank);
  static void run_unmapping(void* task);
  [[nodiscard]] Arrival* claim(std::uint32_t rank, std::uint32_t from_node, ClaimFor what);
  [[nodiscard]] bool is_whole(const Arrival& arrival) const noexcept;
  void erase(std::uint32_t rank);

  const MigratorOptions options_;
  const Logger log_;
  const FaultPoint fault_;
  SpinLock lock_;
  // By rank; from the offer until the rank is installed or all of it is gone again.
  std::map<std::uint32_t, std::unique_ptr<Arrival>> arrivals_ STERNA_GUARDED_BY(lock_);
  // Ranks that were committed to another node, until their memory is unmapped here or kept.
  std::map<std::uint32_t, Departing> departing_ STERNA_GUARDED_BY(lock_);
  // By rank, which is here; until it has gone, stays or ends.
  std::map<std::uint32_t, Ahead> ahead_ STERNA_GUARDED_BY(lock_);
  std::uint64_t last_asker_ STERNA_GUARDED_BY(lock_) = 0;
  std::vector<bool> lost_ STERNA_GUARDED_BY(lock_);  // By node.
  std::atomic<std::uint64_t> last_offer_{0};         // Relaxed: numbers differ, that is all.
  WithdrawnOffers withdrawn_ STERNA_GUARDED_BY(lock_);
  // Counters: relaxed, they order nothing.
  std::atomic<std::uint64_t> arrived_{0}, left_{0}, refused_{0}, copied_{0}, shared_{0};
};

}  // namespace sterna::migration
