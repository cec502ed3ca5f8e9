// What policies place: threads and bubbles, as a tree. A bubble groups threads and bubbles that
// belong together. Entities are intrusive: their memory is the caller's, and outlives their time in
// the tree.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "base/priority.h"

namespace sterna::sched {

// For the program: anywhere. In a plan: wherever its holder is (a closed bubble holds it).
inline constexpr std::uint32_t kNoPlace = 0xffff'ffff;
inline constexpr std::uint32_t kAside = 0xffff'fffe;  // In a plan: in a queue that nobody looks at.
inline constexpr std::uint32_t kInHand = 0xffff'fffd;  // Taken by a policy that has to put it back.
inline constexpr std::uint32_t kNoLevel = 0xffff'ffff;
inline constexpr std::uint32_t kNestingMax = 64;  // Bubbles in bubbles.

inline constexpr std::uint8_t kPriorityOfHolder = 0xff;

/// Bytes on each memory node (NUMA node of the topology, by Place::index). Empty it has no memory
/// of its own; its copies are the heap's.
class MemoryMap {
 public:
  MemoryMap() noexcept = default;
  /// Its memory comes from there.
  explicit MemoryMap(std::pmr::memory_resource& resource) noexcept : areas_{&resource} {}

  void add(std::uint32_t node, std::uint64_t bytes) {
    if (bytes == 0) {
      return;
    }
    for (Area& area : areas_) {
      if (area.node == node) {
        area.bytes += bytes;
        return;
      }
    }
    areas_.push_back({node, bytes});
  }
  void add(const MemoryMap& other) {
    for (const Area& area : other.areas_) {
      add(area.node, area.bytes);
    }
  }
  /// For so many nodes add() takes no memory.
  void reserve(std::size_t nodes) { areas_.reserve(nodes); }
  /// All of it is on that node now. Takes no memory.
  void move_to(std::uint32_t node) noexcept {
    if (!areas_.empty()) {
      areas_.front() = {node, total()};
      areas_.resize(1);
    }
  }
  void swap(MemoryMap& other) noexcept { areas_.swap(other.areas_); }
  [[nodiscard]] std::uint64_t on(std::uint32_t node) const noexcept {
    for (const Area& area : areas_) {
      if (area.node == node) {
        return area.bytes;
      }
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t total() const noexcept {
    std::uint64_t sum = 0;
    for (const Area& area : areas_) {
      sum += area.bytes;
    }
    return sum;
  }

 private:
  struct Area {
    std::uint32_t node = 0;
    std::uint64_t bytes = 0;
  };
  std::pmr::vector<Area> areas_;  // One a node, in no order.
};

inline constexpr std::size_t kAttributes = 4;

/// What an attribute of a bubble and that of what it holds make together. The order of values is
/// no promise. Called with the lock of the engine held.
using Synthesis = std::uint64_t (*)(std::uint64_t so_far, std::uint64_t value);

class Bubble;

/// A thread of the tree; give its address as ThreadOptions::entity. It has three places, as ids of
/// the topology: what the program asked for, what the policy planned, where it is.
class Entity {
 public:
  Entity() noexcept = default;
  Entity(const Entity&) = delete;
  Entity& operator=(const Entity&) = delete;

  // What the program says. Set before insert(), later inside Engine::update().
  std::uint64_t load = 1;                  // Measure of a thread's work; bubbles have sums.
  std::uint32_t program_place = kNoPlace;  // Stay within this place.
  std::uint32_t level = kNoLevel;  // Depth in the topology at which it runs, or bursts (bubbles).
  std::uint8_t priority = kPriorityOfHolder;
  bool is_settled = false;        // No policy takes it from where it is to balance.
  bool is_unpreemptible = false;  // Its threads leave the processor when they want to only.
  bool makes_bubbles = false;     // Threads that it creates are held by a bubble: filiation.h.
  const char* name = nullptr;     // For messages; outlives the entity.
  MemoryMap memory;
  // The program's own: synthesised as Engine::set_synthesis() says, as sums by default.
  std::array<std::uint64_t, kAttributes> attributes{};
  std::uint8_t set_attributes = 0;  // A bit for each that counts though it is 0.
  // Of an outermost one: which policy of choice(...) it wants, by policy_key(); 0: the first.
  std::uint32_t wanted_policy = 0;

  void set_attribute(std::size_t index, std::uint64_t value) noexcept {
    attributes[index] = value;
    set_attributes |= static_cast<std::uint8_t>(1U << index);
  }

  [[nodiscard]] bool is_bubble() const noexcept { return is_bubble_; }
  [[nodiscard]] Bubble* holder() const noexcept {
    return holder_.load(std::memory_order_relaxed);
  }
  /// Where the policy wants it, or kNoPlace (with its holder), kAside. Guard: lock of the engine.
  [[nodiscard]] std::uint32_t planned_place() const noexcept { return planned_; }
  /// Where that is in the end: a place or kAside. From anywhere.
  [[nodiscard]] std::uint32_t target_place() const noexcept {
    return target_.load(std::memory_order_relaxed);
  }
  /// Processor on which it runs or ran last, or kNoPlace. From anywhere.
  [[nodiscard]] std::uint32_t actual_place() const noexcept {
    return actual_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_queued() const noexcept {
    return queued_at_.load(std::memory_order_relaxed) != kNoPlace;
  }
  /// In a private queue of one worker, running or not: who waits there is in no queue of ours.
  [[nodiscard]] bool is_kept() const noexcept {
    return kept_.load(std::memory_order_relaxed) != kNoPlace;
  }
  [[nodiscard]] std::uint8_t effective_priority() const noexcept {
    return effective_priority_.load(std::memory_order_relaxed);
  }
  /// Guard: lock of the engine, or of its holder.
  [[nodiscard]] Entity* next_sibling() const noexcept { return next_; }

  // Who runs it: threads::Thread, or the task of a simulation. Constant once it is ready.
  std::atomic<void*> thread{nullptr};
  std::uint64_t policy_word = 0;  // The policy's own. Guard: lock of the engine.

 protected:
  explicit Entity(bool is_bubble) noexcept : is_bubble_{is_bubble} {}

 private:
  friend class Engine;
  friend class Filiation;
  friend class View;
  friend class PlaceQueue;

  const bool is_bubble_ = false;
  bool is_of_filiation_ = false;  // Its memory is. Constant.
  bool is_moved_ = false;         // In the list of the plan. Guard of these: all of the tree.
  std::uint32_t ruler_ = 0;       // Of an outermost entity: Policy::id().
  std::uint32_t planned_ = kNoPlace;
  std::uint32_t taken_from_ = kNoPlace;  // While planned_ is kInHand.
  Entity* next_moved_ = nullptr;

  // Written under the lock of the holder, or of all; relaxed: who reads it without one of them asks
  // once more under that lock. Null in no tree only: it goes from holder to holder by one store,
  // and its null is the last that the engine stores in an entity that leaves. A release, so that
  // who reads that without a lock, by an acquire, may free it (Engine::is_in_tree). Guard of its
  // neighbours there: as of it.
  std::atomic<Bubble*> holder_{nullptr};
  Entity* previous_ = nullptr;
  Entity* next_ = nullptr;

  // Written under the lock of the engine, or, as it joins, of its holder; read by wakers: see
  // PlaceQueue::push().
  std::atomic<std::uint32_t> target_{kNoPlace};
  // Relaxed: a waker that reads an old one queues it there once more.
  std::atomic<std::uint8_t> effective_priority_{kPriorityNormal};
  // Relaxed: written by the processor that takes it; others want a hint.
  std::atomic<std::uint32_t> actual_{kNoPlace};
  // Worker whose private queue a plan keeps it in, or kNoPlace: threads/queues/kept.h. Stored by
  // whoever has the thread to himself; kNoPlace also under the lock of the engine or of its holder,
  // when it leaves the tree.
  std::atomic<std::uint32_t> kept_{kNoPlace};
  // Queue that has it, or kNoPlace. Written under the lock of that queue.
  std::atomic<std::uint32_t> queued_at_{kNoPlace};
  // Looks of audit() in a row that found it ready and nowhere. Guard: lock of the engine.
  std::uint8_t lost_looks_ = 0;
  std::uint8_t queued_priority_ = 0;  // Guard of these three: the lock of that queue.
  Entity* queue_next_ = nullptr;
  Entity* queue_previous_ = nullptr;
  Bubble* children_ = nullptr;  // Made for the threads that it creates. Guard: Filiation.
};

class Bubble : public Entity {
 public:
  Bubble() noexcept : Entity{true} {}

  // Time after which the policy hears of it (Policy::tick), in ns of all its running threads
  // together; 0: never. Set as what the program says.
  std::uint64_t slice_ns = 0;
  void* handle = nullptr;  // What its maker knows it by. Constant in the tree.

  // Guard: lock of the engine, or of this holder.
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] Entity* first() const noexcept { return first_; }

 private:
  friend class Engine;
  friend class View;
  // Where the program sets none: the policy's. Guard of both: lock of the engine.
  std::uint64_t policy_slice_ns_ = 0;
  std::uint64_t slice_used_ns_ = 0;
  Entity* first_ = nullptr;
  Entity* last_ = nullptr;
};

}  // namespace sterna::sched
