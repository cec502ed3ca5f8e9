// The short way of a receive while threads of its rank wait in others: who looks takes what comes
// for them as well, and leaves the processor to whom that has made runnable.
//
// Two threads that exchange messages with partners of their own, each with one on its way, so take
// turns: one posts its receive where it has just read a message of the other, and goes on there
// when its own has come. As in short.cc all else is refused before anything has happened.
//
// A thread that waits here publishes itself suspended, before others know of its receive: it holds
// the biased lock of its worker from then on, over the switch (threads/scheduler.h), so whoever
// wakes it does so after its registers are saved. That lock is taken inside that of the rank, as
// by make_runnable() in a completion; nothing is taken inside it. A node is lost for this receive,
// too: either the flag is seen under the lock of the rank, or lose_node() takes the lock after it
// and finds the receive.
#include "net/matching/matching.h"
#include "net/matching/plain.h"
#include "progress/progress.h"
#include "threads/direct.h"

namespace sterna::net {

/// Under the lock of the rank. True: the receive is posted and its thread published, under the lock
/// of its worker, which it leaves now.
[[gnu::always_inline]] static inline bool begin_wait(Endpoint& at, const Pattern& pattern,
                                                     RecvRequest& own,
                                                     threads::Thread& me) noexcept {
  Lane* const lane = find_lane(at, pattern);
  if (lane == nullptr) {
    return false;  // The long way makes it.
  }
  me.worker.load(std::memory_order_relaxed)->lock.lock();
  own.done.await_suspended(me);
  post_in_lane(at, *lane, own);
  return true;
}

bool TransportCore::receive_among(Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                                  Envelope& found, Fault& fault) noexcept {
  progress::Progress* const progress = progress_.load(std::memory_order_acquire);
  threads::Thread* const me = threads::self();
  // What has an entity others may wait for elsewhere; who can be cancelled waits otherwise.
  if (progress == nullptr || me == nullptr || me->entity != nullptr || me->is_cancellable ||
      !threads::is_alone(*me) || looked_at_ == nullptr || has_waiting(at)) {
    return false;
  }
  // What locked instructions there are until then wait for the line of the message that was just
  // sent: that of the next one is on its way meanwhile.
  looked_at_->expect_sight();
  // Before anything is held: it may look after timers and the network.
  me->worker.load(std::memory_order_relaxed)->count_switch();
  RecvRequest own;  // Made before the message comes: what is done after that is its latency.
  prepare(own, into.data(), into.size());
  {
    const progress::Progress::Turn turn{*progress};
    Driver::Sight seen;
    if (!turn.is_taken() || !is_nothing_left() || !count_look() || !sight_beside(seen)) {
      return false;
    }
    fetch(seen.packet);
    Taken taken;
    bool waits = false;
    {
      RankEntry& entry = ranks_[at.rank];
      const threads::OwnedGuard guard{entry.lock};
      taken = has_waiting(at) ? Taken::nothing
                              : take_seen<true>(entry, at, pattern, into, seen.packet, found);
      if (taken == Taken::nothing) {
        return false;
      }
      waits = taken == Taken::posted && !threads::is_alone(*me) &&
              !is_any_lost_.load(std::memory_order_seq_cst) &&
              begin_wait(at, pattern, own, *me);
    }
    looked_at_->pass_sight();
    if (!waits) {
      return taken == Taken::ours;
    }
  }
  const auto publish = []() noexcept { return true; };
  (void)threads::suspend_locked(*me->worker.load(std::memory_order_relaxed), *me, publish);
  found = own.envelope;
  fault = own.fault;
  return true;
}

}  // namespace sterna::net
