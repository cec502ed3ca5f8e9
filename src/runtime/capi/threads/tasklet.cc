// tasklet.h: tasklets and polling tasks of C programs.
#include "threads/tasklets/tasklet.h"

#include <new>

#include <sterna/tasklet.h>

#include "progress/poll_tasks.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/scope.h"

namespace capi = sterna::runtime::capi;
namespace threads = sterna::threads;
namespace progress = sterna::progress;
using sterna::runtime::RuntimeScope;

namespace {

constexpr std::uint32_t kMade = 0x7a5c'1e7;  // Tells initialised memory from other.

struct OwnTasklet {
  explicit OwnTasklet(const threads::Tasklet::Options& options) noexcept : tasklet{options} {}
  threads::Tasklet tasklet;
  // Where it runs unless it is asked for elsewhere. By one caller at a time.
  threads::tasklet::Place place;
  std::uint32_t made = kMade;
};

struct OwnTask : progress::PollTask {
  std::uint32_t made = kMade;
};

template <typename Object, typename Storage>
Object* object_in(Storage* storage) noexcept {
  static_assert(sizeof(Object) <= sizeof(Storage) && alignof(Object) <= alignof(Storage));
  auto* const object = std::launder(reinterpret_cast<Object*>(storage));
  return storage != nullptr && object->made == kMade ? object : nullptr;
}

/// use(program, object), or why not, with a text.
template <typename Object, typename Storage, typename Use>
sterna_status with(Storage* storage, const char* call, Use use) noexcept {
  capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  Object* const object = object_in<Object>(storage);
  if (object == nullptr) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: it is NULL, or was not initialised", call);
  }
  return use(*program, *object);
}

/// NOT_FOUND: refused, with a text.
sterna_status find_place(const char* text, threads::tasklet::Place& place) noexcept {
  place = {};
  if (text == nullptr) {
    return STERNA_SUCCESS;
  }
  const capi::WorkerRange range = capi::workers_at(text);
  place = {range.first, range.count};
  return range.count != 0 ? STERNA_SUCCESS : STERNA_NOT_FOUND;
}

sterna_status schedule(const capi::Program& program, OwnTasklet& own, threads::tasklet::Place place,
                       int* is_new) noexcept {
  auto asked = own.tasklet.schedule(*program.team, place);
  if (!asked) {
    return capi::refuse(capi::to_status(asked.error().code), "{}", asked.error().text);
  }
  if (is_new != nullptr) {
    *is_new = asked.value() == threads::Tasklet::Asked::scheduled ? 1 : 0;
  }
  return STERNA_SUCCESS;
}

constexpr std::uint32_t points_of(std::uint32_t points) noexcept {
  using enum threads::SchedulingPoint;
  std::uint32_t bits = 0;
  bits |= (points & STERNA_POLL_IDLE) != 0 ? progress::bit_of(idle) : 0;
  bits |= (points & STERNA_POLL_SWITCH) != 0 ? progress::bit_of(switching) : 0;
  bits |= (points & STERNA_POLL_TICK) != 0 ? progress::bit_of(tick) : 0;
  bits |= (points & STERNA_POLL_ENTER) != 0 ? progress::bit_of(enter) : 0;
  bits |= (points & STERNA_POLL_FORCED) != 0 ? progress::bit_of(forced) : 0;
  return bits;
}

}  // namespace

sterna_status sterna_tasklet_init(sterna_tasklet* tasklet, void (*function)(void*), void* argument,
                                  uint32_t flags) noexcept {
  const RuntimeScope scope;
  if (tasklet == nullptr || function == nullptr || (flags & ~STERNA_TASKLET_UNPREEMPTIBLE) != 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a tasklet has memory, a function, and flags STERNA_TASKLET_...");
  }
  new (tasklet) OwnTasklet{{.function = function,
                            .argument = argument,
                            .preemptible = (flags & STERNA_TASKLET_UNPREEMPTIBLE) == 0}};
  return STERNA_SUCCESS;
}

sterna_status sterna_tasklet_set_place(sterna_tasklet* tasklet, const char* place) noexcept {
  const RuntimeScope scope;
  return with<OwnTasklet>(tasklet, __func__, [&](capi::Program&, OwnTasklet& own) noexcept {
    threads::tasklet::Place found;
    const sterna_status status = find_place(place, found);
    if (status == STERNA_SUCCESS) {
      own.place = found;
    }
    return status;
  });
}

sterna_status sterna_tasklet_schedule(sterna_tasklet* tasklet, int* is_new) noexcept {
  const RuntimeScope scope;
  return with<OwnTasklet>(tasklet, __func__, [&](capi::Program& program, OwnTasklet& own) noexcept {
    return schedule(program, own, own.place, is_new);
  });
}

sterna_status sterna_tasklet_schedule_at(sterna_tasklet* tasklet, const char* place,
                                         int* is_new) noexcept {
  const RuntimeScope scope;
  return with<OwnTasklet>(tasklet, __func__, [&](capi::Program& program, OwnTasklet& own) noexcept {
    threads::tasklet::Place found;
    const sterna_status status = find_place(place, found);
    return status == STERNA_SUCCESS ? schedule(program, own, found, is_new) : status;
  });
}

sterna_status sterna_tasklet_disable(sterna_tasklet* tasklet) noexcept {
  const RuntimeScope scope;
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return with<OwnTasklet>(tasklet, __func__, [](capi::Program&, OwnTasklet& own) noexcept {
    return own.tasklet.disable()
               ? STERNA_SUCCESS
               : capi::refuse(STERNA_REFUSED, "the tasklet is disabled 65535 times already");
  });
}

sterna_status sterna_tasklet_enable(sterna_tasklet* tasklet) noexcept {
  const RuntimeScope scope;
  return with<OwnTasklet>(tasklet, __func__, [](capi::Program& program, OwnTasklet& own) noexcept {
    auto enabled = own.tasklet.enable(*program.team);
    if (!enabled) {
      return capi::refuse(capi::to_status(enabled.error().code), "{}", enabled.error().text);
    }
    return enabled.value() ? STERNA_SUCCESS
                           : capi::refuse(STERNA_REFUSED,
                                          "the tasklet is not disabled: each enable undoes one "
                                          "disable");
  });
}

sterna_status sterna_tasklet_cancel(sterna_tasklet* tasklet) noexcept {
  const RuntimeScope scope;
  if (capi::is_in_poll()) [[unlikely]] {
    return capi::refuse_in_poll(__func__);
  }
  return with<OwnTasklet>(tasklet, __func__, [](capi::Program&, OwnTasklet& own) noexcept {
    return own.tasklet.cancel()
               ? STERNA_SUCCESS
               : capi::refuse(STERNA_DEADLOCK,
                              "the tasklet cancels itself, and would wait for its own end");
  });
}

sterna_status sterna_tasklet_state(const sterna_tasklet* tasklet, uint32_t* state) noexcept {
  const RuntimeScope scope;
  if (state == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return with<OwnTasklet>(const_cast<sterna_tasklet*>(tasklet), __func__,
                          [&](capi::Program&, OwnTasklet& own) noexcept {
                            *state = (own.tasklet.is_scheduled() ? STERNA_TASKLET_SCHEDULED : 0U) |
                                     (own.tasklet.is_carried() ? STERNA_TASKLET_BUSY : 0U) |
                                     (own.tasklet.is_disabled() ? STERNA_TASKLET_DISABLED : 0U);
                            return STERNA_SUCCESS;
                          });
}

sterna_status sterna_poll_task_init(sterna_poll_task* task, uint32_t (*function)(void*),
                                    void* argument, uint32_t points, int repeat) noexcept {
  const RuntimeScope scope;
  if (task == nullptr || function == nullptr || points == 0 || (points & ~STERNA_POLL_ANY) != 0) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "a polling task has memory, a function, and one of STERNA_POLL_... at "
                        "least");
  }
  auto* const own = new (task) OwnTask;
  own->function = function;
  own->argument = argument;
  own->points = points_of(points);
  own->is_repeated = repeat != 0;
  return STERNA_SUCCESS;
}

sterna_status sterna_poll_task_set_period(sterna_poll_task* task, uint64_t period_ns) noexcept {
  const RuntimeScope scope;
  OwnTask* const own = object_in<OwnTask>(task);
  if (own == nullptr) {
    return capi::refuse_argument(__func__);
  }
  own->period_ns = period_ns;
  return STERNA_SUCCESS;
}

sterna_status sterna_poll_task_set_priority(sterna_poll_task* task, int32_t priority) noexcept {
  const RuntimeScope scope;
  OwnTask* const own = object_in<OwnTask>(task);
  if (own == nullptr || priority < -128 || priority > 127) {
    return capi::refuse_argument(__func__);
  }
  own->priority = static_cast<std::int8_t>(priority);
  return STERNA_SUCCESS;
}

sterna_status sterna_poll_task_is_in(sterna_poll_task* task, int* is_in) noexcept {
  const RuntimeScope scope;
  if (is_in == nullptr) {
    return capi::refuse_argument(__func__);
  }
  return with<OwnTask>(task, __func__, [&](capi::Program& program, OwnTask& own) noexcept {
    *is_in = program.poll_tasks->is_in(own) ? 1 : 0;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_poll_task_add(sterna_poll_task* task) noexcept {
  const RuntimeScope scope;
  return with<OwnTask>(task, __func__, [](capi::Program& program, OwnTask& own) noexcept {
    return program.poll_tasks->add(own)
               ? STERNA_SUCCESS
               : capi::refuse(STERNA_BUSY, "the polling task is in already");
  });
}

sterna_status sterna_poll_task_remove(sterna_poll_task* task) noexcept {
  const RuntimeScope scope;
  return with<OwnTask>(task, __func__, [](capi::Program& program, OwnTask& own) noexcept {
    return program.poll_tasks->remove(own) ? STERNA_SUCCESS : STERNA_NOT_FOUND;
  });
}

sterna_status sterna_poll_task_set_place(sterna_poll_task* task, const char* place) noexcept {
  const RuntimeScope scope;
  return with<OwnTask>(task, __func__, [&](capi::Program&, OwnTask& own) noexcept {
    if (place == nullptr) {
      own.worker_first = 0;
      own.worker_end = progress::PollTask::kAllWorkers;
      return STERNA_SUCCESS;
    }
    const capi::WorkerRange range = capi::workers_at(place);
    if (range.count == 0) {
      return STERNA_NOT_FOUND;
    }
    own.worker_first = range.first;
    own.worker_end = range.first + range.count;
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_poll_task_mask(sterna_poll_task* task) noexcept {
  const RuntimeScope scope;
  return with<OwnTask>(task, __func__, [](capi::Program& program, OwnTask& own) noexcept {
    program.poll_tasks->mask(own);
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_poll_task_unmask(sterna_poll_task* task) noexcept {
  const RuntimeScope scope;
  return with<OwnTask>(task, __func__, [](capi::Program& program, OwnTask& own) noexcept {
    program.poll_tasks->unmask(own);
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_poll_now(uint32_t* events) noexcept {
  const RuntimeScope scope;
  const capi::Program* const program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  const std::uint32_t count = program->rank->progress->poll(threads::SchedulingPoint::forced);
  if (events != nullptr) {
    *events = count;
  }
  return STERNA_SUCCESS;
}
