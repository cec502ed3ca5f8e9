// For tests: the engine on a synthetic machine with nobody behind it, trees of entities from a
// text, and a loop that runs them.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/engine.h"

namespace sterna::sched {

/// What runs where is what the test says: see Machine::run().
class FakeHost final : public Host {
 public:
  void wake(std::uint32_t first, std::uint32_t count) noexcept override {
    woken.push_back({first, count});
  }
  void preempt(std::uint32_t worker) noexcept override { preempted.push_back(worker); }
  void move_memory(Entity& entity, std::uint32_t node) noexcept override {
    moved_memory.push_back({&entity, node});
  }
  bool is_running(const Entity& thread) const noexcept override {
    for (const Entity* const one : running) {
      if (one == &thread) {
        return true;
      }
    }
    return false;
  }
  bool is_unserved(const Entity& thread) const noexcept override {
    return std::ranges::find(unserved, &thread) != unserved.end();
  }
  bool is_busy(std::uint32_t worker) const noexcept override {
    return worker < running.size() && running[worker] != nullptr;
  }
  std::uint64_t now_ns() const noexcept override { return now; }

  std::uint64_t now = 1;
  std::vector<const Entity*> running;  // By worker.
  std::vector<const Entity*> unserved;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> woken;
  std::vector<std::uint32_t> preempted;
  std::vector<std::pair<Entity*, std::uint32_t>> moved_memory;
};

/// A machine, an engine with a policy, and the entities of the test.
class Machine {
 public:
  explicit Machine(const std::string& description, std::string_view policy = "flat") {
    auto made = topology::Topology::synthetic(description);
    check(made.has_value(), "the machine is described well");
    topology = std::move(made.value());
    auto parsed = make_policy(policy);
    check(parsed.has_value(), "the policy is written well");
    auto opened = Engine::open({.topology = topology.get(),
                                .workers = topology->pus(),
                                .policy = std::move(parsed.value()),
                                .host = &host});
    check(opened.has_value(), "the engine opens");
    engine = std::move(opened.value());
    host.running.assign(topology->pu_count(), nullptr);
  }
  ~Machine() {
    host.running.assign(host.running.size(), nullptr);
    drain();
    // The innermost first, whatever has moved where.
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (const auto& entity : entities_) {
        if (entity->holder() != nullptr &&
            (!entity->is_bubble() || static_cast<Bubble&>(*entity).empty())) {
          engine->remove(*entity);
          is_done = false;
        }
      }
    }
  }

  Bubble& bubble(Bubble* holder = nullptr) {
    auto made = std::make_shared<Bubble>();
    Bubble& result = *made;
    entities_.push_back(std::move(made));
    put(holder, result);
    return result;
  }
  Entity& thread(Bubble* holder = nullptr, std::uint64_t load = 1) {
    entities_.push_back(std::make_shared<Entity>());
    entities_.back()->load = load;
    put(holder, *entities_.back());
    return *entities_.back();
  }
  /// "(tt)(t(tt))t": brackets are bubbles, t threads, a number the load of the thread before it.
  std::vector<Entity*> tree(std::string_view text) {
    std::vector<Entity*> tops;
    std::vector<Bubble*> open{nullptr};
    Entity* last = nullptr;
    for (const char c : text) {
      if (c == ')') {
        open.pop_back();
        continue;
      }
      if (c >= '0' && c <= '9') {
        engine->update(*last, [&](Entity& it) { it.load = static_cast<std::uint64_t>(c - '0'); });
        continue;
      }
      Bubble* const holder = open.back();
      last = c == '(' ? &bubble(holder) : &thread(holder);
      if (holder == nullptr) {
        tops.push_back(last);
      }
      if (c == '(') {
        open.push_back(static_cast<Bubble*>(last));
      }
    }
    return tops;
  }
  /// Makes a tree ready and submits it.
  void start(std::string_view text) {
    const std::vector<Entity*> tops = tree(text);
    for (Entity* const top : tops) {
      engine->submit(*top);
    }
    make_ready();
  }
  /// All threads that wait for nothing yet.
  void make_ready() {
    for (const auto& entity : entities_) {
      if (!entity->is_bubble() && !entity->is_queued() && !host.is_running(*entity)) {
        engine->ready(*entity);
      }
    }
  }
  /// That worker, idle until now, looks for a thread, which then runs there. Null: none.
  Entity* take(std::uint32_t worker) {
    Entity* const found = engine->next(worker, nullptr);
    host.running[worker] = found;
    return found;
  }
  void give_back(std::uint32_t worker) {
    auto* const thread = const_cast<Entity*>(host.running[worker]);
    host.running[worker] = nullptr;
    if (thread != nullptr) {
      engine->ready(*thread);
    }
  }
  const topology::Place& place(topology::PlaceKind kind, std::uint32_t index) const {
    return *topology->find(kind, index);
  }
  const std::deque<std::shared_ptr<Entity>>& entities() const { return entities_; }
  /// Takes everything out of all queues.
  void drain() {
    (void)engine->change_policy(std::move(make_policy("flat").value()));
    for (std::uint32_t worker = 0; worker < host.running.size(); ++worker) {
      while (engine->next(worker, nullptr) != nullptr) {
      }
    }
  }

  FakeHost host;
  std::unique_ptr<topology::Topology> topology;
  std::unique_ptr<Engine> engine;

 private:
  void put(Bubble* holder, Entity& entity) {
    check(engine->insert(holder != nullptr ? *holder : engine->root(), entity).has_value(),
          "the entity is inserted");
  }

  // Shared only because such a pointer knows what it was made as, a bubble or a thread.
  std::deque<std::shared_ptr<Entity>> entities_;
};

}  // namespace sterna::sched
