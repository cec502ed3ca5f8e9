// What the engine tells the trace (base/trace.h): who holds whom, where bubbles are, and what joins
// and leaves the queues of places. Off, each point is a load and a branch.
#include "base/trace.h"
#include "sched/engine.h"

namespace sterna::sched {
namespace {

std::uint64_t place_key(std::uint32_t place) noexcept {
  return trace::key_of(trace::KeyClass::place, place);
}

/// The address, which is its own while it is there.
std::uint64_t bubble_key(const Bubble& bubble) noexcept {
  return trace::key_of(trace::KeyClass::bubble, reinterpret_cast<std::uintptr_t>(&bubble) >> 4);
}

}  // namespace

std::uint64_t Engine::trace_key(const Entity& entity) const noexcept {
  if (!entity.is_bubble()) {
    return host_.trace_key(entity);
  }
  return host_.has_traced_bubbles() ? bubble_key(static_cast<const Bubble&>(entity))
                                    : trace::kNobody;
}

void Engine::record_queue(trace::Kind kind, const Entity& thread,
                          std::uint32_t place) const noexcept {
  if (const std::uint64_t key = host_.trace_key(thread); key != trace::kNobody) {
    trace::record(kind, trace::kNoWorker, key, place_key(place));
  }
}

void Engine::record_join(const Entity& entity) const noexcept {
  const std::uint64_t key = trace_key(entity);
  if (key == trace::kNobody) {
    return;  // Its thread comes later: it tells when it is ready first.
  }
  if (entity.is_bubble() && entity.name != nullptr) {
    trace::name(key, entity.name);
  }
  const bool is_outermost = entity.holder() == nullptr || entity.holder() == &root_;
  trace::record(trace::Kind::joins, trace::kNoWorker, key,
                is_outermost ? trace::kNobody : bubble_key(*entity.holder()));
}

void Engine::record_bubble(trace::Kind kind, const Entity& entity,
                           std::uint32_t place) const noexcept {
  const std::uint64_t key = trace_key(entity);
  if (entity.is_bubble() && &entity != &root_ && key != trace::kNobody) {
    trace::record(kind, trace::kNoWorker, key, place_key(place));
  }
}

void Engine::trace_join(const Entity& entity) noexcept {
  const TreeGuard guard{lock_};
  record_join(entity);
}

}  // namespace sterna::sched
