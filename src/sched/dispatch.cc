// What workers ask at every switch: the next thread, and what is to be done with one that is ready.
#include <algorithm>
#include <bit>

#include "sched/event.h"

namespace sterna::sched {

namespace {
// A search that always loses to others, or a policy that always changes its mind, ends.
constexpr int kAttempts = 64;
}  // namespace

Entity* Engine::take_from_route(std::uint32_t worker, std::uint32_t priority_min) noexcept {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // First without locks: which queue has the most urgent one? The nearest of equals.
    std::uint32_t best = kNoPlace;
    std::uint32_t best_width = priority_min;
    for (const std::uint32_t place : routes_[worker]) {
      const auto width = static_cast<std::uint32_t>(std::bit_width(queues_[place].mask()));
      if (width > best_width) {
        best = place;
        best_width = width;
      }
    }
    if (best == kNoPlace) {
      return nullptr;
    }
    // Then under its lock: another worker may have been faster.
    if (Entity* const entity = queues_[best].pop(best_width - 1); entity != nullptr) {
      note_queue(trace::Kind::taken, *entity, best);
      return entity;
    }
  }
  return nullptr;
}

Entity* Engine::next(std::uint32_t worker, const Entity* leaving) noexcept {
  if (tick_ns() != 0) {
    poll_tick();
  }
  if (!is_enabled(worker)) [[unlikely]] {
    return nullptr;
  }
  // What is put aside from here on is asked for before this worker sleeps: see has_work().
  asked_[worker].store(news_count_.load(std::memory_order_seq_cst), std::memory_order_relaxed);
  const std::uint32_t priority_min = leaving != nullptr ? leaving->effective_priority() : 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Entity* const thread = take_from_route(worker, priority_min);
    if (thread == nullptr) {
      if (leaving != nullptr || !ask_idle(worker)) {
        return nullptr;
      }
      continue;
    }
    if (!wants_meet_.load(std::memory_order_relaxed) || settle(worker, *thread)) {
      take(worker, *thread);
      return thread;
    }
  }
  return nullptr;
}

void Engine::take(std::uint32_t worker, Entity& thread) noexcept {
  const std::uint32_t here = routes_[worker].front();
  const std::uint32_t before = thread.actual_place();
  if (before != here) {
    if (before != kNoPlace) {
      forget_running(thread);
    }
    thread.actual_.store(here, std::memory_order_relaxed);
  }
  running_[worker].store(&thread, std::memory_order_relaxed);
  running_priority_[worker].store(thread.effective_priority(), std::memory_order_relaxed);
}

void Engine::forget_running(Entity& thread) noexcept {
  const std::uint32_t before = thread.actual_place();
  if (before == kNoPlace) {
    return;
  }
  // Several workers may share a processor.
  const WorkerRange range = ranges_[before];
  for (std::uint32_t worker = range.first; worker < range.first + range.count; ++worker) {
    Entity* expected = &thread;
    running_[worker].compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
  }
}

bool Engine::settle(std::uint32_t worker, Entity& thread) noexcept {
  const std::uint32_t here = routes_[worker].front();
  if (thread.target_place() == here) {
    return true;  // As near as it gets.
  }
  bool stays = true;
  for (int attempt = 0; attempt < kAttempts && stays; ++attempt) {
    Event event{*this};
    // Between the queue and the lock another event may have planned it elsewhere, or aside.
    stays = covers(thread.target_place(), here);
    if (!stays) {
      break;
    }
    Entity* carrier = &thread;
    while (carrier->planned_ == kNoPlace && carrier->holder() != &root_) {
      carrier = carrier->holder();
    }
    if (!event.policy().meet(event.view, *carrier, *topology_.places()[here])) {
      break;
    }
    commit();
    stays = covers(thread.target_place(), here);
  }
  if (!stays) {
    enqueue(thread);
  }
  return stays;
}

bool Engine::ask_idle(std::uint32_t worker) noexcept {
  // Without anything that waits anywhere there is nothing to find. What is aside first: it may wait
  // for long, and is asked for meanwhile.
  const std::size_t count = topology_.places().size() + 1;
  if (queues_[queue_index(kAside)].mask() == 0 &&
      std::none_of(queues_.get(), queues_.get() + count,
                   [](const PlaceQueue& queue) { return queue.mask() != 0; })) {
    return false;
  }
  Event event{*this};
  return event.policy().idle(event.view, *topology_.places()[routes_[worker].front()]);
}

std::uint32_t Engine::keep(Entity& thread) noexcept {
  thread.kept_.store(kNoPlace, std::memory_order_relaxed);
  const std::uint32_t target = thread.target_.load(std::memory_order_relaxed);
  if (!allows_keeping_.load(std::memory_order_relaxed) || target >= ranges_.size() ||
      !is_own_place(ranges_[target].first, target)) {
    return kNoPlace;
  }
  const std::uint32_t worker = ranges_[target].first;
  // Then the plan once more: either we see that it has changed, or who changes it sees this and
  // recalls the thread (threads/queues/kept.h).
  thread.kept_.store(worker, std::memory_order_seq_cst);
  if (thread.target_.load(std::memory_order_seq_cst) != target ||
      !allows_keeping_.load(std::memory_order_seq_cst)) {
    thread.kept_.store(kNoPlace, std::memory_order_relaxed);
    return kNoPlace;
  }
  const std::uint32_t here = routes_[worker].front();
  if (thread.actual_place() != here) {
    forget_running(thread);
    thread.actual_.store(here, std::memory_order_relaxed);
  }
  has_kept_.store(true, std::memory_order_relaxed);
  return worker;
}

void Engine::expose(Entity& thread) noexcept {
  thread.kept_.store(kNoPlace, std::memory_order_relaxed);
  enqueue(thread);
}

Entity* Engine::take_own(std::uint32_t worker) noexcept {
  for (const std::uint32_t place : routes_[worker]) {
    if (ranges_[place].count != 1) {
      break;
    }
    if (Entity* const entity = queues_[place].pop(0); entity != nullptr) {
      note_queue(trace::Kind::taken, *entity, place);
      return entity;
    }
  }
  return nullptr;
}

void Engine::ready(Entity& thread) noexcept {
  if (wants_wake_.load(std::memory_order_relaxed)) {
    Event event{*this};
    event.policy().wake(event.view, thread);
  }
  enqueue(thread);
}

void Engine::enqueue(Entity& thread) noexcept {
  const std::uint8_t priority = thread.effective_priority();
  std::uint32_t target = kNoPlace;
  for (bool is_queued = false; !is_queued;) {
    target = thread.target_.load(std::memory_order_relaxed);
    note_queue(trace::Kind::queued, thread, target);  // Afterwards it may be gone.
    is_queued = queues_[queue_index(target)].push(thread, target);
    if (!is_queued) {
      note_queue(trace::Kind::taken, thread, target);
    }
  }
  // From here on the thread may run and end.
  const auto worker_count = static_cast<std::uint32_t>(routes_.size());
  if (target == kAside) {
    // Its policy may want it, if somebody is idle. The count comes after the push and before the
    // wake-up, as a push to the queue of a place does.
    news_count_.fetch_add(1, std::memory_order_seq_cst);
    host_.wake(0, worker_count);
    return;
  }
  const WorkerRange range = ranges_[target];
  host_.wake(range.first, range.count);
  if (range.count < worker_count && queues_[target].count() > 1) {
    host_.wake(0, worker_count);  // Others may come for what waits there.
  }
  if (uses_priorities_.load(std::memory_order_relaxed)) {
    preempt_less_urgent(target, priority);
  }
}

void Engine::preempt_less_urgent(std::uint32_t target, std::uint8_t priority) noexcept {
  const WorkerRange range = ranges_[target];
  std::uint32_t least = range.first;
  for (std::uint32_t worker = range.first; worker < range.first + range.count; ++worker) {
    if (is_enabled(worker) &&
        (!is_enabled(least) || running_priority_[worker].load(std::memory_order_relaxed) <
                                   running_priority_[least].load(std::memory_order_relaxed))) {
      least = worker;
    }
  }
  if (interrupts(priority, running_priority_[least].load(std::memory_order_relaxed))) {
    host_.preempt(least);
  }
}

int Engine::highest(std::uint32_t worker) const noexcept {
  if (!is_enabled(worker)) {
    return -1;
  }
  std::uint32_t waiting = 0;
  // Sequentially consistent, against a worker that is about to sleep: either it sees the count, and
  // asks its policy once more, or the waker sees the sleeper.
  const std::uint64_t news =
      news_count_.load(std::memory_order_seq_cst) - asked_[worker].load(std::memory_order_relaxed);
  if (news >= kAskAgain || (news != 0 && queues_[queue_index(kAside)].mask() != 0)) {
    waiting |= 1U << kPriorityNormal;
  }
  for (const std::uint32_t place : routes_[worker]) {
    waiting |= queues_[place].mask();
  }
  return std::bit_width(waiting) - 1;
}

void Engine::poll_tick() noexcept {
  const std::uint64_t now = host_.now_ns();
  std::uint64_t due = next_tick_ns_.load(std::memory_order_relaxed);
  // Relaxed: whoever wins the exchange is the one that ticks; the lock orders the rest.
  if (now < due ||
      !next_tick_ns_.compare_exchange_strong(due, now + tick_ns(), std::memory_order_relaxed)) {
    return;
  }
  Event event{*this};
  if (now > last_tick_ns_) {
    charge_slices(now - last_tick_ns_);
    last_tick_ns_ = now;
  }
  event.policy().tick(event.view, nullptr);
}

void Engine::charge_slices(std::uint64_t elapsed_ns) noexcept {
  View view{*this, *policy_, topology_.root()};
  for (std::size_t worker = 0; worker < routes_.size(); ++worker) {
    Entity* const thread = running_[worker].load(std::memory_order_relaxed);
    if (thread != nullptr && !thread->is_kept() && host_.is_running(*thread)) {
      charge_slice(view, *thread, elapsed_ns);
    }
  }
  if (has_kept_.load(std::memory_order_relaxed)) {
    charge_kept(view, root_, elapsed_ns);
  }
}

void Engine::charge_kept(View& view, const Bubble& bubble, std::uint64_t elapsed_ns) noexcept {
  // Nobody notes at a switch which kept thread runs: they are asked.
  for (const Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    if (held->is_bubble_) {
      charge_kept(view, static_cast<const Bubble&>(*held), elapsed_ns);
    } else if (held->is_kept() && host_.is_running(*held)) {
      charge_slice(view, *held, elapsed_ns);
    }
  }
}

void Engine::charge_slice(View& view, const Entity& thread, std::uint64_t elapsed_ns) noexcept {
  for (Bubble* bubble = thread.holder(); bubble != nullptr; bubble = bubble->holder()) {
    const std::uint64_t slice_ns =
        bubble->slice_ns != 0 ? bubble->slice_ns : bubble->policy_slice_ns_;
    if (slice_ns == 0) {
      continue;
    }
    bubble->slice_used_ns_ += elapsed_ns;
    if (bubble->slice_used_ns_ >= slice_ns) {
      bubble->slice_used_ns_ = 0;
      policy_->tick(view, bubble);
    }
  }
}

}  // namespace sterna::sched
