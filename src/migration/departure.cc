// The source's half of a move: freeze, offer, send, commit; or let the rank go on.
#include <sys/stat.h>
#include <unistd.h>

#include "base/probe.h"
#include "memory/rank_slot.h"
#include "migration/arrival.h"
#include "migration/steps.h"
#include "threads/observation/traced.h"
#include "threads/this_thread.h"

namespace sterna::migration {
namespace {

// Room for rpc and bulk copies on the stack of the thread that carries a departure out.
constexpr std::size_t kMoverStackBytes = 248 << 10;

std::uint64_t trace_rank(std::uint32_t rank) noexcept {
  return trace::key_of(trace::KeyClass::rank, rank);
}

Refusal refusal_of(Errc code) noexcept {
  switch (code) {
    case Errc::closed:
    case Errc::timed_out:
      return Refusal::peer_lost;
    case Errc::out_of_memory:
      return Refusal::no_memory;
    case Errc::unsupported:
      return Refusal::other_layout;
    default:
      return Refusal::refused_there;
  }
}

void describe_memory(int memory_fd, Offer& offer) noexcept {
  offer.memory_fd = memory_fd;
  struct ::stat status {};
  if (memory_fd >= 0 && ::fstat(memory_fd, &status) == 0) {
    offer.memory_inode = status.st_ino;
    offer.memory_device = status.st_dev;
    offer.memory_bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
}

}  // namespace

Refusal Migrator::why_not(memory::RankSlot& slot, std::uint32_t to_node,
                          std::string& detail) noexcept {
  const net::JobMap& job = options_.transport->job();
  if (to_node >= job.node_count || to_node == job.node_index) {
    return Refusal::unknown_node;
  }
  if (options_.fingerprint == 0) {
    return Refusal::random_addresses;
  }
  if (threads::has_live_exception()) {
    return Refusal::live_exception;
  }
  detail = options_.host->describe_blockers(slot);
  return detail.empty() ? Refusal::none : Refusal::held_resource;
}

void Migrator::move_self(memory::RankSlot& slot, std::uint32_t to_node) noexcept {
  {
    std::string detail;  // Node memory: must be gone before the rank moves.
    Refusal refusal = why_not(slot, to_node, detail);
    if (refusal == Refusal::none) {
      if (Result<> left = options_.transport->begin_leave(slot.rank); !left) {
        // Short-lived: the rank tries again at its next safe point, unless somebody has asked for
        // something else meanwhile. Release: who reads the order again finds what led to it.
        std::int32_t nobody = -1;
        slot.move_request.compare_exchange_strong(nobody, static_cast<std::int32_t>(to_node),
                                                  std::memory_order_release,
                                                  std::memory_order_relaxed);
        return;
      }
    }
    if (refusal != Refusal::none) {
      stay(slot, to_node, refusal, detail);
      return;
    }
  }
  // Only once it leaves. Who is held by a large message asks again at each safe point: two ranks
  // that woke each other's nodes each time kept the way between them so full that the parts of
  // their own messages, which go where nothing waits, never went.
  wake_destination(to_node);
  options_.residents->remove(slot.rank);
  Departure departure{.migrator = this, .slot = &slot, .to_node = to_node};
  threads::freeze(begin_departure, &departure);
  // Here or there: `this` may be of another process now.
}

void Migrator::begin_departure(threads::Thread&, void* argument) {
  auto* departure = static_cast<Departure*>(argument);
  Migrator& migrator = *departure->migrator;
  Result<threads::Thread*> mover = migrator.options_.team->spawn(
      {.name = "mover", .stack_bytes = kMoverStackBytes, .detached = true}, run_departure,
      departure);
  if (!mover) {
    migrator.options_.transport->cancel_leave(departure->slot->rank);
    migrator.options_.residents->add(*departure->slot);
    migrator.stay(*departure->slot, departure->to_node, Refusal::no_memory, mover.error().text);
    migrator.options_.team->start(*departure->slot->thread);
  }
}

void Migrator::run_departure(void* argument) {
  // A copy: once the bytes are on their way, the rank's stack is not ours to read.
  Departure departure = *static_cast<Departure*>(argument);
  departure.migrator->depart(departure);
}

void Migrator::depart(Departure& departure) {
  memory::RankSlot& slot = *departure.slot;
  const std::uint32_t rank = slot.rank;
  STERNA_PROBE2(rank_leave, rank, departure.to_node);
  threads::trace_event(trace::Kind::leaves, trace_rank(rank), departure.to_node);
  fault_.reached("source:frozen");
  bool is_given = false;
  if (Result<> gone = send_away(departure, is_given); !gone) {
    go_on_here(departure, gone.error());
    return;
  }
  // From here on the rank runs elsewhere, perhaps on the very same memory: nothing of it is read.
  if (is_given) {
    note_memory(departure);
    tell_move(rank);
  }
  fault_.reached("source:committed");
  options_.transport->commit_leave(rank, departure.to_node);
  drop_ahead(rank, departure.to_node);
  left_.fetch_add(1, std::memory_order_relaxed);
  if (!keep_mapped(departure)) {
    unmap_in_steps(rank);
    forget_departing(rank);  // Last: it may come back from now on.
  }
}

/// The shortest way first; a longer one if the destination is not, or cannot do, what we thought.
Result<> Migrator::send_away(Departure& departure, bool& is_given) {
  const auto is_settled = [&](const Result<>& gone) {
    is_given = gone.has_value();
    return is_given ||
           (gone.error().code != Errc::refused && gone.error().code != Errc::unreachable);
  };
  if (is_mapped_there(departure)) {
    if (Result<> gone = give(departure, nullptr); is_settled(gone)) {
      return gone;
    }
  }
  if (Offer offer = make_offer(*departure.slot, departure.to_node); offer.memory_fd >= 0) {
    if (Result<> gone = give(departure, &offer); is_settled(gone)) {
      return gone;
    } else {
      departure.is_memory_closed = gone.error().code == Errc::unreachable;
    }
  }
  return hand_over(departure);
}

void Migrator::go_on_here(Departure& departure, const Error& reason) {
  memory::RankSlot& slot = *departure.slot;
  // The destination forgets what it has, if it is still there to do so.
  if (departure.offer_number != 0) {
    (void)options_.rpc->post(departure.to_node, kCancelService,
                             encode_cancel(slot.rank, departure.offer_number));
  }
  options_.transport->cancel_leave(slot.rank);
  options_.residents->add(slot);
  stay(slot, departure.to_node, refusal_of(reason.code), reason.text);
  forget_departing(slot.rank);
  if (departure.is_forgotten) {
    options_.team->reinstall(slot.thread);
  } else {
    options_.team->start(*slot.thread);
  }
}

void Migrator::forget_departing(std::uint32_t rank) {
  const SpinGuard guard{lock_};
  departing_.erase(rank);
}

Result<> Migrator::commit(Departure& departure) {
  memory::RankSlot& slot = *departure.slot;
  const std::uint32_t rank = slot.rank;
  const std::uint64_t move = slot.moves.load(std::memory_order_relaxed) + 1;
  {
    const SpinGuard guard{lock_};
    departing_.emplace(rank, Departing{.to_node = departure.to_node});
  }
  if (!departure.is_forgotten) {
    options_.team->forget(*slot.thread);
    departure.is_forgotten = true;
  }
  options_.host->handing_over(rank, departure.to_node, move);
  Result<> posted = options_.rpc->post(departure.to_node, kCommitService, encode_rank(rank));
  if (!posted) {
    // Counts on beyond the move that did not take place.
    slot.moves.store(move + 1, std::memory_order_relaxed);
    options_.host->handing_over(rank, options_.transport->job().node_index, move + 1);
  }
  return posted;
}

Offer Migrator::make_offer(memory::RankSlot& slot, std::uint32_t to_node) {
  Offer offer;
  offer.shape = memory::shape_of(slot);
  offer.fingerprint = options_.fingerprint;
  const net::JobMap& job = options_.transport->job();
  if (job.host_of_node[to_node] == job.host_of_node[job.node_index]) {
    offer.source_pid = static_cast<std::uint32_t>(::getpid());
    describe_memory(options_.space->rank_memory_fd(slot.rank), offer);
  }
  return offer;
}

/// The destination had the memory mapped: nobody has asked for its description yet.
void Migrator::note_memory(Departure& departure) {
  Offer description;
  describe_memory(options_.space->rank_memory_fd(departure.shape.rank), description);
  departure.memory_inode = description.memory_inode;
  departure.memory_device = description.memory_device;
  shared_.fetch_add(description.memory_bytes, std::memory_order_relaxed);
}

// The rank is frozen, off its heaps.
void Migrator::add_extents(memory::RankSlot& slot, Offer& offer) {
  const auto add = [&](std::span<std::byte> bytes) {
    offer.extents.push_back({bytes.data(), bytes.size()});
  };
  const auto stack_pointer = reinterpret_cast<std::uintptr_t>(slot.thread->context.stack);
  memory::for_each_live_extent(slot, stack_pointer, add);
  options_.host->for_each_image_extent(slot, add);
  normalise(offer.extents);
}

Result<Acceptance> Migrator::send_offer(Departure& departure, Offer& offer) {
  if (offer.memory_fd < 0) {
    add_extents(*departure.slot, offer);
  }
  options_.team->expect_soon(kNextStepNs);
  offer.number = last_offer_.fetch_add(1, std::memory_order_relaxed) + 1;
  departure.offer_number = offer.number;
  Result<rpc::Bytes> accepted =
      options_.rpc->call(departure.to_node, kOfferService, encode(offer), answer_deadline_ns());
  if (!accepted) {
    if (accepted.error().code != Errc::timed_out) {
      departure.offer_number = 0;  // Refused: nothing is left of it there.
    }
    return accepted.error();
  }
  return decode_acceptance(accepted.value());
}

Result<> Migrator::hand_over(Departure& departure) {
  Offer offer = make_offer(*departure.slot, departure.to_node);
  if (departure.is_memory_closed) {
    offer.memory_fd = -1;
  }
  Result<Acceptance> accepted = send_offer(departure, offer);
  if (accepted && accepted.value().way == Way::not_openable) {
    offer.memory_fd = -1;
    accepted = send_offer(departure, offer);
  }
  if (!accepted) {
    return accepted.error();
  }
  fault_.reached("source:offered");
  if (accepted.value().way == Way::shared) {
    // Accepted is received: there is nothing to send.
    shared_.fetch_add(offer.memory_bytes, std::memory_order_relaxed);
    departure.shape = offer.shape;
    departure.memory_inode = offer.memory_inode;
    departure.memory_device = offer.memory_device;
    fault_.reached("source:sent");
  } else if (Result<> sent = send_bytes(departure, offer, accepted.value().landing_id); !sent) {
    return sent;
  } else {
    for (const net::Extent& extent : offer.extents) {
      copied_.fetch_add(extent.bytes, std::memory_order_relaxed);
    }
  }
  fault_.reached("source:received");
  return commit(departure);
}

Result<> Migrator::send_bytes(Departure& departure, const Offer& offer, std::uint64_t landing_id) {
  const std::uint32_t rank = departure.slot->rank;
  if (Result<> sent = send_bulk(departure, offer, landing_id); !sent) {
    return sent;
  }
  fault_.reached("source:sent");
  Result<rpc::Bytes> received = options_.rpc->call(departure.to_node, kReceivedService,
                                                   encode_rank(rank), answer_deadline_ns());
  if (!received) {
    return received.error();
  }
  return Done{};
}

Result<> Migrator::send_bulk(Departure& departure, const Offer& offer, std::uint64_t landing_id) {
  const std::uint32_t rank = departure.slot->rank;
  net::BulkSend bulk;
  std::vector<net::RemotePiece> remote;
  for (const net::Extent& extent : offer.extents) {
    remote.push_back({reinterpret_cast<std::uint64_t>(extent.address), extent.bytes});
  }
  options_.transport->bulk_send(departure.to_node, landing_id, offer.extents, remote, bulk);
  // As long as bytes are taken, it may take as long as it takes.
  for (std::uint64_t sent_bytes = 0; !bulk.done.done();) {
    const threads::Wake wake =
        bulk.done.wait_for(*options_.progress, {.deadline_ns = answer_deadline_ns()});
    const std::uint64_t now_sent_bytes = bulk.sent_bytes.load(std::memory_order_relaxed);
    if (wake != threads::Wake::signalled && now_sent_bytes == sent_bytes) {
      options_.transport->withdraw_bulk_send(bulk);
      bulk.done.wait(*options_.progress);
    }
    sent_bytes = now_sent_bytes;
  }
  if (bulk.fault != net::Fault::none) {
    return Error{Errc::closed, fmt::format("sending rank {} to node {}: {}", rank,
                                           departure.to_node, net::to_string(bulk.fault))};
  }
  return Done{};
}

void Migrator::stay(memory::RankSlot& slot, std::uint32_t to_node, Refusal refusal,
                    const std::string& detail) noexcept {
  refused_.fetch_add(1, std::memory_order_relaxed);
  drop_ahead(slot.rank);
  threads::trace_event(trace::Kind::stays, trace_rank(slot.rank), to_node);
  std::string reason{to_string(refusal)};
  if (!detail.empty()) {
    reason += ": " + detail;
  }
  log_.info("rank {} does not move to node {}: {}", slot.rank, to_node, reason);
  options_.host->stayed(slot.rank, to_node, reason);
}

}  // namespace sterna::migration
