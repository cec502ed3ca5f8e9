// Meetings: arriving, and waking everybody at once.
#include "threads/sync/meeting.h"

#include <array>

#include "threads/scheduler.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kCountBits = 16;
constexpr std::uint64_t kLeftAloneNs = 10'000;
constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

/// Threads by home, so that each worker is reached once.
class Homes {
 public:
  /// Joins the front of those of its home: the seats come youngest first.
  void add(Thread& thread) noexcept {
    Worker* const home = thread.worker.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (homes_[i].worker == home) {
        thread.next = homes_[i].first;
        homes_[i].first = &thread;
        return;
      }
    }
    if (count_ == homes_.size()) {
      wake();
    }
    thread.next = nullptr;
    homes_[count_++] = {home, &thread};
  }
  void wake() noexcept {
    const std::uint64_t now = cycles();
    for (std::uint32_t i = 0; i < count_; ++i) {
      Worker& home = *homes_[i].worker;
      home.left_alone_until.store(now + home.team.to_cycles(kLeftAloneNs),
                                  std::memory_order_relaxed);
      make_chain_runnable(homes_[i].first);
    }
    count_ = 0;
  }

 private:
  struct Home {
    Worker* worker;
    Thread* first;
  };
  std::array<Home, 32> homes_;
  std::uint32_t count_ = 0;
};

}  // namespace

bool Meeting::join(Seat& seat, Seat*& others) noexcept {
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  for (;;) {
    auto* const youngest = reinterpret_cast<Seat*>(word >> kCountBits);
    const std::uint64_t count = (word & kCountMask) + 1;
    const bool is_last = count == count_;
    seat.next = youngest;
    const std::uint64_t changed =
        is_last ? 0 : (reinterpret_cast<std::uint64_t>(&seat) << kCountBits) | count;
    if (word_.compare_exchange_weak(word, changed, std::memory_order_acq_rel,
                                    std::memory_order_relaxed)) {  // A
      others = is_last ? youngest : nullptr;
      return is_last;
    }
  }
}

Seat* Meeting::arrive(Seat& seat) noexcept {
  Thread& me = *self();
  seat.thread = &me;
  Seat* others = nullptr;
  (void)suspend(me, [&]() noexcept { return !join(seat, others); });
  return others;
}

Seat* Meeting::arrive_awake(Seat& seat) noexcept {
  seat.thread = nullptr;
  Seat* others = nullptr;
  (void)join(seat, others);
  return others;
}

void Meeting::let_go(Seat* chain, void (*tell)(Seat&) noexcept) noexcept {
  Homes homes;
  while (chain != nullptr) {
    Seat* const next = chain->next;  // Its owner may arrive again as soon as it has been let go.
    if (chain->thread != nullptr) {
      homes.add(*chain->thread);
    } else {
      tell(*chain);
    }
    chain = next;
  }
  homes.wake();
}

}  // namespace sterna::threads
