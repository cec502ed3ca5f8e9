// sterna.h: start and end of a program that is its own node, and its place in the job.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sterna/sterna.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/trace.h"
#include "runtime/capi/bubbles/bubble_object.h"
#include "runtime/capi/calls/rpc.h"
#include "runtime/capi/in_poll.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/process_job.h"
#include "runtime/scope.h"
#include "runtime/settings.h"
#include "threads/control/control.h"
#include "threads/this_thread.h"

namespace sterna::runtime::capi {

constinit Program* the_program = nullptr;

namespace {

// A process starts once: a second start would wait for one of all other nodes. Guard: as above.
constinit bool has_begun = false;

sterna_status fail(const Error& error) {
  const std::string line = fmt::format("sterna_start: {}\n", error.text);
  [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
  return to_status(error.code);
}

void on_lost(void* program, std::uint32_t node, std::string_view) noexcept {
  auto& self = *static_cast<Program*>(program);
  self.rpc->lose_peer(node);
  self.leaving->lose(node);
}

/// Polling tasks of the program, by the poller.
std::uint32_t call_poll_task(void* rank, std::uint32_t (*function)(void*), void* argument) {
  const InPoll mark{*static_cast<RankContext*>(rank)};
  return function(argument);
}

/// Where the settings want the workers among the node's processors.
struct Spacing {
  std::size_t first = 0;
  std::size_t stride = 1;

  explicit Spacing(const Settings& settings)
      : first{static_cast<std::size_t>(settings.number(kWorkerFirst))},
        stride{static_cast<std::size_t>(settings.number(kWorkerStride))} {}
  [[nodiscard]] bool is_usual() const noexcept { return first == 0 && stride == 1; }
};

/// The processor of each worker, from left to right: the node's share of its host.
Result<std::vector<const topology::Place*>> places_of(const Program& program,
                                                      std::uint32_t wanted) {
  ControlClient& control = program.rank->runtime->control();
  const std::vector<std::uint32_t>& nodes = control.host().nodes;
  const auto here = std::ranges::find(nodes, control.job().node_index);
  topology::Share share;
  if (here != nodes.end()) {
    share = {.node_index = static_cast<std::uint32_t>(here - nodes.begin()),
             .node_count = static_cast<std::uint32_t>(nodes.size())};
  }
  const std::vector<const topology::Place*> pus = program.topology->share(share);
  if (const Spacing spacing{program.rank->runtime->settings()}; !spacing.is_usual()) {
    if (spacing.first >= pus.size()) {
      return first_worker_error(spacing.first, pus.size());
    }
    return topology::every_nth(pus, spacing.first, spacing.stride, wanted);
  }
  const std::size_t count = wanted == 0 ? pus.size() : wanted;
  std::vector<const topology::Place*> places;
  for (std::size_t i = 0; i < count; ++i) {
    places.push_back(pus[i * pus.size() / count]);
  }
  return places;
}

/// Each worker has a processor of its own, and the program did not say how many it wants, or said
/// by the settings where.
bool is_bound(const Program& program, std::uint32_t wanted) {
  return wanted == 0 || (!Spacing{program.rank->runtime->settings()}.is_usual() &&
                         std::ranges::all_of(program.worker_places, [&](const auto* place) {
                           return std::ranges::count(program.worker_places, place) == 1;
                         }));
}

Result<> open_team(Program& program, const sterna_options& wanted) {
  const Settings& settings = program.rank->runtime->settings();
  auto topology = topology::Topology::detect(
      {.arity_max = static_cast<std::uint32_t>(settings.number(kQueueArity))});
  if (!topology) {
    return topology.error();
  }
  program.topology = std::move(topology.value());
  auto space = memory::IsoSpace::open({});
  if (!space) {
    return space.error();
  }
  program.space = std::move(space.value());
  auto chosen = places_of(program, wanted.workers);
  if (!chosen) {
    return chosen.error();
  }
  program.worker_places = std::move(chosen.value());
  const std::vector<const topology::Place*>& places = program.worker_places;
  auto policy = sched::make_policy(policy_to_begin_with(settings, wanted.policy));
  if (!policy) {
    return policy.error();
  }
  auto scheduler =
      sched::Scheduler::open({.topology = program.topology.get(),
                              .workers = places,
                              .policy = std::move(policy.value()),
                              .audit_ns = static_cast<std::uint64_t>(settings.number(kAudit))});
  if (!scheduler) {
    return scheduler.error();
  }
  program.scheduler = std::move(scheduler.value());
  program.has_auto_bubbles = settings.text(kAutoBubbles) == "filiation";
  program.has_own_locals = settings.text(kOwnLocals) == "on";
  progress::Progress& progress = *program.rank->progress;
  std::vector<std::uint32_t> processors;
  if (is_bound(program, wanted.workers) && !progress.options().is_oversubscribed) {
    std::ranges::transform(places, std::back_inserter(processors),
                           [](const topology::Place* place) { return place->os_index; });
  }
  threads::TeamOptions options;
  options.worker_count = static_cast<std::uint32_t>(places.size());
  options.processors = processors;
  options.spin_ns = progress.options().is_oversubscribed ? 0 : progress.options().spin_ns;
  options.take_over = true;  // Unless the setting says otherwise.
  apply_settings(settings, options);
  options.dispatch = program.scheduler.get();
  options.idle_hook = &progress;
  options.iso_space = program.space.get();
  trace::note_workers(options.worker_count);
  threads::report_stack_overflows();
  auto team = threads::Team::open(options);
  if (!team) {
    return team.error();
  }
  program.team = std::move(team.value());
  program.alarms = std::make_unique<threads::Alarms>(*program.team);
  auto poll_tasks = progress::PollTasks::open(progress, call_poll_task, program.rank);
  if (!poll_tasks) {
    return poll_tasks.error();
  }
  program.poll_tasks = std::move(poll_tasks.value());
  program.message_callbacks = std::make_unique<MessageCallbacks>(*program.rank);
  program.scheduler->attach(*program.team);
  return Done{};
}

void open_rpc(Program& program) {
  net::Transport& transport = *program.rank->transport;
  program.rpc = std::make_unique<rpc::Rpc>(rpc::RpcOptions{.transport = &transport,
                                                           .progress = program.rank->progress,
                                                           .team = program.team.get(),
                                                           .log = &program.rank->runtime->log(),
                                                           .endpoint = program.rank->endpoint,
                                                           .part_context = kRpcPartContext});
  program.load_source = std::make_unique<NodeLoadSource>(*program.team, nullptr);
  program.load_source->add_to(*program.rpc);
  program.session_numbers.add_to(*program.rpc);
  program.leaving = std::make_unique<Leaving>(*program.rpc);
  add_services(*program.rpc);
  transport.register_lost_handler(on_lost, &program);
}

/// Ends what is open. The network of a job that MPI goes on to use knows `program` for ever: the
/// object is kept then, without what costs.
void retire(std::unique_ptr<Program> program) noexcept {
  the_program = nullptr;
  become_invisible(*program);
  program->readiness.reset();
  program->poll_tasks.reset();
  program->message_callbacks.reset();
  delete program->place_memory.exchange(nullptr, std::memory_order_relaxed);
  program->team.reset();  // It polls the network that goes next.
  leave_process_job();
  if (find_current_rank() != nullptr) {
    program->scheduler.reset();
    program->space.reset();
    // MPI's network lives on and may still bring requests; a process starts once.
    [[maybe_unused]] static const Program* kept;
    kept = program.release();
  }
}

sterna_status open_layers(Program& program, const sterna_options& options) {
  if (Result<> opened = open_team(program, options); !opened) {
    return fail(opened.error());
  }
  lock_services();
  open_rpc(program);
  become_visible(program);
  the_program = &program;  // Requests of those who are through may come before the last has come.
  // All are here: no request comes before its handler is registered.
  if (meet_all(*program.rank, kStartContext, 0) != STERNA_SUCCESS) {
    return fail(Error{Errc::closed, "a node of the job is gone, for which all others wait here"});
  }
  follow_processors(program);
  return STERNA_SUCCESS;
}

sterna_status open_program(const sterna_options& options) {
  auto program = std::make_unique<Program>();
  auto joined = join_process_job();
  if (!joined) {
    return fail(joined.error());
  }
  program->rank = find_current_rank();
  program->rank->runtime->serve_any_caller();  // Workers come; MPI may have begun, or may yet.
  const sterna_status status = guarded([&] { return open_layers(*program, options); });
  if (status == STERNA_SUCCESS) {
    [[maybe_unused]] const Program* const used = program.release();  // the_program owns it.
  } else {
    retire(std::move(program));
  }
  return status;
}

}  // namespace

Program* program() noexcept {
  return the_program;  // Null where there are mobile ranks: their start makes none.
}

bool is_mobile() noexcept {
  const RankContext* rank = find_current_rank();
  return rank != nullptr && rank->slot != nullptr;
}

sterna_status why_no_program() noexcept {
  return is_mobile()
             ? refuse(STERNA_UNSUPPORTED,
                      "a mobile rank is a thread itself and has no threads, bubbles or services")
             : refuse(STERNA_NOT_STARTED, "sterna_start comes first, and sterna_stop was not yet");
}

}  // namespace sterna::runtime::capi

using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;
namespace capi = sterna::runtime::capi;

uint32_t sterna_version(void) noexcept {
  return STERNA_VERSION_MAJOR * 1000 + STERNA_VERSION_MINOR;
}

namespace {

/// SUCCESS, or what is wrong, with a text.
sterna_status check_options(const sterna_options& options) noexcept {
  if (options.size_bytes != sizeof options) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "options are as in STERNA_OPTIONS_DEFAULT");
  }
  if (options.workers > 1024) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "options: {} workers, 1024 are the most",
                        options.workers);
  }
  return capi::guarded([&] {
    const auto policy =
        sterna::sched::make_policy(options.policy != nullptr ? options.policy : "flat");
    return policy ? STERNA_SUCCESS
                  : capi::refuse(STERNA_INVALID_ARGUMENT, "options: {}", policy.error().text);
  });
}

}  // namespace

sterna_status sterna_start(const sterna_options* options) noexcept {
  const RuntimeScope scope;
  const sterna_options used = options == nullptr ? sterna_options STERNA_OPTIONS_DEFAULT : *options;
  if (const sterna_status status = check_options(used); status != STERNA_SUCCESS) {
    return status;
  }
  if (capi::is_mobile()) {
    return STERNA_SUCCESS;
  }
  if (capi::program() != nullptr) {
    return capi::refuse(STERNA_BUSY, "sterna_start: it is started already");
  }
  if (std::exchange(capi::has_begun, true)) {
    return capi::refuse(STERNA_UNSUPPORTED, "sterna_start: a process starts once");
  }
  return capi::guarded([&] { return capi::open_program(used); });
}

sterna_status sterna_stop(void) noexcept {
  const RuntimeScope scope;
  if (capi::is_mobile()) {
    return STERNA_SUCCESS;
  }
  capi::Program* program = capi::program();
  if (program == nullptr) {
    return capi::why_no_program();
  }
  if (sterna::threads::self() != nullptr) {
    return capi::refuse(STERNA_UNSUPPORTED,
                        "sterna_stop: {} calls, which it would wait for: the initial kernel thread "
                        "calls it",
                        capi::words_for(sterna::threads::self()));
  }
  capi::leave(*program);
  capi::retire(std::unique_ptr<capi::Program>{program});
  return STERNA_SUCCESS;
}

uint32_t sterna_node_index(void) noexcept {
  const auto look = [] {
    const RankContext* rank = find_current_rank();
    return rank == nullptr ? 0 : rank->transport->job().node_index;
  };
  if (capi::is_in_poll()) {  // Which is in the runtime, of a program.
    const capi::Program* const self = capi::program();
    return self != nullptr ? self->rpc->node() : look();
  }
  const RuntimeScope scope;
  return look();
}

uint32_t sterna_node_count(void) noexcept {
  const RuntimeScope scope;
  const RankContext* rank = find_current_rank();
  return rank == nullptr ? 1 : rank->transport->job().node_count;
}

uint32_t sterna_rank(void) noexcept {
  const RuntimeScope scope;
  const RankContext* rank = find_current_rank();
  return rank == nullptr ? 0 : rank->rank;
}

uint32_t sterna_rank_count(void) noexcept {
  const RuntimeScope scope;
  const RankContext* rank = find_current_rank();
  return rank == nullptr ? 1 : rank->size;
}

uint32_t sterna_worker_count(void) noexcept {
  const RuntimeScope scope;
  const capi::Program* program = capi::program();
  return program == nullptr ? 0 : program->team->worker_count();
}
