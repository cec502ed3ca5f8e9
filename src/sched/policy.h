// What a scheduling policy is: an object that hears of events and plans places. The mechanism
// (engine.h) commits the plan; a policy sees no queue and no processor register, so that it runs
// unchanged over threads, in the simulator and in tests with nothing running at all.
//
// All calls come with the lock of the engine held: a policy must not block or switch, and bounds
// its work. What View::move() and its like say is committed when the call returns, all together.
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sched/entity.h"
#include "topology/topology.h"

namespace sterna::sched {

class Engine;
class Policy;

/// Synthesised over an entity and all that it holds.
struct Stats {
  std::uint32_t threads = 0;
  std::uint32_t ready = 0;  // In a queue.
  std::uint32_t running = 0;
  std::uint64_t load = 0;
  std::uint32_t last_place = kNoPlace;  // Smallest place with all processors it ran on last.
  MemoryMap memory;
  std::array<std::uint64_t, kAttributes> attributes{};  // 0 where none of them has one.
  std::uint8_t set_attributes = 0;                      // A bit for each that one of them has.
};

/// What a policy sees and does: the entities it rules, and the part of the machine that is its own.
class View {
 public:
  [[nodiscard]] const topology::Topology& topology() const noexcept;
  [[nodiscard]] const topology::Place& domain() const noexcept { return *domain_; }
  [[nodiscard]] const topology::Place& place(std::uint32_t id) const noexcept {
    return *topology().places()[id];
  }
  /// Workers below a place.
  [[nodiscard]] std::uint32_t worker_count(const topology::Place& place) const noexcept;
  [[nodiscard]] std::uint64_t now_ns() const noexcept;

  /// Outermost entities of this policy, in order; null after the last.
  [[nodiscard]] Entity* first_top() const noexcept;
  [[nodiscard]] Entity* next_top(const Entity& entity) const noexcept;
  [[nodiscard]] Entity& top_of(Entity& entity) const noexcept;

  [[nodiscard]] Stats stats(const Entity& entity) const noexcept;
  [[nodiscard]] std::uint64_t load(const Entity& entity) const noexcept;
  [[nodiscard]] bool is_running(const Entity& thread) const noexcept;
  /// Something in it is in a queue or on a processor.
  [[nodiscard]] bool is_active(const Entity& entity) const noexcept;
  /// Smallest place that the program allows it: the domain, or within it.
  [[nodiscard]] const topology::Place& allowed(const Entity& entity) const noexcept;
  [[nodiscard]] bool may_run(const Entity& entity, const topology::Place& processor) const noexcept;
  /// Workers below a place that run nothing at all: what waits there is about to be taken.
  [[nodiscard]] std::uint32_t free_workers(const topology::Place& place) const noexcept;
  /// Threads in the queue of a place.
  [[nodiscard]] std::uint32_t waiting(const topology::Place& place) const noexcept;
  /// The next thread in the queue of `place` that may run on `processor` and that is free to move,
  /// as the outermost entity which is there because of its own plan; null: none.
  [[nodiscard]] Entity* find_movable(const topology::Place& place,
                                     const topology::Place& processor) const noexcept;
  /// What waits in the queue of a place (or kAside), the next one first, as many as fit: how many
  /// there are. Processors may take them meanwhile.
  [[nodiscard]] std::uint32_t list_waiting(std::uint32_t place,
                                           std::span<Entity*> threads) const noexcept;

  /// Plans: in the queue of that place; with its holder; aside, until it is moved again.
  void move(Entity& entity, const topology::Place& place) noexcept { plan(entity, place.id); }
  void keep_inside(Entity& entity) noexcept { plan(entity, kNoPlace); }
  void set_aside(Entity& entity) noexcept { plan(entity, kAside); }
  /// All that it holds goes with it again, at any depth.
  void gather(Bubble& bubble) noexcept;
  /// The memory of an entity should come to that memory node (PlaceKind::numa, index). A hint.
  void move_memory(Entity& entity, std::uint32_t node) noexcept;
  /// After so much time of its running threads the policy hears of the bubble (Policy::tick),
  /// unless the program gave it a slice of its own. Until it is gathered, or another policy rules;
  /// 0: no.
  void set_slice(Bubble& bubble, std::uint64_t slice_ns) noexcept;
  /// What is inside comes out, at `place`.
  void burst(Bubble& bubble, const topology::Place& place) noexcept;

  /// Workers below a place that have nothing to run ask once more (Policy::idle): for a policy that
  /// would answer otherwise than before, though nothing became ready since.
  void ask_again(const topology::Place& place) noexcept;

  /// For combinators: the view of a policy inside another one, and what it rules.
  [[nodiscard]] View of(const Policy& policy, const topology::Place& domain) const noexcept {
    return View{engine_, policy, domain};
  }
  void set_ruler(Entity& top, const Policy& policy) noexcept;
  [[nodiscard]] bool is_ruled_by(const Entity& entity, const Policy& policy) const noexcept;
  /// Policy::id() of the one that rules it.
  [[nodiscard]] std::uint32_t ruler_of(const Entity& entity) const noexcept;

  /// Memory for the time of one event, mostly without the heap.
  [[nodiscard]] std::pmr::memory_resource& scratch() const noexcept;

  /// kInHand and other plans that are no place: for interfaces in other languages.
  void plan(Entity& entity, std::uint32_t place) noexcept;

 private:
  friend class Engine;
  View(Engine& engine, const Policy& policy, const topology::Place& domain) noexcept
      : engine_{engine}, policy_{&policy}, domain_{&domain} {}

  Engine& engine_;
  const Policy* policy_;
  const topology::Place* domain_;
};

class Policy {
 public:
  Policy() noexcept;
  virtual ~Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  /// Before anything else, without the lock: the policy may allocate what it needs, or refuse.
  [[nodiscard]] virtual Result<> prepare(const topology::Topology& topology);

  /// `top`, an outermost entity with all it holds, is there: place it.
  virtual void submit(View& view, Entity& top) noexcept = 0;

  /// `top`, which was submitted, holds twice as much as then, or as at the last call: what came
  /// later is where its holder is. The default leaves it there.
  virtual void grow(View& view, Entity& top) noexcept;

  /// Everything has changed (a phase, another policy, regeneration): place it all anew. The default
  /// gathers and submits each.
  virtual void shake(View& view) noexcept;

  /// A worker's search met a thread at `entity`: a closed bubble around it, or itself. True: the
  /// plan has changed, search again. Only if wants_meet().
  virtual bool meet(View& view, Entity& entity, const topology::Place& processor) noexcept;
  [[nodiscard]] virtual bool wants_meet() const noexcept { return false; }

  /// A thread became ready, and is queued next. Only if wants_wake().
  virtual void wake(View& view, Entity& thread) noexcept;
  [[nodiscard]] virtual bool wants_wake() const noexcept { return false; }

  /// A worker found nothing from its processor up to the root. True: it may now.
  virtual bool idle(View& view, const topology::Place& processor) noexcept;

  /// Every tick_ns() at most (not while all sleep or compute without a switch). With a bubble: its
  /// slice_ns is over.
  virtual void tick(View& view, Bubble* expired) noexcept;
  [[nodiscard]] virtual std::uint64_t tick_ns() const noexcept { return 0; }

  /// The program says in which of its phases it is.
  virtual void phase(View& view, std::uint32_t number) noexcept;

  /// An entity leaves the tree, or the root for a bubble: an outermost one, or, if wants_leave(),
  /// any one that leaves the tree. Whoever does not want that is spared the lock of all at each end
  /// of a thread.
  virtual void leave(View& view, Entity& entity) noexcept;
  [[nodiscard]] virtual bool wants_leave() const noexcept { return false; }

  /// An entity whose wanted_policy is that key goes to a policy of its own choice.
  [[nodiscard]] virtual bool offers(std::uint32_t key) const noexcept;

  /// The program has changed the priority of an entity that was submitted, or is in one that was.
  /// The mechanism heeds it already; the default does nothing more.
  virtual void adjust(View& view, Entity& entity) noexcept;

  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  /// The largest so far: those of policies made from now on are above it.
  [[nodiscard]] static std::uint32_t last_id() noexcept;
  /// As it was written for make_policy(); empty: made without a text. Constant once it rules.
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  void set_text(std::string_view text) { text_ = text; }
  /// Itself, or a policy inside it.
  [[nodiscard]] virtual bool owns(std::uint32_t id) const noexcept { return id == id_; }

 private:
  const std::uint32_t id_;  // Unique in the process, from 1.
  std::string text_;
};

/// What stands in brackets after the name: "gang(numa,slice=5)" has two.
using PolicyArguments = std::span<const std::string_view>;

struct PolicyEntry {
  std::string_view name;       // As written in sterna_options.policy.
  std::string_view arguments;  // What may follow in brackets; empty: nothing.
  std::string_view summary;    // One line, for `sterna info`.
  Result<std::unique_ptr<Policy>> (*make)(PolicyArguments arguments) = nullptr;
  // Instead of make, for interfaces in other languages: make_foreign(foreign, what stands in the
  // brackets, which is empty if `arguments` is).
  const void* foreign = nullptr;
  Result<std::unique_ptr<Policy>> (*make_foreign)(const void* foreign,
                                                  std::string_view arguments) = nullptr;
};

/// All policies of this build; see sched/policies/builtin.cc to add one.
[[nodiscard]] std::span<const PolicyEntry* const> builtin_policies() noexcept;
/// Those that the program has registered, the first `entries.size()` of them: how many there are.
[[nodiscard]] std::size_t registered_policies(std::span<const PolicyEntry*> entries) noexcept;
/// Null: no such policy.
[[nodiscard]] const PolicyEntry* find_policy(std::string_view name) noexcept;

/// What Entity::wanted_policy has for the text or the name of a policy. Never 0.
[[nodiscard]] std::uint32_t policy_key(std::string_view text) noexcept;

/// "burst", "gang(numa)", "fallback(burst,steal)". INVALID_ARGUMENT says what is wrong with it.
[[nodiscard]] Result<std::unique_ptr<Policy>> make_policy(std::string_view text);

/// Adds a policy of the program, found by make_policy() from then on. `entry` stays for ever.
/// Fails when the name is taken.
[[nodiscard]] Result<> register_policy(const PolicyEntry& entry);

}  // namespace sterna::sched
