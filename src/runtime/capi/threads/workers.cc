// control.h: workers whose processors are taken away, and come back.
#include <algorithm>
#include <span>

#include <sterna/control.h>
#include <unistd.h>

#include "runtime/capi/held/held_workers.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"
#include "runtime/settings.h"
#include "threads/queues/worker_set.h"
#include "topology/topology.h"

namespace capi = sterna::runtime::capi;
using sterna::runtime::RuntimeScope;

namespace {

/// Under workers_lock.
sterna_status change(capi::Program& program, std::uint32_t worker, bool is_enabled) noexcept {
  const sterna::Result<> changed = program.scheduler->enable_worker(worker, is_enabled);
  return changed ? STERNA_SUCCESS
                 : capi::refuse(capi::to_status(changed.error().code), "{}", changed.error().text);
}

sterna_status change_one(std::uint32_t worker, bool is_enabled) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (worker >= program->team->worker_count()) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "there is no worker {}; there are {}", worker,
                        program->team->worker_count());
  }
  const sterna::SpinGuard guard{program->workers_lock};
  return change(*program, worker, is_enabled);
}

/// How many it has enabled or disabled.
sterna::Result<std::uint32_t> follow(capi::Program& program) {
  // Of the initial thread: workers are bound, and what opened us may have been, too.
  auto allowed = sterna::topology::cpus_of_thread(::getpid());
  if (!allowed) {
    return allowed.error();
  }
  const sterna::SpinGuard guard{program.workers_lock};
  const auto may_use = [&](std::uint32_t worker) {
    return allowed.value().has(program.worker_places[worker]->os_index);
  };
  const std::uint32_t count = program.team->worker_count();
  std::uint32_t usable = 0;
  for (std::uint32_t worker = 0; worker < count; ++worker) {
    usable += may_use(worker) ? 1 : 0;
  }
  std::uint32_t changed = 0;
  for (const bool is_enabled : {true, false}) {  // None is the last one before others are back.
    for (std::uint32_t worker = 0; worker < count && usable != 0; ++worker) {
      if (may_use(worker) == is_enabled && program.team->is_enabled(worker) != is_enabled) {
        changed += change(program, worker, is_enabled) == STERNA_SUCCESS ? 1 : 0;
      }
    }
  }
  return changed;
}

}  // namespace

void capi::follow_processors(Program& program) noexcept {
  const auto period_ns = static_cast<std::uint64_t>(
      program.rank->runtime->settings().number(runtime::kFollowProcessors));
  if (period_ns == 0) {
    return;
  }
  program.follow_alarm.function = [](void* its) {
    const RuntimeScope scope;
    (void)guarded([&] {
      (void)follow(*static_cast<Program*>(its));
      return STERNA_SUCCESS;
    });
  };
  program.follow_alarm.argument = &program;
  program.follow_alarm.period_ns = period_ns;
  (void)program.alarms->arm(program.follow_alarm, deadline_of(period_ns));
}

sterna_status sterna_worker_disable(uint32_t worker) noexcept {
  return change_one(worker, false);
}

sterna_status sterna_worker_enable(uint32_t worker) noexcept {
  return change_one(worker, true);
}

int sterna_worker_is_enabled(uint32_t worker) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  return program != nullptr && worker < program->team->worker_count() &&
                 program->team->is_enabled(worker)
             ? 1
             : 0;
}

sterna_status sterna_workers_follow(uint32_t* changed) noexcept {
  const RuntimeScope scope;
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  return capi::guarded([&] {
    auto followed = follow(*program);
    if (!followed) {
      return capi::refuse(STERNA_SYSTEM, "{}", followed.error().text);
    }
    if (changed != nullptr) {
      *changed = followed.value();
    }
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_thread_set_workers(sterna_thread* thread, const uint64_t* words,
                                        size_t count) noexcept {
  const RuntimeScope scope;
  sterna::threads::Thread* const its = capi::thread_of(thread);
  if (its == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if ((words == nullptr) != (count == 0)) {
    return capi::refuse_argument(__func__);
  }
  return capi::guarded([&] {
    const sterna::Result<> done = sterna::threads::set_workers(*its, std::span{words, count});
    if (!done && done.error().code == sterna::Errc::unsupported) {
      return capi::set_workers_held(thread, std::span{words, count});
    }
    return done ? STERNA_SUCCESS
                : capi::refuse(capi::to_status(done.error().code), "{}: {}", capi::words_for(its),
                               done.error().text);
  });
}

sterna_status sterna_thread_workers(const sterna_thread* thread, uint64_t* words,
                                    size_t count) noexcept {
  const RuntimeScope scope;
  const sterna::threads::Thread* const its = capi::thread_of(thread);
  if (its == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  if (words == nullptr || count == 0) {
    return capi::refuse_argument(__func__);
  }
  sterna::threads::WorkerSet::Words all = sterna::threads::workers_of(*its);
  capi::put_workers_held(const_cast<sterna_thread*>(thread), all);
  std::fill_n(words, count, 0);
  std::copy_n(all.begin(), std::min(count, all.size()), words);
  const bool is_whole =
      count >= all.size() || std::all_of(all.begin() + static_cast<std::ptrdiff_t>(count),
                                         all.end(), [](std::uint64_t word) { return word == 0; });
  return is_whole ? STERNA_SUCCESS : STERNA_TRUNCATED;
}
