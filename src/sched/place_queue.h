// The run queue of one place of the machine: a list for each priority, shared by the workers below
// it. One more, of no place, keeps what policies have put aside.
//
// No thread waits where the plan does not want it. push() stores queued_at (1) and then looks at
// the target (2), both before it gives the lock back; a plan stores the target (3) and then looks
// at queued_at (4). All are sequentially consistent: either 1 comes before 4, and the plan finds
// the entity in the queue and takes it along, or 3 comes before 2, and push() sees the new target
// and declines. Once the lock is given back the entity may run and end: nobody looks at it then.
// tests: place_queue_model_test.cc.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "base/annotate.h"
#include "base/cpu.h"
#include "base/spin_lock.h"
#include "sched/entity.h"

namespace sterna::sched {

class alignas(kCacheLineBytes) PlaceQueue {
 public:
  /// False: the entity is wanted elsewhere by now, and is not queued.
  [[nodiscard]] bool push(Entity& entity, std::uint32_t own_place) noexcept {
    const SpinGuard guard{lock_};
    link(entity);
    entity.queued_at_.store(own_place, std::memory_order_seq_cst);      // (1)
    if (entity.target_.load(std::memory_order_seq_cst) == own_place) {  // (2)
      return true;
    }
    unlink(entity);
    return false;
  }

  /// The oldest of the highest priority, if that is at least `priority_min`; else null.
  Entity* pop(std::uint32_t priority_min) noexcept {
    const SpinGuard guard{lock_};
    const std::uint32_t mask = mask_.load(std::memory_order_relaxed);
    if ((mask >> priority_min) == 0) {
      return nullptr;
    }
    Entity* const entity = lists_[std::bit_width(mask) - 1].first;
    unlink(*entity);
    return entity;
  }

  /// Takes that entity out if it is here and should be elsewhere or in another list: in the queue
  /// of `wanted`, with its present priority.
  [[nodiscard]] bool remove_misplaced(Entity& entity, std::uint32_t own_place,
                                      std::uint32_t wanted) noexcept {
    const SpinGuard guard{lock_};
    if (entity.queued_at_.load(std::memory_order_relaxed) != own_place ||
        (own_place == wanted && entity.queued_priority_ == entity.effective_priority())) {
      return false;
    }
    unlink(entity);
    return true;
  }

  /// Calls function(entity) for what waits, the next one first, until it returns true. It must
  /// not touch queues.
  template <typename Function>
  Entity* find(Function&& function) noexcept {
    const SpinGuard guard{lock_};
    for (std::uint32_t left = mask_.load(std::memory_order_relaxed); left != 0;) {
      const auto level = static_cast<std::uint32_t>(std::bit_width(left)) - 1;
      left &= ~(1U << level);
      for (Entity* entity = lists_[level].first; entity != nullptr; entity = entity->queue_next_) {
        if (function(*entity)) {
          return entity;
        }
      }
    }
    return nullptr;
  }

  /// A bit for each priority that waits. Sequentially consistent: a worker says "I sleep" and then
  /// asks here, a waker pushes and then asks whether somebody sleeps.
  [[nodiscard]] std::uint32_t mask() const noexcept {
    return mask_.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] std::uint32_t count() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }

 private:
  struct List {
    Entity* first = nullptr;
    Entity* last = nullptr;
  };

  void link(Entity& entity) noexcept STERNA_REQUIRES(lock_) {
    const std::uint8_t priority = entity.effective_priority();
    List& list = lists_[priority];
    entity.queued_priority_ = priority;
    entity.queue_previous_ = list.last;
    entity.queue_next_ = nullptr;
    (list.last == nullptr ? list.first : list.last->queue_next_) = &entity;
    list.last = &entity;
    count_.store(count() + 1, std::memory_order_relaxed);
    mask_.store(mask_.load(std::memory_order_relaxed) | 1U << priority, std::memory_order_seq_cst);
  }
  void unlink(Entity& entity) noexcept STERNA_REQUIRES(lock_) {
    List& list = lists_[entity.queued_priority_];
    (entity.queue_previous_ == nullptr ? list.first : entity.queue_previous_->queue_next_) =
        entity.queue_next_;
    (entity.queue_next_ == nullptr ? list.last : entity.queue_next_->queue_previous_) =
        entity.queue_previous_;
    entity.queued_at_.store(kNoPlace, std::memory_order_seq_cst);
    count_.store(count() - 1, std::memory_order_relaxed);
    if (list.first == nullptr) {
      mask_.store(mask_.load(std::memory_order_relaxed) & ~(1U << entity.queued_priority_),
                  std::memory_order_seq_cst);
    }
  }

  SpinLock lock_;
  List lists_[kPriorityCount];           // Guard: lock_.
  std::atomic<std::uint32_t> mask_{0};   // Written under lock_.
  std::atomic<std::uint32_t> count_{0};  // As mask_.
};

}  // namespace sterna::sched
