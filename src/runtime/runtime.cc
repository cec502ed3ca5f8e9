// Opening and closing of a node: control channel, settings, log, progress, network, in this order.
#include "runtime/runtime.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/processors.h"
#include "base/trace.h"
#include "net/endpoint.h"
#include "runtime/process_rank.h"
#include "runtime/settings.h"

namespace sterna::runtime {
namespace {

// How long a node waits for the network to take its last packets.
constexpr std::uint64_t kDrainNs = 2'000'000'000;
constexpr std::uint64_t kSecondNs = 1'000'000'000;
// And for the launcher to find the end of a node that the network has lost.
constexpr time_t kLossWaitSeconds = 1;
// And for the launcher's signal after an abort was told.
constexpr unsigned kKillWaitSeconds = 5;

}  // namespace

Runtime::Runtime(RuntimeOptions options)
    : control_{std::move(options.control)}, events_{options.events}, settings_{all_tunables()} {}

Result<std::unique_ptr<Runtime>> Runtime::open(RuntimeOptions options) {
  std::unique_ptr<Runtime> runtime{new Runtime{std::move(options)}};
  if (Result<> loaded = runtime->load_settings(); !loaded) {
    return loaded.error();
  }
  LogOptions log_options{.prefix = fmt::format("node {}", runtime->job().node_index)};
  if (Result<> parsed = parse_log_levels(runtime->settings_.text(kLog), log_options); !parsed) {
    return parsed.error();
  }
  runtime->log_ = std::make_unique<Log>(std::move(log_options));
  runtime->start_trace();
  if (Result<> opened = runtime->open_network(); !opened) {
    return opened.error();
  }
  trace::note_wire_up();
  return runtime;
}

// A job that cannot be traced runs all the same: the trace of the others is worth having.
void Runtime::start_trace() {
  if (settings_.text(kTrace).empty()) {
    return;
  }
  trace::Options options;
  options.path = fmt::format("{}.node-{}", settings_.text(kTrace), job().node_index);
  options.bytes_max = static_cast<std::uint64_t>(settings_.number(kTraceBytes));
  options.node = job().node_index;
  options.node_count = job().node_count;
  options.rank_count = job().rank_count;
  if (Result<> started = trace::start(options); !started) {
    Logger{*log_, "trace"}.warn("node {} is not traced: {}", job().node_index,
                                started.error().text);
  }
}

Result<> Runtime::load_settings() {
  if (Result<> loaded = settings_.load(environ); !loaded) {
    return loaded;
  }
  for (const auto& [name, value] : control_->description().settings) {
    const std::string place = "--" + name;
    if (Result<> set = settings_.set(name, value, SettingSource::command_line, place); !set) {
      return set;
    }
  }
  checks_packs_ = settings_.flag(kPackChecks);
  return Done{};
}

progress::ProgressOptions Runtime::progress_options() const {
  progress::ProgressOptions options;
  options.spin_ns = static_cast<std::uint64_t>(settings_.number(kSpin));
  const std::vector<std::uint32_t>& nodes = control_->host().nodes;
  options.is_oversubscribed = nodes.size() > usable_processors();
  const auto self = std::ranges::find(nodes, control_->job().node_index);
  options.host_index = static_cast<std::uint32_t>(self - nodes.begin());
  return options;
}

Result<> Runtime::open_network() {
  Result<std::unique_ptr<progress::Progress>> progress =
      progress::Progress::open(progress_options());
  if (!progress) {
    return progress.error();
  }
  progress_ = std::move(progress.value());
  Result<std::vector<net::DriverChoice>> drivers = net::choose_drivers(settings_.text(kDrivers));
  if (!drivers) {
    return drivers.error();
  }
  Result<std::unique_ptr<net::Transport>> transport = net::Transport::open({
      .bootstrap = control_.get(),
      .drivers = drivers.value(),
      .clock = nullptr,
      .log = log_.get(),
      .settings = &settings_,
  });
  if (!transport) {
    return transport.error();
  }
  transport_ = std::move(transport.value());
  transport_->register_full_handler(
      [](void* self, std::uint32_t rank, const std::string& text) noexcept {
        static_cast<Runtime*>(self)->abort_job(rank, 1, text);
      },
      this);
  if (transport_->wants_known_costs() && job().node_count > 1) {
    costs_path_ = net::costs_path();
    // None, or none that can be believed: they are measured again.
    const std::uint64_t now_s = now_ns() / kSecondNs;
    if (auto known = net::read_costs(costs_path_, net::costs_machine(), now_s)) {
      transport_->know_costs(known.value(), now_s);
    }
  }
  return Done{};
}

Result<> Runtime::start_polling() {
  // Where processes outnumber processors, the scheduler of the system is what one would measure.
  if (!progress_->options().is_oversubscribed) {
    transport_->sample_costs();
  }
  transport_->add_to(*progress_);
  is_polled_ = true;
  if (!control_->is_alone()) {
    ControlEvents& events = *this;
    control_source_ = std::make_unique<ControlSource>(*control_, events);
    return progress_->add(*control_source_);
  }
  return Done{};
}

Result<std::unique_ptr<Runtime>> Runtime::open_process() {
  Result<std::unique_ptr<ControlClient>> control = ControlClient::open();
  if (!control) {
    return control.error();
  }
  Result<std::unique_ptr<Runtime>> runtime = open({.control = std::move(control.value())});
  if (!runtime) {
    return runtime;
  }
  Runtime& self = *runtime.value();
  if (Result<> started = self.start_polling(); !started) {
    return started.error();
  }
  // Process mode places rank r on node r.
  self.process_context_ = std::make_unique<RankContext>();
  Result<> started = self.start_rank(*self.process_context_, self.job().node_index,
                                     *memory::Heap::process(), nullptr);
  if (!started) {
    return started.error();
  }
  set_process_rank(self.process_context_.get());
  return runtime;
}

Runtime::~Runtime() {
  progress::process_caller.store(nullptr, std::memory_order_relaxed);  // The last call is this one.
  end_background();
  if (process_context_ != nullptr) {
    set_process_rank(nullptr);
    end_rank(*process_context_);
  }
  if (is_polled_) {
    end_network();
    transport_->remove_from(*progress_);
    transport_->log_costs();
    keep_costs();
  }
  if (control_source_ != nullptr && progress_ != nullptr) {
    progress_->remove(*control_source_);
  }
  trace::stop();
}

/// For the jobs that come: at its end, when nobody waits for this node.
void Runtime::keep_costs() noexcept {
  const std::uint64_t now_s = now_ns() / kSecondNs;
  const std::vector<net::CostsEntry> costs = transport_->sampled_costs(now_s);
  if (costs.empty() || costs_path_.empty()) {
    return;
  }
  if (Result<> kept = net::add_costs(costs_path_, net::costs_machine(), costs, now_s); !kept) {
    Logger{*log_, "net"}.info("what was sampled is not kept for other jobs: {}", kept.error().text);
  }
}

void Runtime::end_network() noexcept {
  transport_->close();
  const std::uint64_t deadline_ns = now_ns() + kDrainNs;
  while (!transport_->is_drained() && now_ns() < deadline_ns) {
    if (progress_->poll() == 0) {
      ::sched_yield();
    }
  }
}

Result<> Runtime::start_rank(RankContext& context, std::uint32_t rank, memory::Heap& heap,
                             memory::RankSlot* slot) {
  net::Endpoint* endpoint = net::create_endpoint(heap, rank);
  if (endpoint == nullptr) {
    return Error{Errc::out_of_memory, fmt::format("rank {}: no memory for its endpoint", rank)};
  }
  endpoint->is_fixed = slot == nullptr;
  context.rank = rank;
  context.size = job().rank_count;
  context.runtime = this;
  context.transport = transport_.get();
  context.progress = progress_.get();
  context.endpoint = endpoint;
  context.heap = &heap;
  context.slot = slot;
  if (slot != nullptr) {
    slot->context = &context;
    slot->endpoint = endpoint;
  }
  transport_->install(rank, endpoint);
  return Done{};
}

void Runtime::end_rank(RankContext& context) noexcept {
  transport_->remove(context.rank);
  net::destroy_endpoint(context.endpoint);
  context.endpoint = nullptr;
}

void Runtime::abort_job(std::uint32_t rank, int code, const std::string& text) noexcept {
  if (control_->is_alone()) {
    log_->write(
        "job", LogLevel::error,
        text.empty() ? fmt::format("rank {} called MPI_Abort with code {}", rank, code) : text);
    ::_exit(code == 0 ? 1 : code & 0xff);
  }
  if (transport_ != nullptr && transport_->has_lost_nodes()) {
    // The loss is probably why: the launcher, which knows how that node ended, ends the job first.
    const timespec loss_wait{.tv_sec = kLossWaitSeconds, .tv_nsec = 0};
    ::nanosleep(&loss_wait, nullptr);
  }
  control_->report_abort({.rank = rank, .code = code, .text = text});
  ::alarm(kKillWaitSeconds);  // Should the launcher be gone as well.
  for (;;) {
    ::pause();
  }
}

void Runtime::on_peer_lost(std::uint32_t node) noexcept {
  // First what was on its way from there: a rank that has come as a whole is not lost.
  if (events_ != nullptr) {
    events_->on_peer_lost(node);
  }
  transport_->lose_peer(node, "its process has ended");
}

void Runtime::on_way_wanted(const WayQuestion& question) noexcept {
  control_->report_way(
      {.number = question.number, .way = transport_->explain_way(question.node, question.bytes)});
}

void Runtime::on_rank_moved(const RankMove& move) noexcept {
  if (events_ != nullptr) {
    events_->on_rank_moved(move);
  }
}

void Runtime::fill_status_by(StatusFiller filler, void* argument) noexcept {
  const SpinGuard guard{filler_lock_};
  filler_ = filler;
  filler_argument_ = argument;
}

void Runtime::on_status_wanted() noexcept {
  if (events_ != nullptr) {
    events_->on_status_wanted();
    return;
  }
  NodeStatus status;
  status.node = job().node_index;
  status.cpu_ns = thread_cpu_ns();
  if (process_context_ != nullptr) {
    RankStatus& rank = status.ranks.emplace_back();
    rank.rank = process_context_->rank;
    rank.state = "running";
    rank.cpu_ns = status.cpu_ns;
    rank.refusal = "it is a process of its own: only ranks started with --nodes can move";
  }
  {
    const SpinGuard guard{filler_lock_};  // It is not retired meanwhile.
    if (filler_ != nullptr) {
      filler_(filler_argument_, status);
    }
  }
  control_->report_status(status);
}

void Runtime::on_flush_ordered(std::uint32_t number) noexcept {
  if (events_ != nullptr) {
    events_->on_flush_ordered(number);
  }
}

void Runtime::on_move_ordered(std::uint32_t rank, std::uint32_t node) noexcept {
  if (events_ != nullptr) {
    events_->on_move_ordered(rank, node);
  }
}

void Runtime::on_stop() noexcept {
  if (events_ != nullptr) {
    events_->on_stop();
    return;
  }
  ::_exit(1);  // The job has ended elsewhere: nobody will read what this rank computes.
}

}  // namespace sterna::runtime
