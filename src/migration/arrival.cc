// The destination's half of a move: map, receive, install; or give it up.
#include "migration/arrival.h"

#include <sys/syscall.h>

#include "base/probe.h"
#include "base/syscall.h"
#include "memory/rank_slot.h"
#include "migration/migrator.h"
#include "migration/steps.h"
#include "threads/observation/traced.h"
#include "threads/this_thread.h"

namespace sterna::migration {
namespace {

// To unmap memory: about what two steps take.
constexpr std::uint64_t kUnmapTurnNs = 100'000;

}  // namespace

Migrator::Migrator(MigratorOptions options)
    : options_{std::move(options)},
      log_{options_.log == nullptr ? Logger{} : Logger{*options_.log, "migration"}},
      fault_{options_.fault_step, options_.transport->job().node_index},
      lost_(options_.transport->job().node_count) {
  rpc::Rpc& rpc = *options_.rpc;
  rpc.add_service(kPrepareService, rpc::RunIn::thread, on_prepare, this);
  rpc.add_service(kGiftService, rpc::RunIn::thread, on_gift, this);
  rpc.add_service(kOfferService, rpc::RunIn::thread, on_offer, this);
  rpc.add_service(kReceivedService, rpc::RunIn::thread, on_received, this);
  rpc.add_service(kWakeService, rpc::RunIn::poll, on_wake, this);
  // In the poll: their order with the death of the source is what decides.
  rpc.add_service(kTakeService, rpc::RunIn::poll, on_take, this);
  rpc.add_service(kCommitService, rpc::RunIn::poll, on_commit, this);
  rpc.add_service(kCancelService, rpc::RunIn::poll, on_cancel, this);
  rpc.add_service(kDropService, rpc::RunIn::poll, on_drop, this);
}

Migrator::~Migrator() = default;

void Migrator::expect_arrival(Arrival& arrival, const Offer& offer) {
  options_.transport->expect(arrival.rank);
  arrival.is_expected = true;
  if (!arrival.is_memory_shared) {
    options_.transport->expect_bulk(arrival.from_node, offer.extents, arrival.landing);
  }
}

void Migrator::erase(std::uint32_t rank) {
  const SpinGuard guard{lock_};
  arrivals_.erase(rank);
}

/// Of an offer or a gift. Fails with unreachable, and nothing is left, where the rank's memory
/// cannot be opened.
Result<Migrator::Arrival*> Migrator::take_in(const rpc::Request& request, const Offer& offer) {
  fault_.reached("destination:offered");
  Result<Arrival*> opened = open_arrival(offer, request.from_node, false);
  if (!opened) {
    return opened;
  }
  Arrival& arrival = *opened.value();
  if (Result<> mapped = map_arrival(arrival, offer); !mapped) {
    erase(arrival.rank);
    return mapped.error();
  }
  fault_.reached("destination:mapped");
  return opened;
}

Result<rpc::Bytes> Migrator::on_offer(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<Offer> offer = decode_offer(request.arguments);
  if (!offer) {
    return offer.error();
  }
  Result<Arrival*> arrival = migrator.take_in(request, offer.value());
  if (!arrival && arrival.error().code == Errc::unreachable) {
    return encode(Acceptance{.way = Way::not_openable});
  }
  if (!arrival) {
    return arrival.error();
  }
  migrator.expect_arrival(*arrival.value(), offer.value());
  if (arrival.value()->is_memory_shared) {
    migrator.fault_.reached("destination:received");
  }
  return migrator.accept(*arrival.value());
}

Result<rpc::Bytes> Migrator::accept(Arrival& arrival) {
  const Acceptance acceptance{.way = arrival.is_memory_shared ? Way::shared : Way::copied,
                              .landing_id = arrival.landing.id};
  {
    const SpinGuard guard{lock_};
    // Memory that is opened is here with all its bytes: accepting is receiving.
    const bool is_good = !arrival.is_cancelled && (!arrival.is_memory_shared || is_whole(arrival));
    arrival.phase = !is_good                   ? Arrival::Phase::ending
                    : arrival.is_memory_shared ? Arrival::Phase::received
                                               : Arrival::Phase::accepted;
    if (is_good) {
      options_.team->expect_soon(kNextStepNs);
      return encode(acceptance);
    }
  }
  give_up(arrival);
  return Error{Errc::closed, "the offer was taken back, or its memory was not the rank's"};
}

bool Migrator::is_whole(const Arrival& arrival) const noexcept {
  return arrival.landing.fault == net::Fault::none &&
         arrival.slot->magic == memory::RankSlot::kMagic && arrival.slot->rank == arrival.rank;
}

Result<rpc::Bytes> Migrator::on_received(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank) {
    return rank.error();
  }
  Arrival* arrival = nullptr;
  {
    const SpinGuard guard{migrator.lock_};
    const auto found = migrator.arrivals_.find(rank.value());
    if (found == migrator.arrivals_.end() || found->second->from_node != request.from_node ||
        found->second->phase != Arrival::Phase::accepted) {
      return Error{Errc::refused, "no such rank is on its way here"};
    }
    arrival = found->second.get();
    arrival->phase = Arrival::Phase::receiving;  // Until we change it, nobody else ends this.
  }
  arrival->landing.done.wait(*migrator.options_.progress);
  const bool is_whole = migrator.is_whole(*arrival);
  migrator.fault_.reached("destination:received");
  {
    const SpinGuard guard{migrator.lock_};
    if (is_whole && !arrival->is_cancelled) {
      arrival->phase = Arrival::Phase::received;
      return rpc::Bytes{};
    }
    arrival->phase = Arrival::Phase::ending;
  }
  migrator.give_up(*arrival);
  return Error{Errc::closed, "the bytes of the rank did not all arrive"};
}

// Null: there is none in a phase that lets it end now.
Migrator::Arrival* Migrator::claim(std::uint32_t rank, std::uint32_t from_node, ClaimFor what) {
  const SpinGuard guard{lock_};
  const auto found = arrivals_.find(rank);
  if (found == arrivals_.end() || found->second->from_node != from_node) {
    return nullptr;
  }
  Arrival& arrival = *found->second;
  if (what == ClaimFor::drop && !arrival.is_ahead) {
    return nullptr;  // The rank has left for here.
  }
  if (what == ClaimFor::take) {
    if (arrival.phase != Arrival::Phase::prepared) {
      return nullptr;  // An offer will do.
    }
    arrival.phase = Arrival::Phase::ending;
    return &arrival;
  }
  const bool is_at_rest = arrival.phase == Arrival::Phase::received ||
                          (what != ClaimFor::commit && (arrival.phase == Arrival::Phase::accepted ||
                                                        arrival.phase == Arrival::Phase::prepared));
  if (!is_at_rest) {
    arrival.is_cancelled = true;
    return nullptr;
  }
  arrival.phase = Arrival::Phase::ending;
  return &arrival;
}

Result<rpc::Bytes> Migrator::on_commit(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank) {
    return rank.error();
  }
  Arrival* arrival = migrator.claim(rank.value(), request.from_node, ClaimFor::commit);
  if (arrival == nullptr) {
    return Error{Errc::refused, "a rank is committed that was not on its way here"};
  }
  migrator.install(*arrival);
  return rpc::Bytes{};
}

Result<rpc::Bytes> Migrator::on_cancel(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<Cancel> cancel = decode_cancel(request.arguments);
  if (!cancel) {
    return cancel.error();
  }
  const std::uint32_t rank = cancel.value().rank;
  if (Arrival* arrival = migrator.claim(rank, request.from_node, ClaimFor::cancel)) {
    migrator.give_up(*arrival);
  }
  const SpinGuard guard{migrator.lock_};
  const auto found = migrator.arrivals_.find(rank);
  if (found == migrator.arrivals_.end() || found->second->offer_number != cancel.value().number) {
    // Perhaps the thread of the offer has not got so far.
    migrator.withdrawn_.add(request.from_node, rank, cancel.value().number);
  }
  return rpc::Bytes{};
}

void Migrator::install(Arrival& arrival) {
  memory::RankSlot& slot = *arrival.slot;
  fault_.reached("destination:committed");
  if (!arrival.is_memory_shared) {
    Result<> prepared = options_.host->prepare(slot.rank);
    check(prepared.has_value(), "a node of the same fingerprint can run the rank");
  }
  options_.team->take_over(*slot.thread);  // Before others find it, by the two that follow.
  options_.host->arrive(slot);
  slot.moves.fetch_add(1, std::memory_order_relaxed);
  options_.residents->add(slot);
  options_.transport->install(slot.rank, static_cast<net::Endpoint*>(slot.endpoint));
  arrived_.fetch_add(1, std::memory_order_relaxed);
  STERNA_PROBE2(rank_arrive, slot.rank, arrival.from_node);
  threads::trace_event(trace::Kind::arrives, trace::key_of(trace::KeyClass::rank, slot.rank),
                       arrival.from_node);
  note_kept(arrival);
  erase(slot.rank);  // Before it runs: it may leave and come back at once.
  options_.team->reinstall(slot.thread);
}

void Migrator::give_up(Arrival& arrival) {
  if (arrival.is_expected && !arrival.is_memory_shared) {
    // False while bytes are copied in, under a lock that is held for one packet.
    while (!arrival.landing.done.done() && !options_.transport->withdraw_bulk(arrival.landing)) {
    }
  }
  if (arrival.is_expected) {
    options_.transport->unexpect(arrival.rank, arrival.from_node);
  }
  const std::uint32_t rank = arrival.rank;
  if (arrival.is_memory_shared) {
    // We may be inside a poll. Whoever brings the rank again waits for the thread, and hurries it.
    {
      const SpinGuard guard{lock_};
      arrival.is_given_up = true;
    }
    auto task = std::make_unique<RankTask>(RankTask{this, rank});
    if (options_.team->spawn({.name = "unmapper", .detached = true, .may_wait = false},
                             run_unmapping, task.get())) {
      task.release();  // The thread's now.
      return;
    }
  }
  options_.space->unmap_rank(rank);
  erase(rank);
}

void Migrator::run_unmapping(void* argument) {
  const std::unique_ptr<RankTask> task{static_cast<RankTask*>(argument)};
  task->migrator->unmap_in_steps(task->rank);
  task->migrator->erase(task->rank);
}

bool Migrator::is_waited_for(std::uint32_t rank) {
  const SpinGuard guard{lock_};
  const auto departing = departing_.find(rank);
  const auto arrival = arrivals_.find(rank);
  return (departing != departing_.end() && departing->second.is_wanted) ||
         (arrival != arrivals_.end() && arrival->second->is_wanted);
}

/// User threads go first, and other nodes on this processor; but not when the rank comes back: it
/// is frozen then, and each time the processor is given away takes somebody's time slice, so that
/// all the steps take a hundred times as long as the work itself.
void Migrator::unmap_in_steps(std::uint32_t rank) {
  memory::PopulateCursor cursor;
  // By time: a step costs little where nothing is in the page tables.
  std::uint64_t turn_ns = options_.team->now_ns();
  while (!is_waited_for(rank) && options_.space->depopulate_rank(rank, cursor)) {
    if (options_.team->now_ns() - turn_ns >= kUnmapTurnNs) {
      raw_system_call(SYS_sched_yield);
      threads::yield();  // Last: who comes back may be among the threads that run now.
      turn_ns = options_.team->now_ns();
    }
  }
  options_.space->unmap_rank(rank);
}

void Migrator::lose_peer(std::uint32_t node) noexcept {
  for (;;) {
    Arrival* arrival = nullptr;
    bool is_received = false;
    {
      const SpinGuard guard{lock_};
      lost_[node] = true;
      for (const auto& [rank, candidate] : arrivals_) {
        if (candidate->from_node != node || candidate->phase == Arrival::Phase::ending) {
          continue;
        }
        candidate->is_cancelled = true;
        is_received = candidate->phase == Arrival::Phase::received;
        if (is_received || candidate->phase == Arrival::Phase::accepted ||
            candidate->phase == Arrival::Phase::prepared) {
          candidate->phase = Arrival::Phase::ending;
          arrival = candidate.get();
          break;
        }
      }
    }
    if (arrival == nullptr) {
      return;
    }
    if (is_received) {
      // The source is dead and can neither run nor cancel it: the rank is ours. If its COMMIT
      // comes after this, it finds nothing to do.
      install(*arrival);
    } else if (arrival->is_ahead) {
      give_up(*arrival);  // It was not on its way here.
    } else {
      log_.error("rank {} was lost with node {} before all of it had arrived", arrival->rank, node);
      give_up(*arrival);
    }
  }
}

MigratorStatistics Migrator::statistics() const noexcept {
  return {.arrived = arrived_.load(std::memory_order_relaxed),
          .left = left_.load(std::memory_order_relaxed),
          .refused = refused_.load(std::memory_order_relaxed),
          .bytes_copied = copied_.load(std::memory_order_relaxed),
          .bytes_shared = shared_.load(std::memory_order_relaxed)};
}

}  // namespace sterna::migration
