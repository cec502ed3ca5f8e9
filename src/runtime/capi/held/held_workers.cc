// Sets of workers of threads in bubbles. Such a thread waits in the queue of a place, so what a set
// means for it is a place: the largest one that has workers of the set only, within what the
// bubbles around it do not leave.
#include "runtime/capi/held/held_workers.h"

#include <algorithm>
#include <cstdio>

#include "runtime/capi/held/held_target.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "threads/flags.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {
namespace {

constexpr std::uint64_t kStepNs = 1'000;

bool has(std::span<const std::uint64_t> words, std::uint32_t worker) noexcept {
  return worker / 64 < words.size() && (words[worker / 64] >> worker % 64 & 1) != 0;
}

bool is_at(const Program& program, std::uint32_t worker, const topology::Place& place) noexcept {
  return sched::covers(place, *program.worker_places[worker]);
}

/// How many workers of the set `place` has; 0 if it has one that is not of the set.
std::uint32_t count_at(const Program& program, const topology::Place& place,
                       std::span<const std::uint64_t> words) noexcept {
  std::uint32_t count = 0;
  for (std::uint32_t worker = 0; worker < program.worker_places.size(); ++worker) {
    if (is_at(program, worker, place)) {
      if (!has(words, worker)) {
        return 0;
      }
      ++count;
    }
  }
  return count;
}

/// The largest place within `bound` for the set; null: there is none.
const topology::Place* place_within(const Program& program, const topology::Place& bound,
                                    std::span<const std::uint64_t> words) noexcept {
  const topology::Place* best = nullptr;
  std::uint32_t best_count = 0;
  for (const topology::Place* const place : program.topology->places()) {
    const std::uint32_t count = sched::covers(bound, *place) ? count_at(program, *place, words) : 0;
    if (count > best_count) {
      best = place;
      best_count = count;
    }
  }
  return best;
}

/// The place that bubbles around the thread do not leave, and which of them says so, as in
/// Engine::confined(): the innermost, and what is narrower around it. Null: none does.
struct Bound {
  const sterna_bubble* bubble = nullptr;
  const topology::Place* place = nullptr;
};
Bound bound_around(const Program& program, const HeldTarget& target) noexcept {
  Bound bound;
  const sterna_bubble* bubble = target.member != nullptr ? target.member->bubble : nullptr;
  for (; bubble != nullptr; bubble = bubble->holder) {
    const std::uint32_t id = bubble->bubble.program_place;
    const topology::Place* const asked =
        id != sched::kNoPlace ? program.topology->places()[id] : nullptr;
    if (asked != nullptr && (bound.place == nullptr || sched::covers(*bound.place, *asked))) {
      bound = {bubble, asked};
    }
  }
  return bound;
}

/// All of its workers are disabled: it goes on near them.
bool is_elsewhere(const Program& program, std::span<const std::uint64_t> words) noexcept {
  for (std::uint32_t worker = 0; worker < program.worker_places.size(); ++worker) {
    if (has(words, worker) && program.team->is_enabled(worker)) {
      return false;
    }
  }
  return true;
}

/// Why there is no place for the set.
void explain(const Program& program, const Bound& bound, std::span<const std::uint64_t> words,
             char (&text)[256]) noexcept {
  bool has_one = bound.place == nullptr;
  for (std::uint32_t worker = 0; !has_one && worker < program.worker_places.size(); ++worker) {
    has_one = has(words, worker) && is_at(program, worker, *bound.place);
  }
  if (has_one) {
    (void)std::snprintf(
        text, sizeof text,
        "a thread of a bubble runs on whole processors, and each one of the set has "
        "workers that are not in it");
    return;
  }
  std::uint32_t first = 0;
  while (!has(words, first)) {
    ++first;
  }
  (void)std::snprintf(
      text, sizeof text,
      "bubble %p, which holds it, stays at %s:%u, where no worker of the set is (its "
      "first is %u)",
      static_cast<const void*>(bound.bubble), topology::to_string(bound.place->kind).data(),
      bound.place->index, first);
}

}  // namespace

sterna_status set_workers_held(sterna_thread* thread,
                               std::span<const std::uint64_t> words) noexcept {
  Program& its = *program();
  char text[256] = "";
  bool is_self = false;
  const topology::Place* place = nullptr;
  const sterna_status status =
      with_held({.thread = thread, .bubble = nullptr}, [&](const HeldTarget& target) noexcept {
        const Bound bound = bound_around(its, target);
        if (!words.empty()) {
          place = place_within(its, bound.place != nullptr ? *bound.place : its.topology->root(),
                               words);
        }
        if (!words.empty() && place == nullptr) {
          explain(its, bound, words, text);
          return Verdict{STERNA_REFUSED, text};
        }
        its.scheduler->engine().update(*target.entity, [&](sched::Entity& entity) {
          entity.program_place = place != nullptr ? place->id : sched::kNoPlace;
        });
        is_self = target.thread == threads::self();
        return Verdict{};
      });
  if (status != STERNA_SUCCESS) {
    return text[0] != '\0' ? refuse(STERNA_REFUSED, "{}: {}", words_for(thread_of(thread)), text)
                           : status;
  }
  // It goes where it is wanted when it becomes ready: a yield that finds nobody would stay.
  while (is_self && place != nullptr && !is_elsewhere(its, words) &&
         !is_at(its, threads::worker_index(*threads::this_worker()), *place)) {
    threads::sleep_for(kStepNs);
  }
  return STERNA_SUCCESS;
}

void put_workers_held(sterna_thread* thread, threads::WorkerSet::Words& words) noexcept {
  const threads::Thread* const its = thread_of(thread);
  if ((threads::flags_of(*its) & threads::ThreadFlag::placed) == 0) {
    return;
  }
  const topology::Place* place = nullptr;
  (void)with_held({.thread = thread, .bubble = nullptr}, [&](const HeldTarget& target) noexcept {
    const std::uint32_t id = target.entity->program_place;
    place = id != sched::kNoPlace ? program()->topology->places()[id] : nullptr;
    return Verdict{};
  });
  // Not what ThreadFlag::bound says: that is where a plan keeps it (queues/kept.h).
  words = {};
  const std::size_t count = std::min(program()->worker_places.size(), words.size() * 64);
  for (std::uint32_t worker = 0; worker < count; ++worker) {
    if (place == nullptr || is_at(*program(), worker, *place)) {
      words[worker / 64] |= std::uint64_t{1} << worker % 64;
    }
  }
}

}  // namespace sterna::runtime::capi
