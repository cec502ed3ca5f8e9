// The destination's half of a move: map, receive, install; or give it up.
#include <fcntl.h>

#include "memory/rank_slot.h"
#include "migration/migrator.h"
#include "migration/steps.h"
#include "threads/this_thread.h"

namespace sterna::migration {

/// A rank on its way here. Guard: lock_ while it is in arrivals_, else whoever took it out.
struct Migrator::Arrival {
  std::uint32_t rank = 0;
  std::uint32_t from_node = 0;
  memory::RankSlot* slot = nullptr;  // Null: not mapped yet.
  bool is_memory_shared = false;
  bool is_received = false;  // We said "all bytes here": only a dead source or COMMIT ends this.
  bool is_waited_for = false;  // on_received waits for its bytes, and gives it up if need be.
  bool is_cancelled = false;   // The source took the offer back, or died, meanwhile.
  net::Landing landing;
};

namespace {

/// The memory of a slot of another process of this host, if the system lets us open it.
FileDescriptor open_memory(const Offer& offer) {
  if (offer.memory_fd < 0 || offer.source_pid == 0) {
    return {};
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.source_pid, offer.memory_fd);
  return FileDescriptor{
      static_cast<int>(system_call([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }))};
}

}  // namespace

Migrator::Migrator(MigratorOptions options)
    : options_{std::move(options)},
      log_{options_.log == nullptr ? Logger{} : Logger{*options_.log, "migration"}},
      fault_{options_.fault_step} {
  rpc::Rpc& rpc = *options_.rpc;
  rpc.add_service(kOfferService, rpc::RunIn::thread, on_offer, this);
  rpc.add_service(kReceivedService, rpc::RunIn::thread, on_received, this);
  // In the poll: their order with the death of the source is what decides.
  rpc.add_service(kCommitService, rpc::RunIn::poll, on_commit, this);
  rpc.add_service(kCancelService, rpc::RunIn::poll, on_cancel, this);
}

Migrator::~Migrator() = default;

bool Migrator::ask(std::uint32_t rank, std::uint32_t to_node) noexcept {
  return options_.residents->with(rank, [&](memory::RankSlot& slot) {
    slot.move_request.store(static_cast<std::int32_t>(to_node), std::memory_order_release);
    threads::unpark(*slot.thread);  // A rank that waits notices at once.
  });
}

Result<> Migrator::map_arrival(Arrival& arrival, const Offer& offer) {
  FileDescriptor memory = open_memory(offer);
  arrival.is_memory_shared = memory.is_open();
  Result<memory::RankSlot*> slot = options_.space->adopt_rank(offer.shape, std::move(memory));
  if (!slot) {
    return slot.error();
  }
  arrival.slot = slot.value();
  options_.transport->expect(arrival.rank);
  if (!arrival.is_memory_shared) {
    options_.transport->expect_bulk(arrival.from_node, offer.extents, arrival.landing);
  }
  return Done{};
}

Result<rpc::Bytes> Migrator::on_offer(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  migrator.fault_.reached("destination:offered");
  Result<Offer> offer = decode_offer(request.arguments);
  if (!offer) {
    return offer.error();
  }
  const std::uint32_t rank = offer.value().shape.rank;
  const net::JobMap& job = migrator.options_.transport->job();
  if (rank >= job.rank_count || migrator.options_.space->has_rank(rank)) {
    return Error{Errc::refused, fmt::format("rank {} cannot come to node {}: it is there", rank,
                                            job.node_index)};
  }
  if (offer.value().fingerprint != migrator.options_.fingerprint) {
    return Error{Errc::unsupported,
                 fmt::format("nodes {} and {} do not have the same binaries at the same addresses",
                             request.from_node, job.node_index)};
  }
  auto arrival = std::make_unique<Arrival>();
  arrival->rank = rank;
  arrival->from_node = request.from_node;
  if (Result<> mapped = migrator.map_arrival(*arrival, offer.value()); !mapped) {
    return mapped.error();
  }
  migrator.fault_.reached("destination:mapped");
  const Acceptance acceptance{.is_memory_shared = arrival->is_memory_shared,
                              .landing_id = arrival->landing.id};
  const SpinGuard guard{migrator.lock_};
  migrator.arrivals_[rank] = std::move(arrival);
  return encode(acceptance);
}

Result<rpc::Bytes> Migrator::on_received(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  const Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank.has_value()) {
    return rank.error();
  }
  Arrival* arrival = nullptr;
  {
    const SpinGuard guard{migrator.lock_};
    const auto found = migrator.arrivals_.find(Result<std::uint32_t>{rank}.value());
    if (found == migrator.arrivals_.end() || found->second->from_node != request.from_node) {
      return Error{Errc::refused, "no such rank is on its way here"};
    }
    arrival = found->second.get();
    arrival->is_waited_for = true;  // Until we take this back, nobody else ends it.
  }
  if (!arrival->is_memory_shared) {
    arrival->landing.done.wait(*migrator.options_.progress);
  }
  const bool is_whole = arrival->landing.fault == net::Fault::none &&
                        arrival->slot->magic == memory::RankSlot::kMagic &&
                        arrival->slot->rank == arrival->rank;
  migrator.fault_.reached("destination:received");
  std::unique_ptr<Arrival> ended;
  {
    const SpinGuard guard{migrator.lock_};
    arrival->is_waited_for = false;
    if (is_whole && !arrival->is_cancelled) {
      arrival->is_received = true;
      return rpc::Bytes{};
    }
    ended = std::move(migrator.arrivals_[arrival->rank]);
    migrator.arrivals_.erase(arrival->rank);
  }
  migrator.give_up(std::move(ended), request.from_node);
  return Error{Errc::closed, "the bytes of the rank did not all arrive"};
}

std::unique_ptr<Migrator::Arrival> Migrator::take_arrival(std::uint32_t rank,
                                                          std::uint32_t from_node) {
  const SpinGuard guard{lock_};
  const auto found = arrivals_.find(rank);
  if (found == arrivals_.end() || found->second->from_node != from_node) {
    return nullptr;
  }
  if (found->second->is_waited_for) {
    found->second->is_cancelled = true;
    return nullptr;
  }
  std::unique_ptr<Arrival> arrival = std::move(found->second);
  arrivals_.erase(found);
  return arrival;
}

Result<rpc::Bytes> Migrator::on_commit(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank) {
    return rank.error();
  }
  std::unique_ptr<Arrival> arrival = migrator.take_arrival(rank.value(), request.from_node);
  if (arrival == nullptr) {
    return Error{Errc::refused, "a rank is committed that was not on its way here"};
  }
  migrator.install(std::move(arrival));
  return rpc::Bytes{};
}

Result<rpc::Bytes> Migrator::on_cancel(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank) {
    return rank.error();
  }
  // Nothing here: the offer was refused, or never came.
  if (auto arrival = migrator.take_arrival(rank.value(), request.from_node)) {
    migrator.give_up(std::move(arrival), request.from_node);
  }
  return rpc::Bytes{};
}

void Migrator::install(std::unique_ptr<Arrival> arrival) {
  memory::RankSlot& slot = *arrival->slot;
  fault_.reached("destination:committed");
  Result<> arrived = options_.host->arrive(slot);
  check(arrived.has_value(), "a node of the same fingerprint can run the rank");
  slot.moves.fetch_add(1, std::memory_order_relaxed);
  options_.residents->add(slot);
  options_.host->moved_in(slot.rank);
  options_.transport->install(slot.rank, static_cast<net::Endpoint*>(slot.endpoint));
  arrived_.fetch_add(1, std::memory_order_relaxed);
  options_.team->reinstall(slot.thread);
}

void Migrator::give_up(std::unique_ptr<Arrival> arrival, std::uint32_t node) {
  if (!arrival->is_memory_shared) {
    // Bytes that are arriving at this moment end within this poll or the next.
    while (!arrival->landing.done.done() && !options_.transport->withdraw_bulk(arrival->landing)) {
    }
  }
  options_.transport->unexpect(arrival->rank, node);
  options_.space->unmap_rank(arrival->rank);
}

void Migrator::lose_peer(std::uint32_t node) noexcept {
  for (;;) {
    std::unique_ptr<Arrival> arrival;
    {
      const SpinGuard guard{lock_};
      for (auto entry = arrivals_.begin(); entry != arrivals_.end(); ++entry) {
        if (entry->second->from_node != node) {
          continue;
        }
        entry->second->is_cancelled = true;
        if (!entry->second->is_waited_for) {
          arrival = std::move(entry->second);
          arrivals_.erase(entry);
          break;
        }
      }
    }
    if (arrival == nullptr) {
      return;
    }
    if (arrival->is_received) {
      // The source is dead and can neither run nor cancel it: the rank is ours.
      install(std::move(arrival));
    } else {
      log_.error("rank {} was lost with node {} before all of it had arrived", arrival->rank, node);
      give_up(std::move(arrival), node);
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
