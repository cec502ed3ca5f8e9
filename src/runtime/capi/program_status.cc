// What a program with user threads tells who looks: sterna ps, top, doctor.
#include <algorithm>
#include <vector>

#include "runtime/capi/program.h"
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

/// Threads without a bubble.
void add_threads(const threads::Team& team, NodeStatus& status) {
  std::vector<threads::ThreadInfo> infos(kEntitiesMax);
  infos.resize(std::min(threads::list_threads(team, infos), infos.size()));
  for (const threads::ThreadInfo& info : infos) {
    if ((info.flags & threads::ThreadFlag::placed) == 0) {
      status.entities.push_back({.name = info.name,
                                 .state = word_for(info.state),
                                 .place = "worker " + std::to_string(info.worker),
                                 .priority = info.priority});
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
                               .priority = info.priority});
  }
}

}  // namespace

void fill_status(void* program, NodeStatus& status) {
  const Program& its = *static_cast<const Program*>(program);
  status.workers = its.team->worker_count();
  status.threads = its.team->live_thread_count();
  for (std::uint32_t worker = 0; worker < status.workers; ++worker) {
    status.busy_ns.push_back(its.team->busy_ns(worker));
  }
  add_bubbles(its.scheduler->engine(), status);
  add_threads(*its.team, status);
  status.faults = its.scheduler->engine().audit();
}

}  // namespace sterna::runtime::capi
