// Preparing a move while the rank still runs at the source: the destination opens and maps its
// memory and fills its page tables, so that the rank is away for the hand-over alone. Both halves.
//
// The node that a rank leaves is prepared for its coming back: it keeps the memory mapped, as if
// the node where the rank is now had asked for that, and that node counts it among those it has
// asked.
//
// A preparation is a hint. It is dropped by DROP when the rank stays, ends, or goes elsewhere, and
// with the source; an offer of another node finds it stale. What decides a move is the offer, which
// finds the memory mapped or maps it. DROP never ends an offer: the rank may have left on its own
// meanwhile, to the very node that was asked, and only its departure may take that offer back.
#include <algorithm>

#include "memory/rank_slot.h"
#include "migration/arrival.h"
#include "migration/migrator.h"
#include "migration/steps.h"
#include "threads/this_thread.h"

namespace sterna::migration {
namespace {

// Room for rpc on the stack of the thread that asks the destination.
constexpr std::size_t kAskerStackBytes = 248 << 10;
// A slot is some tens of mappings, of which the system gives a process 65,530 by default.
constexpr std::ptrdiff_t kKeptMax = 256;

}  // namespace

/// Of the thread that asks the destination.
struct Migrator::AheadTask {
  Migrator* migrator;
  std::uint32_t rank;
  std::uint64_t number;  // Of the asker.
};

// --- Source -------------------------------------------------------------------------------------

bool Migrator::make_ahead_offer(std::uint32_t rank, std::uint32_t to_node, Offer& offer) {
  const net::JobMap& job = options_.transport->job();
  if (options_.fingerprint == 0 || to_node >= job.node_count || to_node == job.node_index) {
    return false;
  }
  // With the lock of the residents: the slot is mapped, and stays so.
  options_.residents->with(rank, [&](memory::RankSlot& slot) {
    if (!is_held(slot)) {
      offer = make_offer(slot, to_node);
    }
  });
  offer.expires_ns = answer_deadline_ns();
  return offer.memory_fd >= 0;
}

bool Migrator::ask_ahead(std::uint32_t rank, std::uint32_t to_node) noexcept {
  if (Offer offer; !make_ahead_offer(rank, to_node, offer)) {
    drop_ahead(rank);
    return ask(rank, to_node);
  }
  bool was_elsewhere = false;
  std::uint32_t old_node = 0;
  std::uint64_t number = 0;
  {
    const SpinGuard guard{lock_};
    const auto [place, ignored] = ahead_.try_emplace(rank, Ahead{.to_node = to_node});
    Ahead& ahead = place->second;
    if (ahead.asker != 0) {
      ahead.to_node = to_node;  // Its thread sees that when the first destination has answered.
      return true;
    }
    was_elsewhere = ahead.to_node != to_node;
    old_node = ahead.to_node;
    if (was_elsewhere) {
      withdraw_request(rank, old_node);
    }
    number = ++last_asker_;
    ahead = {to_node, number, was_elsewhere ? memory::RankShape{} : ahead.shape};
  }
  if (was_elsewhere) {
    (void)options_.rpc->post(old_node, kDropService, encode_rank(rank));
  }
  auto task = std::make_unique<AheadTask>(AheadTask{this, rank, number});
  Result<threads::Thread*> thread = options_.team->spawn(
      {.name = "asker", .stack_bytes = kAskerStackBytes, .detached = true, .may_wait = false},
      run_ahead, task.get());
  if (!thread) {
    const SpinGuard guard{lock_};
    ahead_.erase(rank);
  } else {
    task.release();  // The thread's now.
    return true;
  }
  return ask(rank, to_node);
}

void Migrator::run_ahead(void* argument) {
  const std::unique_ptr<AheadTask> task{static_cast<AheadTask*>(argument)};
  task->migrator->prepare_there(*task);
}

/// Null: the order is void. The rank has ended, or gone on its own, and may be here again, with
/// another order, or with nothing but a node that keeps it mapped.
Migrator::Ahead* Migrator::find_asked(const AheadTask& task) {
  const auto found = ahead_.find(task.rank);
  return found != ahead_.end() && found->second.asker == task.number ? &found->second : nullptr;
}

void Migrator::prepare_there(const AheadTask& task) {
  const std::uint32_t rank = task.rank;
  bool is_here = false;
  for (bool is_settled = false; !is_settled;) {
    std::uint32_t to_node = 0;
    {
      const SpinGuard guard{lock_};
      const Ahead* const asked = find_asked(task);
      if (asked == nullptr) {
        return;
      }
      to_node = asked->to_node;
    }
    Offer offer;
    bool is_ready = false;
    if (make_ahead_offer(rank, to_node, offer)) {
      Result<rpc::Bytes> prepared =
          options_.rpc->call(to_node, kPrepareService, encode(offer), offer.expires_ns);
      is_ready = prepared.has_value();
      if (!prepared) {
        // The rank goes the slower way, and meets the reason there if there is one.
        log_.debug("rank {}: node {} prepares nothing: {}", rank, to_node, prepared.error().text);
      }
    }
    bool must_drop = false;
    {
      const SpinGuard guard{lock_};
      Ahead* const asked = find_asked(task);
      if (asked != nullptr && asked->to_node == to_node) {
        is_settled = true;
        // With the lock, so that the request of an order that has been overtaken is not left
        // behind.
        asked->asker = 0;
        is_here = request_move(rank, to_node);
        if (is_ready) {
          asked->shape = offer.shape;
        }
      } else {
        // Not what a later order has asked for there, nor what is kept there.
        const auto found = ahead_.find(rank);
        must_drop = found == ahead_.end() || found->second.to_node != to_node;
      }
    }
    if (must_drop) {
      (void)options_.rpc->post(to_node, kDropService, encode_rank(rank));
    }
  }
  fault_.reached("source:prepared");
  if (is_here) {
    notice_request(rank);
  } else {
    drop_ahead(rank);
  }
}

bool Migrator::request_move(std::uint32_t rank, std::uint32_t to_node) noexcept {
  return options_.residents->with(rank, [&](memory::RankSlot& slot) {
    slot.move_request.store(static_cast<std::int32_t>(to_node), std::memory_order_release);
  });
}

/// A rank that waits looks at its request at once.
void Migrator::notice_request(std::uint32_t rank) noexcept {
  options_.residents->with(rank, [](memory::RankSlot& slot) { threads::unpark(*slot.thread); });
  options_.transport->interrupt(rank);  // So does one that waits without looking at its token.
}

/// A later order holds: the rank has not followed the earlier one, and does not any more.
void Migrator::withdraw_request(std::uint32_t rank, std::uint32_t to_node) noexcept {
  options_.residents->with(rank, [&](memory::RankSlot& slot) {
    auto expected = static_cast<std::int32_t>(to_node);
    // Relaxed: nothing goes with "no request".
    slot.move_request.compare_exchange_strong(expected, -1, std::memory_order_relaxed);
  });
}

bool Migrator::ask(std::uint32_t rank, std::uint32_t to_node) noexcept {
  bool is_here = false;
  {
    const SpinGuard guard{lock_};
    const auto found = ahead_.find(rank);
    if (found != ahead_.end() && found->second.asker != 0) {
      // An earlier order whose destination has not answered yet: its asker finds it void, and drops
      // there what this one does not want.
      Ahead& ahead = found->second;
      const bool is_elsewhere = ahead.to_node != to_node;
      ahead = {to_node, 0, is_elsewhere ? memory::RankShape{} : ahead.shape};
    }
    is_here = request_move(rank, to_node);
  }
  notice_request(rank);
  return is_here;
}

void Migrator::drop_ahead(std::uint32_t rank, std::uint32_t but_node) noexcept {
  std::uint32_t to_node = 0;
  {
    const SpinGuard guard{lock_};
    const auto found = ahead_.find(rank);
    if (found == ahead_.end()) {
      return;
    }
    to_node = found->second.to_node;
    ahead_.erase(found);
  }
  if (to_node != but_node) {
    (void)options_.rpc->post(to_node, kDropService, encode_rank(rank));
  }
}

/// The rank is the other node's by now and may run there; its slot is not read. False: it is to be
/// unmapped.
bool Migrator::keep_mapped(const Departure& departure) {
  if (departure.memory_inode == 0) {
    return false;
  }
  auto kept = std::make_unique<Arrival>();
  const std::uint32_t rank = departure.shape.rank;
  kept->rank = rank;
  kept->from_node = departure.to_node;
  kept->phase = Arrival::Phase::prepared;
  kept->is_ahead = kept->is_kept = true;
  kept->slot = departure.slot;
  kept->shape = departure.shape;
  kept->memory_inode = departure.memory_inode;
  kept->memory_device = departure.memory_device;
  kept->is_memory_shared = true;
  const SpinGuard guard{lock_};
  // What ends the kept one from now on (DROP, the loss of the node) has not passed before.
  const auto departing = departing_.find(rank);
  if (departing->second.is_dropped || lost_[departure.to_node] ||
      std::ranges::count_if(arrivals_, [](const auto& entry) { return entry.second->is_kept; }) >=
          kKeptMax) {
    return false;
  }
  arrivals_.emplace(rank, std::move(kept));
  departing_.erase(departing);
  return true;
}

/// Where the rank comes from keeps it mapped, or else ignores our DROP.
void Migrator::note_kept(const Arrival& arrival) {
  const SpinGuard guard{lock_};
  if (arrival.is_memory_shared && !lost_[arrival.from_node]) {
    ahead_.insert_or_assign(arrival.rank,
                            Ahead{.to_node = arrival.from_node, .shape = arrival.shape});
  }
}

void Migrator::rank_ends(std::uint32_t rank) noexcept {
  drop_ahead(rank);
}

// --- Destination --------------------------------------------------------------------------------

bool Migrator::must_hurry(const Arrival& arrival) noexcept {
  const SpinGuard guard{lock_};
  return arrival.is_cancelled || arrival.is_wanted;
}

Result<rpc::Bytes> Migrator::on_prepare(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  migrator.fault_.reached("destination:preparing");
  Result<Offer> offer = decode_offer(request.arguments);
  if (!offer) {
    return offer.error();
  }
  Result<Arrival*> opened = migrator.open_arrival(offer.value(), request.from_node, true);
  if (!opened) {
    return opened.error();
  }
  Arrival* const arrival = opened.value();
  if (arrival == nullptr) {
    return rpc::Bytes{};  // It was prepared before.
  }
  if (Result<> mapped = migrator.map_arrival(*arrival, offer.value()); !mapped) {
    migrator.erase(arrival->rank);
    return mapped.error();
  }
  // User threads go first. What is left when the rank comes faults there page by page.
  memory::PopulateCursor cursor;
  while (!migrator.must_hurry(*arrival) &&
         migrator.options_.space->populate_rank(arrival->rank, cursor)) {
    threads::yield();
  }
  bool is_cancelled = false;
  {
    const SpinGuard guard{migrator.lock_};
    is_cancelled = arrival->is_cancelled;
    // From here on CANCEL, an offer, or the loss of the source may end it.
    arrival->phase = is_cancelled ? Arrival::Phase::ending : Arrival::Phase::prepared;
  }
  if (is_cancelled) {
    migrator.give_up(*arrival);
    return Error{Errc::closed, "the rank does not come any more"};
  }
  migrator.fault_.reached("destination:prepared");
  migrator.options_.team->expect_soon(kNextStepNs);
  return rpc::Bytes{};
}

Result<rpc::Bytes> Migrator::on_drop(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank) {
    return rank.error();
  }
  {
    const SpinGuard guard{migrator.lock_};
    const auto departing = migrator.departing_.find(rank.value());
    if (departing != migrator.departing_.end() && departing->second.to_node == request.from_node) {
      departing->second.is_dropped = true;
    }
  }
  if (Arrival* arrival = migrator.claim(rank.value(), request.from_node, ClaimFor::drop)) {
    migrator.give_up(*arrival);
  }
  return rpc::Bytes{};
}

}  // namespace sterna::migration
