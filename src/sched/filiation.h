// Bubbles from filiation (paper 003 §5.2): a thread that creates threads gets a bubble which holds
// them, so that an unchanged program has the tree that its own structure suggests. Generations
// nest.
//
// The bubble lies beside its creator, in the same holder. It is made for the first child and leaves
// the tree with the last of what it holds, whether or not its creator is still there. Children of
// who has no entity (kernel threads) are outermost.
//
// lock_ guards counters and free lists; it is held in no call of the engine. A birth counts its
// child before that is in the tree, an end after it has left, so that no bubble goes while
// something is on its way into it.
#pragma once

#include <string_view>

#include "base/spin_lock.h"
#include "sched/engine.h"

namespace sterna::sched {

class Family;  // The bubble of the children of one thread.

struct BirthOptions {
  std::uint32_t program_place = kNoPlace;  // The child stays within it.
  std::uint64_t load = 1;
  bool makes_bubbles = true;           // Threads that the child creates are held by a bubble.
  std::string_view creator_name = {};  // For the name of the bubble.
};

class Filiation {
 public:
  explicit Filiation(Engine& engine) noexcept : engine_{engine} {}
  /// All that it made have ended.
  ~Filiation();
  Filiation(const Filiation&) = delete;
  Filiation& operator=(const Filiation&) = delete;

  /// An entity for a thread that `creator`, the caller's own, is about to create: in the tree, and
  /// known to the policy. In the bubble of the creator's children if that makes bubbles; else, and
  /// for null, outermost. Where bubbles would be nested too deep: beside the creator. It is there
  /// until ended(). OUT_OF_MEMORY; else as Engine::insert.
  Result<Entity*> birth(Entity* creator, const BirthOptions& options) noexcept;

  /// The thread of an entity, whoever made that, has ended or could not be started: it leaves the
  /// tree, and with it the bubbles that hold nothing any more. Frees nothing to the heap.
  void ended(Entity& entity) noexcept;

 private:
  struct Child final : Entity {
    Family* home = nullptr;      // That counts it; null: none. Constant while it lives.
    Child* next_free = nullptr;  // Guard: lock_.
  };

  template <typename Node>
  Node* take(Node*& free) noexcept;
  template <typename Node>
  void give(Node*& free, Node& node) noexcept;

  Family* enter_own(Entity& creator, std::string_view creator_name) noexcept;
  Family* make_own(Entity& creator, std::string_view creator_name) noexcept;
  [[nodiscard]] Result<> put(Child& child, Family& family, const Entity& creator) noexcept;
  [[nodiscard]] Result<> put_beside(Child& child, const Entity& creator) noexcept;
  void leave(Family* family) noexcept;

  Engine& engine_;
  SpinLock lock_;
  Child* free_children_ = nullptr;  // Guard of both: lock_.
  Family* free_families_ = nullptr;
};

}  // namespace sterna::sched
