// The short way of a move, between nodes of one host that share memory. No offer and no answer: the
// rank is given, and taken, by one word in its own memory, which both nodes see.
//
//   source                                destination
//   WAKE, before the rank is frozen ----> polls for what comes next, if it slept
//   custody = given
//   TAKE                       ---------> custody: given -> taken, installs the rank, lets it run
//                              <--------- yes, or no: it takes nothing
//   no answer, or no: custody: given -> taken back
//
// TAKE goes to a node that has the memory mapped already: prepared for the rank, or kept since it
// left there. To any other node goes GIFT in its place, which also says how the memory is opened: a
// thread maps it first, which is no step of the bargain.
//
// Both changes are compare-and-exchange from the same value, which names the attempt and is never
// stored again: exactly one succeeds, whoever dies, hangs or is late (take_model_test.cc). The
// launcher is told of the move when it is known to have happened: until then a source that dies has
// the rank in its books, and the job ends and says so. If the destination has taken the rank and
// died, the news name a node that has ended, and the job ends as well.
#include "memory/rank_slot.h"
#include "migration/arrival.h"
#include "migration/custody.h"
#include "migration/migrator.h"
#include "migration/steps.h"

namespace sterna::migration {

// --- Source -------------------------------------------------------------------------------------

/// What it costs to wake a sleeper passes while the rank is frozen.
void Migrator::wake_destination(std::uint32_t to_node) noexcept {
  const net::JobMap& job = options_.transport->job();
  if (to_node < job.node_count && to_node != job.node_index &&
      job.host_of_node[to_node] == job.host_of_node[job.node_index]) {
    (void)options_.rpc->post(to_node, kWakeService, {});
  }
}

// A hint: the destination refuses if it is not so (any more).
bool Migrator::is_mapped_there(const Departure& departure) {
  const memory::RankShape shape = memory::shape_of(*departure.slot);
  const SpinGuard guard{lock_};
  const auto found = ahead_.find(shape.rank);
  return found != ahead_.end() && found->second.to_node == departure.to_node &&
         found->second.asker == 0 && found->second.shape == shape && !lost_[departure.to_node];
}

Result<> Migrator::give(Departure& departure, Offer* description) {
  memory::RankSlot& slot = *departure.slot;
  const std::uint32_t rank = slot.rank;
  const std::uint64_t move = slot.moves.load(std::memory_order_relaxed) + 1;
  departure.shape = memory::shape_of(slot);
  {
    const SpinGuard guard{lock_};
    departing_.emplace(rank, Departing{.to_node = departure.to_node, .untold_move = move});
  }
  if (!departure.is_forgotten) {
    options_.team->forget(*slot.thread);
    departure.is_forgotten = true;
  }
  options_.team->expect_soon(kNextStepNs);
  const std::uint64_t given = give_custody(slot.custody, departure.to_node);
  fault_.reached("source:given");
  const std::uint64_t deadline_ns = answer_deadline_ns();
  if (description != nullptr) {
    description->given = given;
    description->expires_ns = deadline_ns;
    description->number = last_offer_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  Result<rpc::Bytes> taken =
      description == nullptr
          ? options_.rpc->call(departure.to_node, kTakeService, encode_take(rank, given),
                               deadline_ns)
          : options_.rpc->call(departure.to_node, kGiftService, encode(*description), deadline_ns);
  // A yes that was lost with the destination is one too: the word decides.
  if (!taken && take_back_custody(slot.custody, given)) {
    forget_departing(rank);
    return taken.error();
  }
  return Done{};
}

/// Once: a rank that was given has been taken.
void Migrator::tell_move(std::uint32_t rank) noexcept {
  Departing departed{};
  {
    const SpinGuard guard{lock_};
    const auto found = departing_.find(rank);
    if (found == departing_.end()) {
      return;
    }
    departed = found->second;
    found->second.untold_move = 0;
  }
  if (departed.untold_move != 0) {
    options_.host->handing_over(rank, departed.to_node, departed.untold_move);
  }
}

void Migrator::tell_last_moves() noexcept {
  for (std::uint32_t rank = 0; rank < options_.transport->job().rank_count; ++rank) {
    tell_move(rank);
  }
}

// --- Destination --------------------------------------------------------------------------------

Result<rpc::Bytes> Migrator::on_wake(void* self, const rpc::Request&) {
  static_cast<Migrator*>(self)->options_.team->expect_soon(kNextStepNs);
  return rpc::Bytes{};
}

Result<rpc::Bytes> Migrator::on_take(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<Take> take = decode_take(request.arguments);
  if (!take) {
    return take.error();
  }
  Arrival* const arrival = migrator.claim(take.value().rank, request.from_node, ClaimFor::take);
  if (arrival == nullptr) {
    return Error{Errc::refused, "the rank is not mapped here"};
  }
  // The other half of its bargain: the source reads nothing of the slot once the word is changed.
  if (!migrator.is_as_given(*arrival, take.value().given) ||
      !take_custody(arrival->slot->custody, take.value().given)) {
    migrator.put_back(*arrival);
    return Error{Errc::refused, "the rank has grown, or was taken back"};
  }
  migrator.install_taken(*arrival);
  return rpc::Bytes{};
}

/// Its messages are expected from now on, and not before: an answer that came too late may be about
/// a rank that was here and has ended since.
void Migrator::install_taken(Arrival& arrival) {
  options_.transport->expect(arrival.rank);
  arrival.is_expected = true;
  install(arrival);
}

Result<rpc::Bytes> Migrator::on_gift(void* self, const rpc::Request& request) {
  Migrator& migrator = *static_cast<Migrator*>(self);
  Result<Offer> offer = decode_offer(request.arguments);
  if (!offer) {
    return offer.error();
  }
  Result<Arrival*> arrival = migrator.take_in(request, offer.value());
  if (!arrival) {
    return arrival.error();
  }
  if (!migrator.take_opened(*arrival.value(), offer.value().given)) {
    migrator.give_up(*arrival.value());
    return Error{Errc::refused, "the rank was taken back"};
  }
  return rpc::Bytes{};
}

// In a thread, and not ordered with the end of the source, nor need it be: the word decides, and a
// rank whose source ends before it has told of the move ends the job, whether it was taken or not.
bool Migrator::take_opened(Arrival& arrival, std::uint64_t given) {
  {
    const SpinGuard guard{lock_};
    arrival.phase = Arrival::Phase::ending;
    if (arrival.is_cancelled) {
      return false;
    }
  }
  if (!arrival.is_memory_shared || !is_as_given(arrival, given) ||
      !take_custody(arrival.slot->custody, given)) {
    return false;
  }
  install_taken(arrival);
  return true;
}

/// The rank is frozen, and its heaps are as they are mapped here. What is read of a slot that is
/// not given any more may be anything; then take_custody() fails.
bool Migrator::is_as_given(const Arrival& arrival, std::uint64_t given) const noexcept {
  const memory::RankSlot& slot = *arrival.slot;
  return slot.custody.load(std::memory_order_acquire) == given &&
         is_given_to(given, options_.transport->job().node_index) && is_whole(arrival) &&
         memory::shape_of(slot) == arrival.shape;
}

/// A rank that was claimed is prepared again, unless it was cancelled meanwhile.
void Migrator::put_back(Arrival& arrival) {
  {
    const SpinGuard guard{lock_};
    if (!arrival.is_cancelled) {
      arrival.phase = Arrival::Phase::prepared;
      return;
    }
  }
  give_up(arrival);
}

}  // namespace sterna::migration
