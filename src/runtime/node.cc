// Opening a node and creating its ranks. What happens while it runs is in node_events.cc.
#include "runtime/node.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/trace.h"
#include "base/wire.h"
#include "runtime/mover.h"
#include "runtime/node_of_process.h"
#include "runtime/safe_point.h"
#include "runtime/settings.h"
#include "topology/topology.h"

namespace sterna::runtime {
namespace {

// Constant while ranks run; see node_of_process.h.
constinit Node* the_node = nullptr;

/// Which processors this node has: its share among the nodes of its host.
Result<std::vector<std::uint32_t>> processors_of(const ControlClient& control,
                                                 const Settings& settings) {
  Result<std::unique_ptr<topology::Topology>> machine = topology::Topology::flat();
  if (!machine) {
    return machine.error();
  }
  const std::vector<std::uint32_t>& nodes = control.host().nodes;
  const auto here = std::ranges::find(nodes, control.job().node_index);
  topology::Share share;
  if (here != nodes.end()) {
    share = {.node_index = static_cast<std::uint32_t>(here - nodes.begin()),
             .node_count = static_cast<std::uint32_t>(nodes.size())};
  }
  const std::vector<const topology::Place*> pus = machine.value()->share(share);
  const auto first = static_cast<std::size_t>(settings.number(kWorkerFirst));
  if (first >= pus.size()) {
    return first_worker_error(first, pus.size());
  }
  const auto stride = static_cast<std::size_t>(settings.number(kWorkerStride));
  std::vector<std::uint32_t> processors;
  for (const topology::Place* place : topology::every_nth(pus, first, stride, 0)) {
    processors.push_back(place->os_index);
  }
  return processors;
}

constexpr std::size_t kFingerprintBytesMax = 16 << 10;

/// The first lines that two texts do not share.
std::pair<std::string, std::string> first_difference(std::string_view one, std::string_view other) {
  while (!one.empty() || !other.empty()) {
    const std::string_view line = one.substr(0, one.find('\n'));
    const std::string_view other_line = other.substr(0, other.find('\n'));
    if (line != other_line) {
      return {std::string{line}, std::string{other_line}};
    }
    one.remove_prefix(std::min(one.size(), line.size() + 1));
    other.remove_prefix(std::min(other.size(), other_line.size() + 1));
  }
  return {"more than fits here", "more than fits here"};
}

}  // namespace

Node* node_of_process() noexcept {
  return the_node;
}

Result<std::unique_ptr<Node>> Node::open(std::unique_ptr<ControlClient> control,
                                         RankRunner& runner) {
  std::unique_ptr<Node> node{new Node{runner}};
  ControlEvents* events = node.get();
  Result<std::unique_ptr<Runtime>> runtime =
      Runtime::open({.control = std::move(control), .events = events});
  if (!runtime) {
    return runtime.error();
  }
  node->runtime_ = std::move(runtime.value());
  if (Result<> opened = node->open_memory(); !opened) {
    return opened.error();
  }
  if (Result<> opened = runner.open(); !opened) {
    return opened.error();
  }
  // Before anybody polls the control channel, and would take the answer.
  if (Result<> compared = node->compare_fingerprints(); !compared) {
    return compared.error();
  }
  if (Result<> opened = node->open_team(); !opened) {
    return opened.error();
  }
  node->open_mobility();
  the_node = node.get();
  set_mover(move_rank);
  threads::install_crash_handler(on_crash);
  // Not before: what came too early for its handler would be dropped.
  if (Result<> started = node->runtime_->start_polling(); !started) {
    return started.error();
  }
  return node;
}

Result<> Node::open_memory() {
  const net::JobMap& job = runtime_->job();
  leases_ = std::make_unique<Leases>(job.node_index, job.node_count);
  Result<std::unique_ptr<memory::IsoSpace>> space = memory::IsoSpace::open(
      {.node_index = job.node_index,
       .node_count = job.node_count,
       .rank_count = job.rank_count,
       .leases = leases_.get(),
       .is_rank_memory_shared = runtime_->settings().text(kRankMemory) == "shared"});
  if (!space) {
    return space.error();
  }
  space_ = std::move(space.value());
  return Done{};
}

Result<> Node::open_team() {
  Result<std::vector<std::uint32_t>> processors =
      processors_of(runtime_->control(), runtime_->settings());
  if (!processors) {
    return processors.error();
  }
  const bool is_oversubscribed = runtime_->progress().options().is_oversubscribed;
  threads::TeamOptions options;
  options.worker_count = static_cast<std::uint32_t>(processors.value().size());
  options.processors = processors.value();
  options.main_is_worker = true;
  options.spin_ns = is_oversubscribed ? 0 : runtime_->progress().options().spin_ns;
  // One that waits for its own thread in the kernel would hold up those whose messages that needs.
  options.take_over = runner_.creates_threads();  // Unless the setting says otherwise.
  apply_settings(runtime_->settings(), options);
  options.idle_hook = &runtime_->progress();
  options.iso_space = space_.get();
  trace::note_workers(options.worker_count);
  Result<std::unique_ptr<threads::Team>> team = threads::Team::open(options);
  if (!team) {
    return team.error();
  }
  team_ = std::move(team.value());
  return Done{};
}

void Node::open_mobility() {
  rpc_ = std::make_unique<rpc::Rpc>(rpc::RpcOptions{.transport = &runtime_->transport(),
                                                    .progress = &runtime_->progress(),
                                                    .team = team_.get(),
                                                    .log = &runtime_->log()});
  leases_->connect(*rpc_, *space_);
  load_source_ = std::make_unique<NodeLoadSource>(*team_, &residents_);
  load_source_->add_to(*rpc_);
  session_numbers_.add_to(*rpc_);
  const Settings& settings = runtime_->settings();
  migration::MigratorOptions options;
  options.space = space_.get();
  options.team = team_.get();
  options.transport = &runtime_->transport();
  options.progress = &runtime_->progress();
  options.rpc = rpc_.get();
  options.host = this;
  options.residents = &residents_;
  options.log = &runtime_->log();
  options.fingerprint = runner_.fingerprint();
  options.answer_ns = static_cast<std::uint64_t>(settings.number(kMoveTimeout));
  options.fault_step = settings.text(kFault);
  migrator_ = std::make_unique<migration::Migrator>(options);
  flush_ = std::make_unique<migration::Flush>(options, *migrator_);
  balancer_ = std::make_unique<balance::Actor>(balance::ActorOptions{
      .policy = balance::choose_policy(settings.text(kBalance)).value(),  // It is verified.
      .interval_ns = static_cast<std::uint64_t>(settings.number(kBalanceInterval)),
      .transport = &runtime_->transport(),
      .progress = &runtime_->progress(),
      .rpc = rpc_.get(),
      .team = team_.get(),
      .residents = &residents_,
      .migrator = migrator_.get(),
      .log = &runtime_->log()});
}

// A job that cannot migrate says so at once, and runs on without.
Result<> Node::compare_fingerprints() {
  const std::string own_text = runner_.describe();
  std::vector<std::byte> mine;
  wire::Writer writer{mine, kFingerprintBytesMax};
  writer.u64(runner_.fingerprint());
  writer.text(std::string_view{own_text}.substr(0, kFingerprintBytesMax / 2));
  Result<std::vector<std::vector<std::byte>>> all = runtime_->control().exchange(mine);
  if (!all) {
    return all.error();
  }
  const Logger log{runtime_->log(), "node"};
  if (runner_.fingerprint() == 0) {
    log.warn("ranks cannot move from or to node {}: {}", runtime_->job().node_index, own_text);
    return Done{};
  }
  for (std::uint32_t node = 0; node < all.value().size(); ++node) {
    wire::Reader reader{all.value()[node]};
    const std::uint64_t fingerprint = reader.u64();
    if (fingerprint == runner_.fingerprint() || fingerprint == 0) {
      continue;  // 0: that node says why.
    }
    const auto [here, there] = first_difference(own_text, reader.text(kFingerprintBytesMax));
    log.warn(
        "ranks cannot move between nodes {} and {}: they do not have the same binaries at the "
        "same addresses. Here: {}; there: {}. The job goes on without these moves; install one "
        "build of Sterna and of the program on all hosts",
        runtime_->job().node_index, node, here, there);
    break;
  }
  return Done{};
}

Result<> Node::create_ranks() {
  const std::vector<std::uint32_t>& node_of_rank = runtime_->job().node_of_rank;
  for (std::uint32_t rank = 0; rank < node_of_rank.size(); ++rank) {
    if (node_of_rank[rank] != runtime_->job().node_index) {
      continue;
    }
    if (Result<> created = create_rank(rank); !created) {
      return created;
    }
  }
  return balancer_->start();
}

Result<> Node::create_rank(std::uint32_t rank) {
  const Settings& settings = runtime_->settings();
  memory::RankOptions options;
  options.stack_bytes = static_cast<std::size_t>(settings.number(kStackSize));
  Result<memory::RankSlot*> mapped = space_->map_rank(rank, options);
  if (!mapped) {
    return mapped.error();
  }
  memory::RankSlot& slot = *mapped.value();
  if (auto images = space_->map_images(rank, runner_.image_bytes()); !images) {
    return images.error();
  }
  if (Result<> created = runner_.create(slot); !created) {
    return created;
  }
  void* place = slot.system_heap->allocate(sizeof(RankContext));
  if (place == nullptr) {
    return Error{Errc::out_of_memory, fmt::format("rank {}: its system heap is full", rank)};
  }
  auto* context = new (place) RankContext{};
  if (Result<> started = runtime_->start_rank(*context, rank, *slot.system_heap, &slot); !started) {
    return started;
  }
  if (const std::int64_t every = settings.number(kShuffle); every > 0) {
    start_shuffling(*context, static_cast<std::uint32_t>(every),
                    static_cast<std::uint64_t>(settings.number(kShuffleSeed)));
  }
  const std::string name = fmt::format("rank {}", rank);
  const std::uintptr_t descriptor = memory::descriptor_address(slot.stack.base);
  slot.thread =
      team_->adopt({.base = reinterpret_cast<std::byte*>(slot.stack.base),
                    .bytes = descriptor - slot.stack.base,
                    .descriptor = reinterpret_cast<threads::Thread*>(descriptor)},
                   {.name = name.c_str(), .detached = true, .accounted = true, .owner = context},
                   runner_.entry(), &slot);
  residents_.add(slot);
  team_->start(*slot.thread);
  return Done{};
}

}  // namespace sterna::runtime
