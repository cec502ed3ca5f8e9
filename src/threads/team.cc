// Opening and stopping a team, and its public operations.
#include "threads/team.h"

#include <algorithm>
#include <new>

#include <sys/syscall.h>

#include "base/check.h"
#include "base/cpu.h"
#include "base/syscall.h"
#include "threads/carriers/blocking_pool.h"
#include "threads/control/roster.h"
#include "threads/life/life.h"
#include "threads/observation/debug.h"
#include "threads/observation/observe.h"
#include "threads/preemption/preempt.h"
#include "threads/scheduler.h"
#include "threads/sync/lock_home.h"
#include "threads/wait/futex.h"
#include "threads/waiter.h"

namespace sterna::threads {
namespace {

constexpr std::uint64_t kUsualTickNs = 4'000'000;

/// Preemption, take-over and the polls of ticks, as far as they are asked for.
void open_tickers(TeamState& state) noexcept {
  TeamOptions& options = state.options;
  const std::uint64_t usual_ns = options.tick_ns != 0 ? options.tick_ns : kUsualTickNs;
  const std::uint64_t interval_ns =  // As often as who wants ticks most.
      options.preempt == PreemptMode::slice ? std::min(usual_ns, options.slice_ns) : usual_ns;
  // Slices are counted in ticks.
  const std::uint64_t early_ns = options.preempt == PreemptMode::slice ? 0 : interval_ns / 4;
  const auto open = [&](std::size_t index, TickClient& client) {
    TickClient* const clients[] = {&client};
    const bool is_led = index != 0 && state.tickers[0] != nullptr;
    state.tickers[index] = std::make_unique<Ticker>(TickerOptions{
        .interval_ns = is_led ? 0 : interval_ns, .early_ns = early_ns, .clients = clients});
  };
  if (options.take_over) {
    install_preemption();
    state.preemptor = std::make_unique<Preemptor>(state);
    open(0, *state.preemptor);  // The other one then, too: for deadlines, if for nothing else.
  }
  if (state.polls_on_ticks()) {
    open(1, state);
  }
}

}  // namespace

Worker::Worker(TeamState& its_team, std::uint32_t its_index, bool is_asymmetric) noexcept
    : lock{is_asymmetric},
      seeds{is_asymmetric},
      team{its_team},
      index{its_index},
      countdown{its_team.options.switch_poll_interval != 0 ? its_team.options.switch_poll_interval
                                                           : 1024},
      next_id{its_index + std::uint64_t{1}},
      id_step{its_team.options.worker_count + std::uint64_t{1}} {
  border.lock_home = acquire_lock_home();
}

Worker::~Worker() {
  release_lock_home(border.lock_home);
}

TeamState::TeamState(const TeamOptions& its_options) noexcept
    : options{its_options},
      processors{its_options.processors.begin(), its_options.processors.end()} {
  options.processors = {};
  options.take_over = options.take_over || options.preempt != PreemptMode::none;
  (void)pthread_sigmask(SIG_SETMASK, nullptr, &signal_mask);
  raw_system_call(SYS_sched_getaffinity, 0, sizeof opener_processors,
                  reinterpret_cast<long>(opener_processors.data()));
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
  // The take-over of a worker needs the barrier as the biased lock does (border.h).
  state->options.take_over = state->options.take_over && is_asymmetric;
  state->options.preempt = is_asymmetric ? state->options.preempt : PreemptMode::none;
  // All there will ever be: the ticker reads it while it grows.
  state->carriers.reserve(std::max(options.carriers_max, options.worker_count));
  for (std::uint32_t i = 0; i < options.worker_count; ++i) {
    state->workers.push_back(std::make_unique<Worker>(*state, i, is_asymmetric));
    state->workers[i]->meter.open(rate.to_cycles(TurnMeter::kShortNs));
    state->carriers.push_back(std::make_unique<Carrier>(*state));
    state->carriers[i]->worker.store(state->workers[i].get(), std::memory_order_relaxed);
    state->carriers[i]->word.store(Carrier::kStarts, std::memory_order_relaxed);
  }
  open_tickers(*state);
  std::unique_ptr<Team> team{new (std::nothrow) Team{std::move(state)}};
  for (std::uint32_t i = options.main_is_worker ? 1 : 0; i < options.worker_count; ++i) {
    if (Result<> started = start_carrier(*team->state_->carriers[i]); !started) {
      return started.error();
    }
  }
  if (team->state_->options.take_over) {
    make_spares(*team->state_, false);
  }
  for (const auto& ticker : team->state_->tickers) {
    if (ticker != nullptr) {
      if (Result<> started = ticker->start(); !started) {
        return started.error();
      }
    }
  }
  return team;
}

Team::~Team() {
  stop();
  for (const auto& ticker : state_->tickers) {
    if (ticker != nullptr) {
      ticker->finish();
    }
  }
  // Nobody asks any more: from here on there are no new ones.
  while (state_->is_making.load(std::memory_order_acquire) != 0) {
    futex_wait(state_->is_making, 1, kNever);
  }
  for (const auto& carrier : state_->carriers) {
    if (carrier->kernel_thread != pthread_t{}) {
      (void)pthread_join(carrier->kernel_thread, nullptr);
    }
  }
  check(!state_->is_run_by_caller.load(std::memory_order_acquire),
        "run() has returned before its team is destroyed");
  check(live_thread_count() == 0, "all threads of a team have ended when it is destroyed");
  state_->blocking.reset();
  state_->tickers = {};  // After the workers and the spare threads, who kick them.
  for (const auto& worker : state_->workers) {
    drop_slots(*worker);
  }
  unlist_all(*state_);
}

Thread* Team::adopt(const StackRegion& region, const ThreadOptions& options, Entry entry,
                    void* argument) noexcept {
  check(memory::descriptor_address(reinterpret_cast<std::uintptr_t>(region.base)) ==
            reinterpret_cast<std::uintptr_t>(region.descriptor),
        "a thread finds its descriptor from every address of its stack");
  auto* const thread = new (region.descriptor) Thread;
  thread->team = this;
  thread->stack_base = region.base;
  thread->stack_bytes = region.bytes;
  thread->flags = ThreadFlag::adopted;
  stack_appeared(*thread);
  init_thread(*state_, worker_here(*state_), *thread, options, entry, argument);
  return thread;
}

void Team::start(Thread& thread, std::uint32_t worker) noexcept {
  start_thread(*state_, worker_here(*state_), thread, worker);
}

void Team::take_over(Thread& thread) noexcept {
  thread.team = this;
  thread.next = nullptr;
  thread.timer_index = 0;
  thread.keys = nullptr;
  // Relaxed: who looks finds the thread by a lock that is taken later.
  thread.worker.store(nullptr, std::memory_order_relaxed);
  thread.on_processor.store(0, std::memory_order_relaxed);
  thread.cycles_begin.store(0, std::memory_order_relaxed);
}

Thread* Team::reinstall(Thread* thread, std::uint32_t worker) noexcept {
  take_over(*thread);
  if constexpr (kThreadSanitizer) {
    sanitizer_begin(*thread, false);
  }
  stack_appeared(*thread);
  Worker* const here = worker_here(*state_);
  (void)count_birth(*state_, here);  // It has its number.
  start_thread(*state_, here, *thread, worker);
  return thread;
}

void Team::forget(Thread& thread) noexcept {
  check(thread.seeds == nullptr, "a thread joins its seeds before it leaves its node");
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
  carry_here(*state_->carriers[0]);
  state_->is_run_by_caller.store(false, std::memory_order_release);
}

void Team::stop() noexcept {
  // Sequentially consistent: the flag of the sleep protocol (3), see sleep.cc.
  state_->is_stopped.store(true, std::memory_order_seq_cst);
  for (const auto& ticker : state_->tickers) {
    if (ticker != nullptr) {
      ticker->stop();
    }
  }
  for (const auto& worker : state_->workers) {
    (void)worker->wake();
    worker->drop_reserve();
  }
  const SpinGuard guard{state_->carriers_lock};
  for (const auto& carrier : state_->carriers) {
    if (carrier->try_reserve()) {
      carrier->end();
    }
  }
}

void Team::wake_idle(std::uint32_t first, std::uint32_t count) noexcept {
  state_->wake_idle(first, count);
}

void Team::expect_soon(std::uint64_t duration_ns) noexcept {
  if (state_->spin_cycles == 0) {
    return;
  }
  state_->stay_awake_until.store(cycles() + state_->to_cycles(duration_ns),
                                 std::memory_order_relaxed);
}

bool Team::can_preempt() const noexcept {
  return state_->preemptor != nullptr;
}

std::uint32_t Team::worker_count() const noexcept {
  return static_cast<std::uint32_t>(state_->workers.size());
}

std::uint32_t Team::live_thread_count() const noexcept {
  // Exact when nothing happens meanwhile. Ends first, so that it is never negative; acquire: what
  // those did who have ended is before what their team's owner does next.
  std::uint64_t ended = state_->foreign_ended.load(std::memory_order_acquire);
  std::uint64_t born = 0;
  for (const auto& worker : state_->workers) {
    ended += worker->ended.load(std::memory_order_acquire);
  }
  for (const auto& worker : state_->workers) {
    born += worker->next_id.load(std::memory_order_relaxed) / worker->id_step;
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

namespace {

/// Where `thread` is in a turn that nobody times (turn_meter.h); null: it is not. A hint.
Worker* find_untimed(const Thread& thread) noexcept {
  if (thread.cycles_begin.load(std::memory_order_relaxed) != 0) {
    return nullptr;
  }
  Worker* const worker = thread.worker.load(std::memory_order_relaxed);
  return worker != nullptr && worker->current.load(std::memory_order_relaxed) == &thread &&
                 worker->meter.untimed_since() != 0
             ? worker
             : nullptr;
}

/// Of a thread in an untimed turn: what it will be charged with, if it has it for long.
std::uint64_t untimed_cycles(const Thread& thread) noexcept {
  Worker* const worker = find_untimed(thread);
  if (worker == nullptr) {
    return 0;
  }
  worker->meter.look();
  const std::uint64_t since = worker->meter.untimed_since();
  const std::uint64_t now = cycles();
  // Once more: a reader that was asleep in between has seen two turns.
  return since != 0 && now > since && now - since > worker->meter.row_cycles_max() &&
                 find_untimed(thread) == worker && worker->meter.untimed_since() == since
             ? now - since
             : 0;
}

}  // namespace

bool is_taking_its_turn(const Thread& thread) noexcept {
  return thread.cycles_begin.load(std::memory_order_relaxed) != 0 ||
         find_untimed(thread) != nullptr;
}

std::uint64_t processor_ns(const Thread& thread) noexcept {
  for (;;) {
    const std::uint64_t begin = thread.cycles_begin.load(std::memory_order_acquire);
    const std::uint64_t run = thread.cycles_run.load(std::memory_order_relaxed);
    const std::uint64_t now = cycles();
    const std::uint64_t untimed = begin == 0 ? untimed_cycles(thread) : 0;
    // A turn that ended or began in between would be counted twice or not at all.
    if (thread.cycles_begin.load(std::memory_order_acquire) == begin) {
      const std::uint64_t total = run + untimed + (begin != 0 && now > begin ? now - begin : 0);
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
