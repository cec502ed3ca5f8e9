// The mechanism of hierarchical scheduling: the tree of entities, a run queue per place of the
// machine, and the commitment of plans. It knows no thread: whoever runs the entities is its Host
// (scheduler.h over a team of workers, simulator.h over virtual ones).
//
// Locks, from the top down: that of all (the tree, the plan, the policy) or that of one holder, see
// tree_lock.h; then that of one queue. What every thread does at every switch, a look at the queues
// from its processor up to the root, takes the lock of the one queue where it found something only.
//
// The order of places. What the program asked for (program_place) bounds what the policy plans
// (planned), which with the holders gives a target: the queue for the next time the thread becomes
// ready. Those that wait in a queue move at once, those that run or are blocked at their next
// wake-up.
#pragma once

#include <atomic>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/trace.h"
#include "sched/entity_info.h"
#include "sched/host.h"
#include "sched/place_queue.h"
#include "sched/policy.h"
#include "sched/tree_lock.h"

namespace sterna::sched {

struct EngineOptions {
  const topology::Topology* topology = nullptr;  // Outlives the engine.
  // The processor of each worker, from left to right; they need not be all of the topology.
  std::span<const topology::Place* const> workers = {};
  std::unique_ptr<Policy> policy = nullptr;  // Null: flat.
  Host* host = nullptr;                      // Outlives the engine.
};

/// What becomes of the place of an entity that changes its holder.
enum class HolderChange : std::uint8_t { now, stays };

class EventNotice;

/// Calls about the tree and the policy: from anywhere, not with locks held.
class Engine {
 public:
  static Result<std::unique_ptr<Engine>> open(EngineOptions options);
  /// The tree is empty but for the root (check).
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The bubble that holds what has no other holder.
  [[nodiscard]] Bubble& root() noexcept { return root_; }
  [[nodiscard]] const topology::Topology& topology() const noexcept { return topology_; }

  /// `entity`, with all that it holds, joins `holder` and goes where that is until it is submitted.
  /// A thread's entity is inserted before its thread starts. INVALID_ARGUMENT: it has a holder,
  /// holds `holder`, or would be nested too deep; its program_place or level do not exist.
  Result<> insert(Bubble& holder, Entity& entity) noexcept;
  /// The same, into the holder of `neighbour`, which stays there meanwhile: that holder.
  Result<Bubble*> insert_beside(const Entity& neighbour, Entity& entity) noexcept;
  /// The same, as the thread that `neighbour` is: what the program says of that, it says of it.
  Result<> insert_like(const Entity& neighbour, Entity& entity) noexcept;
  /// Where an entity would go that is inserted like that one. A hint.
  [[nodiscard]] std::uint32_t place_beside(const Entity& neighbour) const noexcept;
  enum class Reach : std::uint8_t { no, by_policy, planned };
  /// Whether that worker would take it there; or from elsewhere, if the policy moves it: the
  /// program would allow that. A hint.
  [[nodiscard]] Reach reach(const Entity& neighbour, std::uint32_t worker) const noexcept;
  /// What it holds is held by the root from now on, where it is.
  void spill(Bubble& bubble) noexcept;
  /// A bubble must be empty (check), a thread ended or never started.
  void remove(Entity& entity) noexcept;
  /// Into another holder, with all that it holds: its affinity has changed, whether it runs or not.
  /// now: it goes where that holder is, or, of the root, where the policy says. stays: it is
  /// planned where it was until the policy plans it anew, but for what is aside within a bubble:
  /// nobody would fetch it. Fails as insert.
  Result<> change_holder(Bubble& holder, Entity& entity,
                         HolderChange change = HolderChange::now) noexcept;
  /// As if the policy had planned it there, with all that it holds: it may plan otherwise later.
  void put(Entity& entity, std::uint32_t place) noexcept;
  /// False, of one that has been in the tree: its memory may go. Takes no lock, see
  /// Entity::holder_.
  [[nodiscard]] static bool is_in_tree(const Entity& entity) noexcept {
    return entity.holder_.load(std::memory_order_acquire) != nullptr;
  }
  /// Null: it is outermost, or in no tree.
  [[nodiscard]] Bubble* holder_of(const Entity& entity) const noexcept {
    const TreeGuard guard{lock_};
    return entity.holder() == &root_ ? nullptr : entity.holder();
  }

  /// Hands it (or the outermost bubble around it) to the policy: it is placed with all it holds.
  void submit(Entity& entity) noexcept;
  /// It has joined the tree, perhaps with others before it: submits it if it is outermost, else
  /// tells the policy that what is around it has grown.
  void grow(Entity& entity) noexcept;
  /// The policy places everything anew.
  void shake() noexcept;
  /// The program is in that phase now.
  void set_phase(std::uint32_t number) noexcept;
  /// Another policy from now on: everything is placed anew by it. Fails as its prepare().
  Result<> change_policy(std::unique_ptr<Policy> policy) noexcept;
  /// Whether Entity::wanted_policy may be that one: see policies/choice.cc.
  [[nodiscard]] bool offers(std::string_view policy) const noexcept {
    const TreeGuard guard{lock_};
    return policy_->offers(policy_key(policy));
  }
  /// The text of the policy that rules, as much as fits: how long it is.
  [[nodiscard]] std::size_t policy_text(std::span<char> text) const noexcept;

  /// Changes what the program says of entities, and has it hold: change() runs under the lock.
  template <typename Change>
  void update(Entity& entity, Change&& change) noexcept {
    const TreeGuard guard{lock_};
    change(entity);
    updated(entity);
  }
  /// The same for what policies only read when they place: nothing follows from it before that.
  template <typename Change>
  void note(Entity& entity, Change&& change) noexcept {
    const TreeGuard guard{lock_};
    change(entity);
  }
  /// Calls it with the root while nothing in the tree changes.
  template <typename Look>
  void look(Look&& look) const noexcept {
    const TreeGuard guard{lock_};
    look(root_);
  }
  /// update() of a priority (kPriorityOfHolder: as what holds it): the policy hears of it, too.
  void set_priority(Entity& entity, std::uint8_t priority) noexcept;
  [[nodiscard]] bool is_settled(const Entity& entity) const noexcept {
    return look_up_from(entity, [&] { return entity.is_settled; });
  }
  /// It or a bubble around it is unpreemptible.
  [[nodiscard]] bool forbids_preemption(const Entity& entity) const noexcept {
    return look_up_from(entity, [&] { return is_unpreemptible(entity); });
  }
  [[nodiscard]] Stats stats(const Entity& entity) const noexcept;
  /// How that attribute is synthesised from now on.
  void set_synthesis(std::size_t index, Synthesis synthesis) noexcept;
  static std::uint64_t sum(std::uint64_t so_far, std::uint64_t value) noexcept {
    return so_far + value;
  }
  /// Threads that nobody would ever run, and what else is not as it must be: one sentence each.
  /// For `sterna doctor` and tests; costs a walk over all. A thread that is ready and nowhere is
  /// told after kLostLooks calls in a row that found it so: between a queue and a processor every
  /// thread is nowhere for a moment.
  [[nodiscard]] std::vector<std::string> audit();
  static constexpr std::uint8_t kLostLooks = 3;
  /// What the tree looks like, outermost first, at most `count_max` entities: for people.
  [[nodiscard]] std::vector<EntityInfo> list(std::size_t count_max) const;
  /// Entities that policies took and did not put back: they were put back where they had been.
  [[nodiscard]] std::uint64_t lost_count() const noexcept {
    return lost_count_.load(std::memory_order_relaxed);
  }
  /// Literal placements, for tests and tools: one word an entity, outermost first.
  [[nodiscard]] std::string placement() const;

  /// The processor of that worker is taken away, or is back: everything is placed anew without it,
  /// or with it. What the program wants there alone goes to the nearest place around it that has an
  /// enabled worker, and returns with it. One stays enabled (check).
  void enable_worker(std::uint32_t worker, bool is_enabled) noexcept;

  /// It ran there before it came to this engine: for policies that look. Before insert().
  static void ran_on(Entity& thread, const topology::Place& processor) noexcept {
    thread.actual_.store(processor.id, std::memory_order_relaxed);
  }

  /// The thread of an entity, which was inserted before, is known to the host now.
  void trace_join(const Entity& entity) noexcept;

  // Workers. May be called at every switch.

  /// The next thread for that worker, running from now on, or null. `leaving`: the thread that
  /// yields, less urgent ones than it are left where they are.
  Entity* next(std::uint32_t worker, const Entity* leaving) noexcept;
  /// The thread became ready: first start, wake-up, yield, preemption.
  void ready(Entity& thread) noexcept;
  /// For a host with private queues: `thread`, which is its own to make ready, may live in that of
  /// a worker from now on, until Host::recall(): its index. kNoPlace: it may not, call ready().
  std::uint32_t keep(Entity& thread) noexcept;
  [[nodiscard]] std::uint32_t worker_count() const noexcept {
    return static_cast<std::uint32_t>(routes_.size());
  }
  /// The workers below a place: first and count.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> workers_below(
      std::uint32_t place) const noexcept {
    return {ranges_[place].first, ranges_[place].count};
  }
  /// keep() was not made use of.
  static void unkeep(Entity& thread) noexcept {
    thread.kept_.store(kNoPlace, std::memory_order_relaxed);
  }
  /// It was kept, and is ready: to the queue of its place. For idle workers to look at.
  void expose(Entity& thread) noexcept;
  /// The next thread that waits where that worker alone looks, off its queue; null: none.
  Entity* take_own(std::uint32_t worker) noexcept;
  /// Whether the queues of that worker hold something, or something has been put aside since it
  /// last asked for a thread.
  [[nodiscard]] bool has_work(std::uint32_t worker) const noexcept { return highest(worker) >= 0; }
  /// The highest priority there; of what was put aside, normal. -1: nothing.
  [[nodiscard]] int highest(std::uint32_t worker) const noexcept;
  /// Time passes, if next() is not called meanwhile.
  void poll_tick() noexcept;
  [[nodiscard]] std::uint64_t tick_ns() const noexcept {
    return tick_ns_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t processor_place(std::uint32_t worker) const noexcept {
    return routes_[worker].front();
  }

 private:
  friend class View;

  /// The workers below a place: contiguous.
  struct WorkerRange {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  class Event;

  explicit Engine(EngineOptions options);

  // Who comes and leaves: membership.cc.
  [[nodiscard]] Result<> check_insert(const Bubble& holder, const Entity& entity) const noexcept;
  [[nodiscard]] Result<> check_holder(const Bubble& holder, const Entity& entity) const noexcept;
  [[nodiscard]] Result<> join_tree(Bubble& holder, Entity& entity) noexcept;
  [[nodiscard]] bool joins_quietly(const Bubble& holder, const Entity& entity) const noexcept;
  [[nodiscard]] Result<> join_quietly(Bubble& holder, Entity& entity) noexcept;
  template <typename Prepare>
  [[nodiscard]] std::optional<Result<>> try_join(Bubble* holder, const Entity* neighbour,
                                                 Entity& entity, Prepare&& prepare) noexcept;
  [[nodiscard]] bool try_leave(Entity& entity) noexcept;
  void check_leaves(const Entity& entity) const noexcept;
  void forget(Entity& entity) noexcept;
  void link(Bubble& holder, Entity& entity) noexcept;
  void unlink(Entity& entity) noexcept;
  void grow_scratch() noexcept;

  /// Calls look() while nothing changes from there up to the root.
  template <typename Look>
  std::invoke_result_t<Look> look_up_from(const Entity& entity, Look&& look) const noexcept {
    {
      const Bubble* const holder = entity.holder();
      const HolderGuard guard{lock_, holder};
      if (guard.is_held() && entity.holder() == holder) {
        return look();
      }
    }
    const TreeGuard guard{lock_};
    return look();
  }

  // Structure: engine.cc, siblings.cc.
  [[nodiscard]] std::uint32_t target_beside(const Entity& neighbour) const noexcept;
  void updated(Entity& entity) noexcept;
  static void forget_policy(Bubble& bubble) noexcept;
  [[nodiscard]] std::uint32_t plan_that_stays(const Entity& entity,
                                              const Bubble& holder) const noexcept;
  [[nodiscard]] Entity& top_of(Entity& entity) const noexcept;

  // Plans, under lock_: plan.cc.
  void commit() noexcept;
  void put_back_what_is_lost() noexcept;
  void retarget(Entity& entity) noexcept;
  void apply(Entity& entity, std::uint32_t target) noexcept;
  [[nodiscard]] std::uint32_t confined(const Entity& entity, std::uint32_t place) const noexcept;
  void refresh_priority(Entity& entity, std::uint8_t of_holder) noexcept;
  void set_effective_priority(Entity& entity, std::uint8_t priority) noexcept;
  void allow_keeping() noexcept;
  void recall_all(Entity& entity) noexcept;
  [[nodiscard]] bool is_unpreemptible(const Entity& entity) const noexcept;

  // Workers: dispatch.cc.
  Entity* take_from_route(std::uint32_t worker, std::uint32_t priority_min) noexcept;
  bool settle(std::uint32_t worker, Entity& thread) noexcept;
  bool ask_idle(std::uint32_t worker) noexcept;
  void charge_slices(std::uint64_t elapsed_ns) noexcept;
  void charge_slice(View& view, const Entity& thread, std::uint64_t elapsed_ns) noexcept;
  void charge_kept(View& view, const Bubble& bubble, std::uint64_t elapsed_ns) noexcept;
  void enqueue(Entity& thread) noexcept;
  void take(std::uint32_t worker, Entity& thread) noexcept;
  void forget_running(Entity& thread) noexcept;
  void preempt_less_urgent(std::uint32_t target, std::uint8_t priority) noexcept;
  void adopt_policy(std::unique_ptr<Policy> policy) noexcept;
  [[nodiscard]] bool is_enabled(std::uint32_t worker) const noexcept {
    return enabled_[worker].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t enabled_count(std::uint32_t place) const noexcept {
    return enabled_counts_[place].load(std::memory_order_relaxed);
  }
  void retarget_all(Bubble& bubble) noexcept;
  void confine_places() noexcept;
  /// What is planned there runs on that worker only, whatever its policy says when they meet.
  [[nodiscard]] bool is_own_place(std::uint32_t worker, std::uint32_t place) const noexcept {
    return place < ranges_.size() && ranges_[place].count == 1 && ranges_[place].first == worker &&
           (!wants_meet_.load(std::memory_order_relaxed) || place == routes_[worker].front());
  }
  [[nodiscard]] std::size_t queue_index(std::uint32_t target) const noexcept {
    return target == kAside ? topology_.places().size() : target;
  }

  // For the trace, while that is on: traced.cc.
  [[nodiscard]] std::uint64_t trace_key(const Entity& entity) const noexcept;
  void record_queue(trace::Kind kind, const Entity& thread, std::uint32_t place) const noexcept;
  void record_join(const Entity& entity) const noexcept;
  void record_bubble(trace::Kind kind, const Entity& entity, std::uint32_t place) const noexcept;
  /// `thread` is about to join the queue of a place, or has left it.
  void note_queue(trace::Kind kind, const Entity& thread, std::uint32_t place) const noexcept {
    if (trace::is_on()) [[unlikely]] {
      record_queue(kind, thread, place);
    }
  }

  // Looking: stats.cc.
  [[nodiscard]] bool is_ready(const Entity& thread) const noexcept {
    return thread.is_queued() || (thread.is_kept() && host_.is_kept_ready(thread));
  }
  void add_stats(const Entity& entity, Stats& stats) const noexcept;
  void audit_entity(Entity& entity, std::vector<std::string>& found);
  void audit_thread(Entity& thread, std::vector<std::string>& found);
  [[nodiscard]] Stats list_held(const Bubble& holder, std::uint32_t depth, std::size_t count_max,
                                std::vector<EntityInfo>& infos) const;
  [[nodiscard]] EntityInfo describe(const Entity& entity, std::uint32_t depth) const;
  void add_sums(const Stats& from, Stats& to) const noexcept;
  void add_attributes(const std::array<std::uint64_t, kAttributes>& values, std::uint8_t set,
                      Stats& stats) const noexcept;
  void join_places(std::uint32_t& joined, std::uint32_t place) const noexcept;
  [[nodiscard]] std::string words_for(const Entity& entity) const;
  [[nodiscard]] std::string place_name(std::uint32_t target) const;
  void audit_queues(std::vector<std::string>& found) const;
  void place_text(const Bubble& holder, std::string& text) const;
  [[nodiscard]] bool covers(std::uint32_t place, std::uint32_t processor) const noexcept;

  const topology::Topology& topology_;
  Host& host_;
  std::vector<std::vector<std::uint32_t>> routes_;  // By worker, processor to root; constant.
  std::vector<WorkerRange> ranges_;                 // By place; constant.
  const std::size_t memory_nodes_;                  // NUMA nodes.
  // By place: itself or, without enabled workers, above it. Guard: lock_.
  std::vector<std::uint32_t> confined_;
  // By worker, and how many below each place. Written under lock_; relaxed: who sees it late finds
  // nothing where nothing is placed any more.
  std::unique_ptr<std::atomic<bool>[]> enabled_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> enabled_counts_;
  std::unique_ptr<PlaceQueue[]> queues_;  // By place, then the one of kAside.

  mutable TreeLock lock_;
  std::unique_ptr<Policy> policy_;  // Guard of all: lock_.
  std::array<Synthesis, kAttributes> synthesis_{sum, sum, sum, sum};
  Bubble root_;
  Entity* moved_ = nullptr;  // What the present event has planned, in order.
  Entity* last_moved_ = nullptr;
  std::unique_ptr<std::byte[]> scratch_;
  std::atomic<std::size_t> scratch_bytes_{0};  // Written with it; relaxed: who wants more looks.
  std::pmr::memory_resource* event_memory_ = nullptr;
  EventNotice* event_notice_ = nullptr;

  // By worker: what it took last, and how urgent that is. Written by the worker; an entity that
  // leaves the tree, or is taken by another worker, is erased. Relaxed: for ticks and hints.
  std::unique_ptr<std::atomic<Entity*>[]> running_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> running_priority_;
  // What was ever put aside ready, and kAskAgain for each View::ask_again(); by worker, how much of
  // that when it last looked for a thread (written by the worker, relaxed). Without it a worker
  // would sleep beside what its policy would give it. So many put aside count as one to ask again,
  // which costs a look.
  static constexpr std::uint64_t kAskAgain = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> news_count_{0};
  std::unique_ptr<std::atomic<std::uint64_t>[]> asked_;
  std::uint32_t priority_count_ = 0;          // Entities that are not of normal priority: lock_.
  std::atomic<bool> uses_priorities_{false};  // Written under lock_, relaxed: priority_count_ != 0.
  // Threads may be kept: no policy hears of wake-ups, no priorities that shared queues have to
  // compare. Written under lock_; sequentially consistent, as targets: see keep().
  std::atomic<bool> allows_keeping_{false};
  std::atomic<bool> has_kept_{false};  // Ever. Relaxed.
  bool has_recalled_ = false;          // In the present event. Guard: lock_.

  // Constant between changes of the policy; read without the lock: an old one is asked once more.
  std::atomic<bool> wants_meet_{false};
  std::atomic<bool> wants_wake_{false};
  std::atomic<std::uint64_t> tick_ns_{0};
  std::atomic<std::uint64_t> next_tick_ns_{0};
  std::uint64_t last_tick_ns_ = 0;  // Guard: lock_.
  std::atomic<std::uint64_t> lost_count_{0};
  char first_lost_[96] = {};  // For people. Guard: lock_.
};

[[nodiscard]] bool covers(const topology::Place& outer, const topology::Place& inner) noexcept;

}  // namespace sterna::sched
