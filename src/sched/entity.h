// What policies place: threads and bubbles, as a tree. A bubble groups threads and bubbles that
// belong together. Entities are intrusive: their memory is the caller's, and outlives their time in
// the tree.
#pragma once

#include <atomic>
#include <cstdint>

#include "threads/thread.h"

namespace sterna::sched {

inline constexpr std::uint32_t kNoPlace = 0xffff'ffff;  // No topology::Place::id.

class Bubble;

/// A thread of the tree; give its address as ThreadOptions::entity. Three places, as ids of the
/// topology: what the program asked for, what the policy planned, where it is.
class Entity {
 public:
  Entity() noexcept = default;
  Entity(const Entity&) = delete;
  Entity& operator=(const Entity&) = delete;

  std::uint64_t load = 1;                  // Measure of its work. Guard: lock of the tree.
  std::uint32_t program_place = kNoPlace;  // Stay within this place. Set before insert().
  // Relaxed, both: a wake-up that reads an old plan queues the thread where it was planned before.
  std::atomic<std::uint32_t> planned_place{kNoPlace};
  std::atomic<std::uint32_t> actual_place{kNoPlace};

  [[nodiscard]] bool is_bubble() const noexcept { return is_bubble_; }
  [[nodiscard]] Bubble* holder() const noexcept { return holder_; }

 protected:
  explicit Entity(bool is_bubble) noexcept : is_bubble_{is_bubble} {}

 private:
  friend class Scheduler;
  friend class Bubble;

  const bool is_bubble_ = false;
  // Guard of all: lock of the tree (Scheduler).
  Bubble* holder_ = nullptr;
  Entity* previous_ = nullptr;
  Entity* next_ = nullptr;
};

class Bubble : public Entity {
 public:
  Bubble() noexcept : Entity{true} {}
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }

 private:
  friend class Scheduler;
  Entity* first_ = nullptr;  // Guard: lock of the tree.
  Entity* last_ = nullptr;
};

}  // namespace sterna::sched
