// What the policy hears of the program, and which policy rules.
#include "sched/engine.h"

#include <algorithm>

#include "base/check.h"
#include "sched/event.h"
#include "sched/policies/builtin.h"

namespace sterna::sched {
namespace {

constexpr std::size_t kScratchBytesMin = 16 * 1024;

}  // namespace

bool covers(const topology::Place& outer, const topology::Place& inner) noexcept {
  return outer.depth <= inner.depth && outer.pu_first <= inner.pu_first &&
         inner.pu_first + inner.pu_count <= outer.pu_first + outer.pu_count;
}

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
  check(options.topology != nullptr && options.host != nullptr,
        "an engine has a topology and a host");
  if (options.workers.empty()) {
    return Error{Errc::invalid_argument, "sched: no worker is given; a scheduler needs 1 at least"};
  }
  for (std::size_t i = 0; i < options.workers.size(); ++i) {
    const topology::Place& place = *options.workers[i];
    if (!place.children.empty()) {
      return Error{Errc::invalid_argument,
                   "sched: worker " + std::to_string(i) + " is not on a processor of the topology"};
    }
    if (i > 0 && place.pu_first < options.workers[i - 1]->pu_first) {
      return Error{Errc::invalid_argument,
                   "sched: workers must be in the order of their processors; worker " +
                       std::to_string(i) + " is not"};
    }
  }
  if (options.policy == nullptr) {
    options.policy = std::move(kFlatPolicy.make({}).value());
  }
  if (Result<> prepared = options.policy->prepare(*options.topology); !prepared) {
    return prepared.error();
  }
  return std::unique_ptr<Engine>{new Engine{std::move(options)}};
}

Engine::Engine(EngineOptions options)
    : topology_{*options.topology},
      host_{*options.host},
      ranges_(options.topology->places().size()),
      memory_nodes_{options.topology->count(topology::PlaceKind::numa)},
      confined_(options.topology->places().size()),
      enabled_{std::make_unique<std::atomic<bool>[]>(options.workers.size())},
      enabled_counts_{
          std::make_unique<std::atomic<std::uint32_t>[]>(options.topology->places().size())},
      queues_{std::make_unique<PlaceQueue[]>(options.topology->places().size() + 1)},
      lock_{options.workers.size()},
      running_{std::make_unique<std::atomic<Entity*>[]>(options.workers.size())},
      running_priority_{std::make_unique<std::atomic<std::uint8_t>[]>(options.workers.size())},
      asked_{std::make_unique<std::atomic<std::uint64_t>[]>(options.workers.size())} {
  for (std::uint32_t worker = 0; worker < options.workers.size(); ++worker) {
    std::vector<std::uint32_t> route;
    const topology::Place* place = options.workers[worker];
    for (; place != nullptr; place = place->parent) {
      route.push_back(place->id);
      WorkerRange& range = ranges_[place->id];
      if (range.count == 0) {
        range.first = worker;
      }
      range.count = worker - range.first + 1;
    }
    routes_.push_back(std::move(route));
    enabled_[worker].store(true, std::memory_order_relaxed);
  }
  for (const topology::Place* const place : topology_.places()) {
    enabled_counts_[place->id].store(ranges_[place->id].count, std::memory_order_relaxed);
  }
  confine_places();
  root_.planned_ = topology_.root().id;
  root_.target_.store(topology_.root().id, std::memory_order_relaxed);
  scratch_ = std::make_unique<std::byte[]>(kScratchBytesMin);
  scratch_bytes_.store(kScratchBytesMin, std::memory_order_relaxed);
  adopt_policy(std::move(options.policy));
}

Engine::~Engine() {
  check(root_.empty(), "all entities have left the tree when the scheduler ends");
}

void Engine::adopt_policy(std::unique_ptr<Policy> policy) noexcept {
  policy_ = std::move(policy);
  wants_meet_.store(policy_->wants_meet(), std::memory_order_relaxed);
  wants_wake_.store(policy_->wants_wake(), std::memory_order_relaxed);
  tick_ns_.store(policy_->tick_ns(), std::memory_order_relaxed);
  next_tick_ns_.store(host_.now_ns() + policy_->tick_ns(), std::memory_order_relaxed);
  last_tick_ns_ = host_.now_ns();
  allow_keeping();
}

void Engine::spill(Bubble& bubble) noexcept {
  const TreeGuard guard{lock_};
  const std::uint32_t ruler = top_of(bubble).ruler_;
  while (Entity* const held = bubble.first_) {
    unlink(*held);
    link(root_, *held);
    held->ruler_ = ruler;
    updated(*held);
  }
}

void Engine::updated(Entity& entity) noexcept {
  if (entity.holder() == nullptr) {
    return;  // Not inserted yet.
  }
  refresh_priority(entity, entity.holder()->effective_priority());
  allow_keeping();
  retarget(entity);
  if (entity.is_bubble_) {
    // What has a place of its own in it is bounded by what is around it, too.
    retarget_all(static_cast<Bubble&>(entity));
  }
}

Entity& Engine::top_of(Entity& entity) const noexcept {
  Entity* top = &entity;
  while (top->holder() != &root_ && top->holder() != nullptr) {
    top = top->holder();
  }
  return *top;
}

void Engine::submit(Entity& entity) noexcept {
  Event event{*this};
  Entity& top = top_of(entity);
  if (&top != &root_) {
    event.policy().submit(event.view, top);
  }
}

void Engine::grow(Entity& entity) noexcept {
  Event event{*this};
  Entity& top = top_of(entity);
  if (&top == &entity) {
    event.policy().submit(event.view, top);
  } else {
    event.policy().grow(event.view, top);
  }
}

void Engine::shake() noexcept {
  Event event{*this};
  event.policy().shake(event.view);
}

void Engine::confine_places() noexcept {
  for (const topology::Place* const place : topology_.places()) {  // Parents come first.
    confined_[place->id] = enabled_count(place->id) != 0 ? place->id : confined_[place->parent->id];
  }
}

void Engine::retarget_all(Bubble& bubble) noexcept {
  for (Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    retarget(*held);
    if (held->is_bubble_) {
      retarget_all(static_cast<Bubble&>(*held));
    }
  }
}

void Engine::enable_worker(std::uint32_t worker, bool is_enabled) noexcept {
  Event event{*this};
  if (enabled_[worker].exchange(is_enabled, std::memory_order_relaxed) == is_enabled) {
    return;
  }
  for (const std::uint32_t place : routes_[worker]) {
    enabled_counts_[place].fetch_add(is_enabled ? 1 : ~0U, std::memory_order_relaxed);
  }
  check(enabled_count(topology_.root().id) != 0, "a scheduler keeps a worker that is enabled");
  confine_places();
  event.policy().shake(event.view);
  commit();
  // What the policy has left where it was, or the program wants there.
  retarget_all(root_);
}

void Engine::set_phase(std::uint32_t number) noexcept {
  Event event{*this};
  event.policy().phase(event.view, number);
}

void Engine::forget_policy(Bubble& bubble) noexcept {
  bubble.policy_slice_ns_ = 0;
  bubble.slice_used_ns_ = 0;
  for (Entity* held = bubble.first_; held != nullptr; held = held->next_) {
    held->policy_word = 0;
    if (held->is_bubble_) {
      forget_policy(static_cast<Bubble&>(*held));
    }
  }
}

Result<> Engine::change_policy(std::unique_ptr<Policy> policy) noexcept {
  check(policy != nullptr, "a scheduler has a policy");
  if (Result<> prepared = policy->prepare(topology_); !prepared) {
    return prepared;
  }
  std::unique_ptr<Policy> former;  // Destroyed outside the lock.
  Event event{*this};
  former.swap(policy_);
  adopt_policy(std::move(policy));
  event.view.policy_ = policy_.get();
  for (Entity* top = root_.first_; top != nullptr; top = top->next_) {
    top->ruler_ = policy_->id();
  }
  forget_policy(root_);
  policy_->shake(event.view);
  return Done{};
}

std::size_t Engine::policy_text(std::span<char> text) const noexcept {
  const TreeGuard guard{lock_};
  const std::string_view its = policy_->text();
  std::copy_n(its.begin(), std::min(its.size(), text.size()), text.begin());
  return its.size();
}

}  // namespace sterna::sched
