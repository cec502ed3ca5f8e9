// What a program with user threads tells who looks: sterna ps, top, doctor.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "runtime/capi/program.h"
#include "runtime/settings.h"
#include "threads/control/roster.h"

namespace sterna::runtime::capi {
namespace {

constexpr std::size_t kEntitiesMax = 500;  // Of each kind: for people, who read no more.

const char* word_for(threads::ThreadState state) noexcept {
  switch (state) {
    case threads::ThreadState::running:
      return "running";
    case threads::ThreadState::ready:
      return "ready";
    case threads::ThreadState::held:
      return "held";
    default:
      return "waiting";
  }
}

std::string name_of(const topology::Place& place) {
  return std::string{topology::to_string(place.kind)} + " " + std::to_string(place.index);
}

/// Threads without a bubble.
void add_threads(const Program& program, NodeStatus& status) {
  std::vector<threads::ThreadInfo> infos(kEntitiesMax);
  infos.resize(
      std::min(threads::list_threads(*program.team, infos, threads::Measuring::yes), infos.size()));
  for (const threads::ThreadInfo& info : infos) {
    if ((info.flags & threads::ThreadFlag::placed) == 0) {
      const bool is_running = info.state == threads::ThreadState::running;
      status.entities.push_back({.name = info.name,
                                 .state = word_for(info.state),
                                 .place = "worker " + std::to_string(info.worker),
                                 .priority = info.priority,
                                 .key = info.id,
                                 .cpu_ns = info.cpu_ns,
                                 .load = 1,
                                 .last_place = name_of(*program.worker_places[info.worker]),
                                 .threads = 1,
                                 .running = is_running ? 1U : 0U,
                                 .ready = info.state == threads::ThreadState::ready ? 1U : 0U});
    }
  }
}

void add_bubbles(const sched::Engine& engine, NodeStatus& status) {
  for (sched::EntityInfo& info : engine.list(kEntitiesMax)) {
    status.entities.push_back({.depth = info.depth,
                               .is_bubble = info.is_bubble,
                               .name = std::move(info.name),
                               .state = std::move(info.state),
                               .place = std::move(info.place),
                               .priority = info.priority,
                               .key = info.key,
                               .holder = info.holder,
                               .cpu_ns = info.cpu_ns,
                               .load = info.stats.load,
                               .memory = info.stats.memory.total(),
                               .last_place = std::move(info.last_place),
                               .threads = info.stats.threads,
                               .running = info.stats.running,
                               .ready = info.stats.ready});
  }
}

/// Runtime::StatusFiller.
void fill_status(void* program, NodeStatus& status) {
  const Program& its = *static_cast<const Program*>(program);
  status.workers = its.team->worker_count();
  status.threads = its.team->live_thread_count();
  for (std::uint32_t worker = 0; worker < status.workers; ++worker) {
    status.busy_ns.push_back(its.team->busy_ns(worker));
  }
  add_bubbles(its.scheduler->engine(), status);
  add_threads(its, status);
  status.faults = its.scheduler->engine().audit();
}

}  // namespace

void become_visible(Program& program) {
  Runtime& runtime = *program.rank->runtime;
  if (!runtime.control().is_alone()) {
    runtime.fill_status_by(fill_status, &program);
  } else if (runtime.settings().flag(kVisible)) {
    auto opened = LoneStatus::open(fill_status, &program);
    if (opened) {
      program.lone_status = std::move(opened.value());
    } else {
      Logger{runtime.log(), "status"}.warn("sterna ps will not see this program: {}",
                                           opened.error().text);
    }
  }
}

void become_invisible(Program& program) noexcept {
  program.lone_status.reset();
  if (find_current_rank() != nullptr) {
    program.rank->runtime->fill_status_by(nullptr, nullptr);
  }
}

}  // namespace sterna::runtime::capi
