// See bound_source.h.
#include "progress/bound_source.h"

#include <utility>

#include <sys/syscall.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "threads/this_thread.h"
#include "threads/worker.h"

namespace sterna::progress {
namespace {

// Who finds something in place of those who should asks them to take over, at most so often: a
// wake-up costs 5 us of a processor, and as much of theirs, for nothing if no more comes.
constexpr std::uint64_t kWakeNs = 1'000'000;

}  // namespace

std::uint32_t BoundSource::processor_of(const threads::Worker* worker) noexcept {
  if (worker != nullptr && worker->index < worker->team.processors.size()) {
    return worker->team.processors[worker->index];
  }
  if (worker != threads::this_worker()) {
    return kNoProcessor;
  }
  // Not that of libc: a mobile rank has a thread pointer of its own, where it would read.
  unsigned processor = 0;
  const long result =
      raw_system_call(SYS_getcpu, reinterpret_cast<long>(&processor), 0, 0, 0, 0, 0);
  return result == 0 ? processor : kNoProcessor;
}

BoundSource::BoundSource(Progress& progress, Source& inner, PollPlaces where, ProcessorOf processor)
    : progress_{progress},
      inner_{inner},
      where_{std::move(where)},
      processor_{processor},
      home_{where_.follows_callers || where_.places.empty() ? kNowhere : 0} {}

std::uint32_t BoundSource::place_of(std::uint32_t processor) const noexcept {
  std::uint32_t place = 0;
  while (place < where_.places.size() && !where_.places[place].has(processor)) {
    ++place;
  }
  return place < where_.places.size() ? place : kNowhere;
}

bool BoundSource::may_poll(std::uint64_t now) noexcept {
  using Point = threads::SchedulingPoint;
  const Point point = progress_.point();
  const threads::Worker* const here = threads::this_worker();
  const std::uint32_t place = place_of(processor_(here));
  // Of a thread, or of a kernel thread that waits; workers without work may be anywhere.
  const bool is_for_itself = point == Point::enter || (point == Point::idle && here == nullptr);
  if (where_.follows_callers && is_for_itself && place != kNowhere) {
    home_ = place;
  }
  if (home_ != kNowhere && place == home_) {
    // Who switches polls as seldom as that.
    attended_until_ns_ = now + progress_.options().switch_budget_ns;
    return true;
  }
  return now >= attended_until_ns_ || must_poll_ || point == Point::forced || point == Point::tick;
}

std::uint32_t BoundSource::poll() noexcept {
  Clock* const clock = progress_.options().clock;
  const std::uint64_t now = clock != nullptr ? clock->now_ns() : now_ns();
  is_passed_over_ = !may_poll(now);
  if (is_passed_over_) {
    return 0;
  }
  must_poll_ = false;
  const std::uint32_t count = inner_.poll();
  if (count != 0 && now >= attended_until_ns_) {
    wake_near(now);
  }
  return count;
}

/// After a round in vain, by its caller.
bool BoundSource::sight(std::uint32_t looks) noexcept {
  return !is_passed_over_ && inner_.sight(looks);
}

/// Nobody of the place polls. If one of its workers sleeps, it gets up, and polls for as long as
/// something comes; if all of them compute, so it stays.
void BoundSource::wake_near(std::uint64_t now) noexcept {
  const threads::Worker* const here = threads::this_worker();
  if (now < wake_at_ns_ || home_ == kNowhere || here == nullptr) {
    return;
  }
  wake_at_ns_ = now + kWakeNs;
  for (const auto& worker : here->team.workers) {
    // Relaxed: who is disabled meanwhile goes on standing by.
    if (where_.places[home_].has(processor_(worker.get())) &&
        !worker->is_disabled.load(std::memory_order_relaxed) && worker->wake()) {
      return;
    }
  }
}

bool BoundSource::prepare_sleep() noexcept {
  const bool is_prepared = inner_.prepare_sleep();
  must_poll_ = must_poll_ || !is_prepared;
  return is_prepared;
}

void BoundSource::end_sleep() noexcept {
  must_poll_ = true;
  inner_.end_sleep();
}

bool BoundSource::hear() noexcept {
  must_poll_ = true;
  return inner_.hear();
}

}  // namespace sterna::progress
