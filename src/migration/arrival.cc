// The destination's half of a move: map, receive, install; or give it up.
#include <fcntl.h>
#include <sys/stat.h>

#include "memory/rank_slot.h"
#include "migration/migrator.h"
#include "migration/steps.h"
#include "threads/this_thread.h"

namespace sterna::migration {

/// A rank on its way here. Guard: lock_ for `phase` and `is_cancelled`; the rest belongs to whoever
/// works on the arrival in its phase.
struct Migrator::Arrival {
  enum class Phase : std::uint8_t {
    mapping,    // on_offer prepares its memory.
    accepted,   // Nobody works on it: its bytes may come.
    receiving,  // on_received waits for its bytes.
    received,   // We said "all bytes here": only a dead source or COMMIT installs it.
    ending,     // It is being installed, or given up.
  };
  std::uint32_t rank = 0;
  std::uint32_t from_node = 0;
  Phase phase = Phase::mapping;
  bool is_cancelled = false;  // The source took the offer back, or died, while we worked on it.
  memory::RankSlot* slot = nullptr;  // Null: not mapped yet.
  bool is_memory_shared = false;
  net::Landing landing;
};

namespace {

/// The memory of a slot of another process of this host, if the system lets us open it.
FileDescriptor open_memory(const Offer& offer) {
  if (offer.memory_fd < 0 || offer.source_pid == 0) {
    return {};
  }
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.source_pid, offer.memory_fd);
  FileDescriptor memory{
      static_cast<int>(system_call([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }))};
  struct ::stat status {};
  // In another namespace of processes the same number is somebody else.
  if (!memory.is_open() || ::fstat(memory.get(), &status) != 0 ||
      status.st_ino != offer.memory_inode) {
    return {};
  }
  return memory;
}

}  // namespace

Migrator::Migrator(MigratorOptions options)
    : options_{std::move(options)},
      log_{options_.log == nullptr ? Logger{} : Logger{*options_.log, "migration"}},
      fault_{options_.fault_step, options_.transport->job().node_index},
      lost_(options_.transport->job().node_count) {
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

bool Migrator::has_departing(std::uint32_t rank) noexcept {
  const SpinGuard guard{lock_};
  return departing_.contains(rank);
}

void Migrator::erase(std::uint32_t rank) {
  const SpinGuard guard{lock_};
  arrivals_.erase(rank);
}

Result<> Migrator::open_arrival(const Offer& offer, std::uint32_t from_node, Arrival*& arrival) {
  const std::uint32_t rank = offer.shape.rank;
  const net::JobMap& job = options_.transport->job();
  if (rank >= job.rank_count) {
    return Error{Errc::refused, fmt::format("there is no rank {}", rank)};
  }
  if (offer.fingerprint != options_.fingerprint) {
    return Error{Errc::unsupported,
                 fmt::format("nodes {} and {} do not have the same binaries at the same addresses",
                             from_node, job.node_index)};
  }
  while (has_departing(rank)) {
    threads::yield();  // It comes back so soon that its old memory here is still being unmapped.
  }
  const bool is_here = options_.space->has_rank(rank);
  const SpinGuard guard{lock_};
  if (lost_[from_node]) {
    return Error{Errc::closed, fmt::format("node {} is gone", from_node)};
  }
  if (is_here || arrivals_.contains(rank)) {
    return Error{Errc::refused,
                 fmt::format("rank {} cannot come to node {}: it is there", rank, job.node_index)};
  }
  auto opened = std::make_unique<Arrival>();
  opened->rank = rank;
  opened->from_node = from_node;
  arrival = opened.get();
  arrivals_.emplace(rank, std::move(opened));
  return Done{};
}

Result<rpc::Bytes> Migrator::on_offer(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  migrator.fault_.reached("destination:offered");
  Result<Offer> offer = decode_offer(request.arguments);
  if (!offer) {
    return offer.error();
  }
  Arrival* arrival = nullptr;
  if (Result<> opened = migrator.open_arrival(offer.value(), request.from_node, arrival); !opened) {
    return opened.error();
  }
  if (Result<> mapped = migrator.map_arrival(*arrival, offer.value()); !mapped) {
    migrator.erase(arrival->rank);
    return mapped.error();
  }
  migrator.fault_.reached("destination:mapped");
  if (arrival->is_memory_shared) {
    migrator.fault_.reached("destination:received");
  }
  const Acceptance acceptance{.is_memory_shared = arrival->is_memory_shared,
                              .landing_id = arrival->landing.id};
  {
    const SpinGuard guard{migrator.lock_};
    // Memory that is opened is here with all its bytes: accepting is receiving.
    const bool is_good =
        !arrival->is_cancelled && (!arrival->is_memory_shared || migrator.is_whole(*arrival));
    arrival->phase = !is_good                    ? Arrival::Phase::ending
                     : arrival->is_memory_shared ? Arrival::Phase::received
                                                 : Arrival::Phase::accepted;
    if (is_good) {
      return encode(acceptance);
    }
  }
  migrator.give_up(*arrival);
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
Migrator::Arrival* Migrator::claim(std::uint32_t rank, std::uint32_t from_node, bool is_commit) {
  const SpinGuard guard{lock_};
  const auto found = arrivals_.find(rank);
  if (found == arrivals_.end() || found->second->from_node != from_node) {
    return nullptr;
  }
  Arrival& arrival = *found->second;
  const bool is_at_rest = arrival.phase == Arrival::Phase::received ||
                          (!is_commit && arrival.phase == Arrival::Phase::accepted);
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
  Arrival* arrival = migrator.claim(rank.value(), request.from_node, true);
  if (arrival == nullptr) {
    return Error{Errc::refused, "a rank is committed that was not on its way here"};
  }
  migrator.install(*arrival);
  return rpc::Bytes{};
}

Result<rpc::Bytes> Migrator::on_cancel(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<std::uint32_t> rank = decode_rank(request.arguments);
  if (!rank) {
    return rank.error();
  }
  // Nothing here: the offer was refused, or never came.
  if (Arrival* arrival = migrator.claim(rank.value(), request.from_node, false)) {
    migrator.give_up(*arrival);
  }
  return rpc::Bytes{};
}

void Migrator::install(Arrival& arrival) {
  memory::RankSlot& slot = *arrival.slot;
  fault_.reached("destination:committed");
  Result<> arrived = options_.host->arrive(slot);
  check(arrived.has_value(), "a node of the same fingerprint can run the rank");
  slot.moves.fetch_add(1, std::memory_order_relaxed);
  options_.residents->add(slot);
  options_.transport->install(slot.rank, static_cast<net::Endpoint*>(slot.endpoint));
  arrived_.fetch_add(1, std::memory_order_relaxed);
  erase(slot.rank);  // Before it runs: it may leave and come back at once.
  options_.team->reinstall(slot.thread);
}

void Migrator::give_up(Arrival& arrival) {
  if (!arrival.is_memory_shared) {
    // False while bytes are copied in, under a lock that is held for one packet.
    while (!arrival.landing.done.done() && !options_.transport->withdraw_bulk(arrival.landing)) {
    }
  }
  options_.transport->unexpect(arrival.rank, arrival.from_node);
  options_.space->unmap_rank(arrival.rank);
  erase(arrival.rank);
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
        if (is_received || candidate->phase == Arrival::Phase::accepted) {
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
