// Opening and stopping a team, and its public operations.
#include "threads/team.h"

#include <algorithm>
#include <new>

#include <sched.h>

#include "base/check.h"
#include "base/cpu.h"
#include "base/syscall.h"
#include "base/thread_pointer.h"
#include "threads/blocking_pool.h"
#include "threads/crash.h"
#include "threads/debug.h"
#include "threads/futex.h"
#include "threads/life.h"
#include "threads/scheduler.h"
#include "threads/traced.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

constexpr std::size_t kKernelStackBytes = std::size_t{8} << 20;

/// Binds the calling kernel thread, as far as the system lets us: a refusal costs speed, no more.
void bind_here(std::uint32_t processor) noexcept {
  cpu_set_t* const set = CPU_ALLOC(processor + 1);
  if (set == nullptr) {
    return;
  }
  const std::size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(processor, bytes, set);
  (void)sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
}

/// The bounds of this kernel thread's stack, which AddressSanitizer must know.
void fill_idle_context(Worker& worker) noexcept {
  Thread& idle = worker.idle;
  idle.worker.store(&worker, std::memory_order_relaxed);
  idle.flags = trace::is_on() ? ThreadFlag::traced : 0;
  if constexpr (kAddressSanitizer) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* base = nullptr;
      std::size_t bytes = 0;
      (void)pthread_attr_getstack(&attributes, &base, &bytes);
      (void)pthread_attr_destroy(&attributes);
      idle.stack_base = static_cast<std::byte*>(base);
      idle.stack_bytes = bytes;
    }
  }
  if constexpr (kSanitized) {
    sanitizer_begin(idle, true);
  }
}

void work_here(Worker& worker) noexcept {
  const TeamState& team = worker.team;
  if (worker.index < team.processors.size()) {
    bind_here(team.processors[worker.index]);
  }
  set_this_worker(&worker);
  worker.thread_pointer = reinterpret_cast<void*>(thread_pointer());
  worker.exceptions = exception_globals();
  worker.error_number = error_number_address();
  fill_idle_context(worker);
  worker.signal_stack = use_signal_stack();
  worker.run();
  drop_signal_stack(worker.signal_stack);
  set_this_worker(nullptr);
}

void* kernel_thread_main(void* worker) noexcept {
  work_here(*static_cast<Worker*>(worker));
  return nullptr;
}

Result<> start_kernel_thread(Worker& worker) noexcept {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kKernelStackBytes);
  const int error = pthread_create(&worker.kernel_thread, &attributes, kernel_thread_main, &worker);
  pthread_attr_destroy(&attributes);
  if (error != 0) {
    return system_error("threads: cannot start worker " + std::to_string(worker.index) +
                            " (raise the limit of processes, `ulimit -u`, or use fewer workers)",
                        error);
  }
  return Done{};
}

}  // namespace

Worker::Worker(TeamState& its_team, std::uint32_t its_index, bool is_asymmetric) noexcept
    : lock{is_asymmetric},
      team{its_team},
      index{its_index},
      countdown{its_team.options.switch_poll_interval != 0 ? its_team.options.switch_poll_interval
                                                           : 1024} {}

TeamState::TeamState(const TeamOptions& its_options) noexcept
    : options{its_options},
      processors{its_options.processors.begin(), its_options.processors.end()} {
  options.processors = {};
}

TeamState::~TeamState() = default;

Team::Team(std::unique_ptr<TeamState> state) noexcept : state_{std::move(state)} {
  state_->handle = this;
}

Result<std::unique_ptr<Team>> Team::open(const TeamOptions& options) noexcept {
  if (options.worker_count == 0) {
    return Error{Errc::invalid_argument, "threads: a team has at least 1 worker; 0 were asked for"};
  }
  keep_debug_layout();
  auto state = std::make_unique<TeamState>(options);
  const bool is_asymmetric = register_process_barrier();
  const CycleRate rate = calibrate_cycles();
  state->ns_per_cycle = rate.ns_per_cycle();
  state->spin_cycles = rate.to_cycles(options.spin_ns);
  state->cycles_per_ns = 1 / rate.ns_per_cycle();
  for (std::uint32_t i = 0; i < options.worker_count; ++i) {
    state->workers.push_back(std::make_unique<Worker>(*state, i, is_asymmetric));
  }
  if (options.tick_ns != 0 && options.idle_hook != nullptr) {
    TickClient* const client = state.get();
    state->ticker = std::make_unique<Ticker>(
        TickerOptions{.interval_ns = options.tick_ns, .clients = {&client, 1}});
  }
  std::unique_ptr<Team> team{new (std::nothrow) Team{std::move(state)}};
  for (std::uint32_t i = options.main_is_worker ? 1 : 0; i < options.worker_count; ++i) {
    if (Result<> started = start_kernel_thread(*team->state_->workers[i]); !started) {
      return started.error();
    }
  }
  if (team->state_->ticker != nullptr) {
    if (Result<> started = team->state_->ticker->start(); !started) {
      return started.error();
    }
  }
  return team;
}

Team::~Team() {
  stop();
  for (const auto& worker : state_->workers) {
    if (worker->kernel_thread != pthread_t{}) {
      (void)pthread_join(worker->kernel_thread, nullptr);
    }
  }
  state_->ticker.reset();  // After the workers, who kick it.
  check(!state_->is_run_by_caller.load(std::memory_order_acquire),
        "run() has returned before its team is destroyed");
  check(live_thread_count() == 0, "all threads of a team have ended when it is destroyed");
  state_->blocking.reset();
  for (const auto& worker : state_->workers) {
    drop_slots(*worker);
  }
}

Result<Thread*> Team::spawn(const ThreadOptions& options, Entry entry, void* argument) noexcept {
  Result<Thread*> thread = make_thread(*state_, options);
  if (thread) [[likely]] {
    if (options.guard_bytes != 0) [[unlikely]] {
      Thread& made = *thread.value();
      if (Result<> guarded = memory::add_stack_guard(made.stack_base, options.guard_bytes);
          !guarded) {
        keep_slot(*state_, made);
        return guarded.error();
      }
    }
    init_thread(*state_, *thread.value(), options, entry, argument);
    start_thread(*state_, *thread.value(), options.worker);
  }
  return thread;
}

Thread* Team::adopt(const StackRegion& region, const ThreadOptions& options, Entry entry,
                    void* argument) noexcept {
  check(memory::descriptor_address(reinterpret_cast<std::uintptr_t>(region.base)) ==
            reinterpret_cast<std::uintptr_t>(region.descriptor),
        "a thread finds its descriptor from every address of its stack");
  auto* const thread = new (region.descriptor) Thread;
  thread->stack_base = region.base;
  thread->stack_bytes = region.bytes;
  thread->flags = ThreadFlag::adopted;
  stack_appeared(*thread);
  init_thread(*state_, *thread, options, entry, argument);
  return thread;
}

void Team::start(Thread& thread, std::uint32_t worker) noexcept {
  start_thread(*state_, thread, worker);
}

Thread* Team::reinstall(Thread* thread, std::uint32_t worker) noexcept {
  thread->team = this;
  thread->next = nullptr;
  thread->timer_index = 0;
  thread->keys = nullptr;
  thread->on_processor.store(0, std::memory_order_relaxed);
  thread->cycles_begin.store(0, std::memory_order_relaxed);
  if constexpr (kThreadSanitizer) {
    sanitizer_begin(*thread, false);
  }
  stack_appeared(*thread);
  count_birth(*state_, worker_here(*state_));
  start_thread(*state_, *thread, worker);
  return thread;
}

void Team::forget(Thread& thread) noexcept {
  if constexpr (kThreadSanitizer) {
    sanitizer_end(thread);
  }
  stack_goes(thread);
  count_end(*state_, worker_here(*state_));
}

void Team::run() noexcept {
  check(state_->options.main_is_worker, "run() is called on a team with main_is_worker");
  check(!state_->is_run_by_caller.exchange(true, std::memory_order_acq_rel),
        "run() is called by one kernel thread");
  work_here(*state_->workers[0]);
  state_->is_run_by_caller.store(false, std::memory_order_release);
}

void Team::stop() noexcept {
  // Sequentially consistent: the flag of the sleep protocol (3), see sleep.cc.
  state_->is_stopped.store(true, std::memory_order_seq_cst);
  if (state_->ticker != nullptr) {
    state_->ticker->stop();
  }
  for (const auto& worker : state_->workers) {
    (void)worker->wake();
  }
}

void Team::wake_idle(std::uint32_t first, std::uint32_t count) noexcept {
  state_->wake_idle(first, count);
}

void Team::expect_soon(std::uint64_t duration_ns) noexcept {
  if (state_->spin_cycles == 0) {
    return;
  }
  const auto duration =
      static_cast<std::uint64_t>(static_cast<double>(duration_ns) * state_->cycles_per_ns);
  state_->stay_awake_until.store(cycles() + duration, std::memory_order_relaxed);
}

std::uint32_t Team::worker_count() const noexcept {
  return static_cast<std::uint32_t>(state_->workers.size());
}

std::uint32_t Team::live_thread_count() const noexcept {
  // Relaxed: exact when nothing happens meanwhile. Ends first, so that it is never negative.
  std::uint64_t ended = state_->foreign_ended.load(std::memory_order_relaxed);
  std::uint64_t born = 0;
  for (const auto& worker : state_->workers) {
    ended += worker->ended.load(std::memory_order_relaxed);
  }
  for (const auto& worker : state_->workers) {
    born += worker->born.load(std::memory_order_relaxed);
  }
  born += state_->foreign_born.load(std::memory_order_relaxed);
  return static_cast<std::uint32_t>(born - std::min(born, ended));
}

std::uint64_t Team::now_ns() const noexcept {
  return state_->now_ns();
}

std::uint64_t Team::busy_ns(std::uint32_t worker) const noexcept {
  check(worker < state_->workers.size(), "busy_ns() is asked of a worker of the team");
  const Worker& its = *state_->workers[worker];
  std::uint64_t total = its.busy_cycles.load(std::memory_order_relaxed);
  if (const std::uint64_t begin = its.busy_begin.load(std::memory_order_relaxed); begin != 0) {
    total += cycles() - begin;
  }
  return static_cast<std::uint64_t>(static_cast<double>(total) * state_->ns_per_cycle);
}

bool Team::is_busy(std::uint32_t worker) const noexcept {
  return state_->workers[worker]->busy_begin.load(std::memory_order_relaxed) != 0;
}

std::uint64_t processor_ns(const Thread& thread) noexcept {
  for (;;) {
    const std::uint64_t begin = thread.cycles_begin.load(std::memory_order_acquire);
    const std::uint64_t run = thread.cycles_run.load(std::memory_order_relaxed);
    const std::uint64_t now = cycles();
    // A turn that ended or began in between would be counted twice or not at all.
    if (thread.cycles_begin.load(std::memory_order_acquire) == begin) {
      const std::uint64_t total = run + (begin != 0 && now > begin ? now - begin : 0);
      return static_cast<std::uint64_t>(static_cast<double>(total) *
                                        thread.team->state()->ns_per_cycle);
    }
  }
}

std::string_view display_name(const Thread& thread, char (&buffer)[kNameBytes]) noexcept {
  if (thread.name[0] != '\0') {
    return thread.name;
  }
  constexpr std::string_view kPrefix = "thread ";
  std::size_t at = kNameBytes;
  std::uint64_t id = thread.id;
  do {
    buffer[--at] = static_cast<char>('0' + id % 10);
    id /= 10;
  } while (id != 0 && at > kPrefix.size());
  at -= kPrefix.size();
  std::copy(kPrefix.begin(), kPrefix.end(), buffer + at);
  return {buffer + at, kNameBytes - at};
}

}  // namespace sterna::threads
