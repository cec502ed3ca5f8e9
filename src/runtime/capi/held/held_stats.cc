// stats.h: load and attributes of threads and bubbles of C programs, and sums over what they hold.
#include <algorithm>
#include <cstring>

#include <sterna/stats.h>

#include "runtime/capi/held/held_target.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
namespace sched = sterna::sched;
using sterna::runtime::RuntimeScope;

static_assert(std::tuple_size_v<decltype(sched::Entity::attributes)> == STERNA_ATTRIBUTES);

namespace {

sched::Engine& engine() noexcept {
  return capi::program()->scheduler->engine();
}

/// change(entity) under the lock of the engine, for what is held.
template <typename Change>
sterna_status note(sterna_held held, Change change) noexcept {
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    engine().note(*target.entity, change);
    return capi::Verdict{};
  });
}

sterna_status refuse_index(std::uint32_t index) noexcept {
  return capi::refuse(STERNA_INVALID_ARGUMENT, "attribute {} is not 0 to {}", index,
                      STERNA_ATTRIBUTES - 1);
}

sterna_status query(sterna_held held, sched::Stats& stats) noexcept {
  return capi::with_held(held, [&](const capi::HeldTarget& target) noexcept {
    stats = engine().stats(*target.entity);
    return capi::Verdict{};
  });
}

}  // namespace

sterna_status sterna_thread_set_load(sterna_thread* thread, uint32_t load) noexcept {
  const RuntimeScope scope;
  if (load == 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "the load of a thread is 1 or more");
  }
  return note(sterna_held_thread(thread), [load](sched::Entity& its) { its.load = load; });
}

sterna_status sterna_held_set_attribute(sterna_held held, uint32_t index, uint64_t value) noexcept {
  const RuntimeScope scope;
  return index >= STERNA_ATTRIBUTES
             ? refuse_index(index)
             : note(held, [&](sched::Entity& its) { its.set_attribute(index, value); });
}

sterna_status sterna_held_add_attribute(sterna_held held, uint32_t index, int64_t change) noexcept {
  const RuntimeScope scope;
  return index >= STERNA_ATTRIBUTES ? refuse_index(index) : note(held, [&](sched::Entity& its) {
    its.set_attribute(index, its.attributes[index] + static_cast<uint64_t>(change));
  });
}

sterna_status sterna_attribute_synthesise(uint32_t index, sterna_synthesis synthesis) noexcept {
  const RuntimeScope scope;
  if (capi::program() == nullptr) {
    return capi::why_no_program();
  }
  if (index >= STERNA_ATTRIBUTES) {
    return refuse_index(index);
  }
  engine().set_synthesis(index, synthesis != nullptr ? synthesis : sched::Engine::sum);
  return STERNA_SUCCESS;
}

uint64_t sterna_synthesis_min(uint64_t so_far, uint64_t value) noexcept {
  return std::min(so_far, value);
}

uint64_t sterna_synthesis_max(uint64_t so_far, uint64_t value) noexcept {
  return std::max(so_far, value);
}

sterna_status sterna_held_query(sterna_held held, sterna_held_stats* stats) noexcept {
  const RuntimeScope scope;
  if (stats == nullptr || stats->size_bytes != sizeof *stats) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "sterna_held_query: size_bytes is sizeof(sterna_held_stats)");
  }
  sched::Stats sums;
  if (const sterna_status status = query(held, sums); status != STERNA_SUCCESS) {
    return status;
  }
  return capi::guarded([&] {
    *stats = {};
    stats->size_bytes = sizeof *stats;
    stats->threads = sums.threads;
    stats->ready = sums.ready;
    stats->running = sums.running;
    stats->load = sums.load;
    stats->memory_bytes = sums.memory.total();
    std::ranges::copy(sums.attributes, stats->attributes);
    if (sums.last_place != sched::kNoPlace) {
      const auto* const place = capi::program()->topology->places()[sums.last_place];
      (void)fmt::format_to_n(stats->last_place, sizeof stats->last_place - 1, "{}:{}",
                             to_string(place->kind), place->index);
    }
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_held_memory_on(sterna_held held, const char* place, uint64_t* bytes) noexcept {
  const RuntimeScope scope;
  if (const sterna_status status = capi::check_held(held); status != STERNA_SUCCESS) {
    return status;
  }
  if (place == nullptr || bytes == nullptr) {
    return capi::refuse_argument(__func__);
  }
  const sterna::topology::Place* const node = capi::place_named(place);
  if (node == nullptr) {
    return STERNA_NOT_FOUND;
  }
  if (node->kind != sterna::topology::PlaceKind::numa) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "\"{}\" is no NUMA node: \"numa:0\" is one",
                        place);
  }
  sched::Stats sums;
  const sterna_status status = query(held, sums);
  *bytes = sums.memory.on(node->index);
  return status;
}
