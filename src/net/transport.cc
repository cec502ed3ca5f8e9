// The public face of TransportCore.
#include "net/transport.h"

#include <algorithm>

#include <fmt/format.h>

#include "net/core.h"
#include "net/transfer/absence.h"
#include "progress/progress.h"

namespace sterna::net {

Transport::Transport(std::unique_ptr<TransportCore> core) noexcept
    : core_{std::move(core)}, direct_way_{core_->direct_way_} {}
Transport::~Transport() = default;

Result<std::unique_ptr<Transport>> Transport::open(const TransportOptions& options) {
  Result<CoreOptions> core_options = read_options(options.settings);
  if (!core_options) {
    return core_options.error();
  }
  auto core = std::make_unique<TransportCore>(options, core_options.value());
  if (Result<> opened = core->open_drivers(options); !opened) {
    return opened.error();
  }
  return std::unique_ptr<Transport>{new Transport{std::move(core)}};
}

void Transport::add_to(progress::Progress& progress) noexcept {
  Result<> added = progress.add(core_->inner_);
  for (const auto& rail : core_->rails_) {
    if (added) {
      added = progress.add(rail->source(progress));
    }
  }
  if (!added) {
    core_->log_.error("the network cannot be waited for: {}", added.error().text);
  }
  check(added.has_value(), "there is room for the sources of a node");
  core_->progress_.store(&progress, std::memory_order_release);
  if (core_->options_.may_hand_over) {
    progress.hand_over().serve(TransportCore::send_handed, core_.get());
    core_->hand_over_.store(&progress.hand_over(), std::memory_order_release);
  }
  if (progress.options().is_oversubscribed) {
    core_->looks_max_ = 0;  // One look: the processor is for who will send.
  }
  core_->has_company_ = &progress.has_company();
}

void Transport::remove_from(progress::Progress& progress) noexcept {
  core_->progress_.store(nullptr, std::memory_order_release);
  core_->has_company_ = nullptr;
  if (core_->hand_over_.exchange(nullptr, std::memory_order_acq_rel) != nullptr) {
    progress.hand_over().stop();
  }
  for (const auto& rail : core_->rails_) {
    progress.remove(rail->source(progress));
  }
  progress.remove(core_->inner_);
}

const JobMap& Transport::job() const noexcept {
  return core_->job_;
}

void Transport::serve_one_caller(bool is_one) noexcept {
  core_->serve_one_caller(is_one);
}

Absence Transport::absence() const noexcept {
  return Absence{*core_};
}

void Transport::send(Endpoint& from, SendRequest& request, const Target& target, const Buffer& data,
                     SendMode mode) noexcept {
  core_->send(from, request, target, data, mode);
}

void Transport::receive(Endpoint& at, RecvRequest& request, const Pattern& pattern,
                        const Buffer& data) noexcept {
  core_->receive(at, request, pattern, data);
}

void Transport::receive(Endpoint& at, RecvRequest& request, const MaskedPattern& pattern,
                        const Buffer& data) noexcept {
  core_->receive(at, request, pattern, data);
}

bool Transport::probe(Endpoint& at, const MaskedPattern& pattern, Envelope& found,
                      MessageWatch* watch) noexcept {
  return core_->look_for(at, pattern, nullptr, found, watch);
}

Message* Transport::matched_probe(Endpoint& at, const MaskedPattern& pattern, Envelope& found,
                                  MessageWatch* watch) noexcept {
  Message* taken = nullptr;
  (void)core_->look_for(at, pattern, &taken, found, watch);
  return taken;
}

bool Transport::probe(Endpoint& at, const Pattern& pattern, Envelope& found,
                      MessageWatch* watch) noexcept {
  return core_->look_for(at, pattern, nullptr, found, watch);
}

Message* Transport::matched_probe(Endpoint& at, const Pattern& pattern, Envelope& found,
                                  MessageWatch* watch) noexcept {
  Message* taken = nullptr;
  (void)core_->look_for(at, pattern, &taken, found, watch);
  return taken;
}

void Transport::end_watch(Endpoint& at, MessageWatch& watch) noexcept {
  const threads::OwnedGuard guard{core_->ranks_[at.rank].lock};
  unlist_watch(at, watch);
}

void Transport::receive_matched(Endpoint& at, RecvRequest& request, Message& message,
                                const Buffer& data) noexcept {
  core_->receive_matched(at, request, message, data);
}

bool Transport::cancel_send(Endpoint& from, SendRequest& request) noexcept {
  return core_->cancel_send(from, request);
}

bool Transport::cancel_receive(Endpoint& at, RecvRequest& request) noexcept {
  return core_->cancel_receive(at, request);
}

bool Transport::try_send_short(Endpoint& from, const Target& target,
                               std::span<const std::byte> bytes) noexcept {
  return core_->try_send_short(from, target, bytes);
}

void Transport::receive_run(Endpoint& at, RecvRequest& request, Pattern pattern, std::byte* into,
                            std::uint64_t bytes) noexcept {
  core_->receive_run(at, request, pattern, into, bytes);
}

bool Transport::try_receive_short(Endpoint& at, const Pattern& pattern, std::span<std::byte> into,
                                  Envelope& found, Fault* fault) noexcept {
  return core_->try_receive_short(at, pattern, into, found, fault);
}
bool Transport::may_find_more() noexcept {
  return core_->may_find_more();
}

void Transport::interrupt(std::uint32_t rank) noexcept {
  core_->interrupt(rank);
}

void Transport::install(std::uint32_t rank, Endpoint* endpoint) noexcept {
  core_->install(rank, endpoint);
}
void Transport::remove(std::uint32_t rank) noexcept {
  core_->remove(rank);
}
std::uint32_t Transport::node_of(std::uint32_t rank) noexcept {
  return core_->ranks_.node_of(rank);
}
Result<> Transport::begin_leave(std::uint32_t rank) noexcept {
  return core_->begin_leave(rank);
}
void Transport::commit_leave(std::uint32_t rank, std::uint32_t to_node) noexcept {
  core_->commit_leave(rank, to_node);
}
void Transport::cancel_leave(std::uint32_t rank) noexcept {
  core_->cancel_leave(rank);
}
void Transport::expect(std::uint32_t rank) noexcept {
  core_->expect(rank);
}
void Transport::learn(std::uint32_t rank, std::uint32_t node, std::uint32_t move) noexcept {
  core_->learn(rank, node, move);
}
void Transport::unexpect(std::uint32_t rank, std::uint32_t node) noexcept {
  core_->unexpect(rank, node);
}

void Transport::register_node_handler(std::uint32_t id, NodeHandler handler,
                                      void* context) noexcept {
  check(id < kHandlerCount && core_->handlers_[id].node == nullptr,
        "a handler is registered once, under a number below the bound");
  core_->handlers_[id].node = handler;
  core_->handlers_[id].node_context = context;
}

void Transport::register_rank_handler(std::uint32_t id, RankHandler handler,
                                      void* context) noexcept {
  check(id < kHandlerCount && core_->handlers_[id].rank == nullptr,
        "a handler is registered once, under a number below the bound");
  core_->handlers_[id].rank = handler;
  core_->handlers_[id].rank_context = context;
}

bool Transport::has_lost_nodes() const noexcept {
  return core_->is_any_lost_.load(std::memory_order_seq_cst);
}
std::uint32_t Transport::loss_count(const Endpoint& endpoint) noexcept {
  return endpoint.loss_count;
}

bool Transport::is_rank_lost(std::uint32_t rank) const noexcept {
  // After the count nothing more is delivered from there (lose_node()).
  return core_->loss_count_.load(std::memory_order_acquire) != 0 &&
         core_->gates_[core_->ranks_.node_of(rank)].is_lost();
}

void Transport::register_lost_handler(LostHandler handler, void* context) noexcept {
  core_->lost_handler_ = handler;
  core_->lost_context_ = context;
}

void Transport::register_full_handler(FullHandler handler, void* context) noexcept {
  core_->full_handler_ = handler;
  core_->full_context_ = context;
}

Result<> Transport::node_message(std::uint32_t to_node, std::uint32_t handler,
                                 std::span<const std::byte> head, std::span<const std::byte> body,
                                 std::uint64_t followed_by) noexcept {
  return core_->node_message(to_node, handler, head, body, followed_by);
}

void Transport::end_polls() noexcept {
  for (const std::unique_ptr<Rail>& rail : core_->rails_) {
    rail->end_poll();
  }
}

bool Transport::try_node_message(std::uint32_t to_node, std::uint32_t handler,
                                 std::span<const std::byte> head,
                                 std::span<const std::byte> body) noexcept {
  return body.size() <= core_->frame_payload_max_ && to_node != core_->node_ &&
         core_->try_node_short({to_node, handler, head, body, true});
}

bool Transport::may_copy_directly(std::uint32_t node) const noexcept {
  return core_->gates_[node].is_direct();
}

bool Transport::may_await_node(std::uint32_t node) noexcept {
  return core_->may_await_node(node);
}

bool Transport::try_await_node(const AwaitedWord& awaited, std::uint64_t& bytes) noexcept {
  return core_->try_await_node(awaited, bytes);
}

void Transport::rank_message(std::uint32_t to_rank, std::uint32_t handler,
                             std::span<const std::byte> bytes) noexcept {
  core_->rank_message(to_rank, handler, bytes);
}

void Transport::expect_bulk(std::uint32_t from_node, std::span<const Extent> extents,
                            Landing& landing) noexcept {
  core_->expect_bulk(from_node, extents, landing);
}
bool Transport::withdraw_bulk(Landing& landing) noexcept {
  return core_->withdraw_bulk(landing);
}

void Transport::bulk_send(std::uint32_t to_node, std::uint64_t landing_id,
                          std::span<const Extent> local, std::span<const RemotePiece> remote,
                          BulkSend& request) noexcept {
  core_->bulk_send(to_node, landing_id, local, remote, request);
}

void Transport::for_each_moved(FunctionRef<void(const RankPlace&)> visit) noexcept {
  core_->for_each_moved(visit);
}
void Transport::retire(std::uint32_t node, std::span<const RankPlace> places) noexcept {
  core_->retire(node, places);
}
std::uint64_t Transport::rerouted_count(bool waiting) const noexcept {
  const std::uint64_t sent = core_->stale_sent_.load(std::memory_order_acquire);
  return waiting ? core_->stale_count_.load(std::memory_order_acquire) - sent : sent;
}
bool Transport::keeps_order() const noexcept {
  return core_->bond_ == nullptr && std::ranges::all_of(core_->rails_, [](const auto& rail) {
           return rail->driver().capabilities().is_ordered;
         });
}

void Transport::withdraw_bulk_send(BulkSend& request) noexcept {
  // Relaxed: the poller, which ends the copy, sees it in one of its next rounds.
  request.is_withdrawn.store(true, std::memory_order_relaxed);
  core_->wake();
}

void Transport::lose_peer(std::uint32_t node, std::string_view reason) noexcept {
  if (node < core_->limits_.node_count && core_->gates_[node].is_open()) {
    core_->log_.info("node {} has ended: {}", node, reason);
    core_->gates_[node].driver()->lose_peer(node);
  }
}

std::uint32_t Transport::poll() noexcept {
  return core_->poll();
}

std::vector<RailReport> Transport::rails(std::uint32_t node) const {
  const Link* const link = core_->bond_ != nullptr ? core_->bond_->find(node) : nullptr;
  return link != nullptr ? link->report() : std::vector<RailReport>{};
}

std::uint64_t Transport::due_ns() const noexcept {
  return core_->bond_ != nullptr ? core_->bond_->due_ns() : kNever;
}

void Transport::close() noexcept {
  // Relaxed: the poller sees it in one of its next rounds, and closes the drivers there.
  core_->is_closing_.store(true, std::memory_order_relaxed);
}

bool Transport::is_drained() noexcept {
  return core_->is_drained();
}

void Transport::sample_costs() noexcept {
  if (core_->options_.cost_sampling != CostSampling::off) {
    core_->sampler_.start();
  }
}

bool Transport::wants_known_costs() const noexcept {
  return core_->options_.cost_sampling == CostSampling::cached;
}

void Transport::know_costs(std::span<const CostsEntry> entries, std::uint64_t now_s) noexcept {
  core_->sampler_.know(entries, now_s);
}

std::vector<CostsEntry> Transport::sampled_costs(std::uint64_t at_s) const {
  return core_->sampler_.sampled(at_s);
}

void Transport::log_costs() const {
  for (std::size_t i = 0; i < core_->rails_.size(); ++i) {
    if (const std::string figures = core_->rails_[i]->driver().figures(); !figures.empty()) {
      core_->log_.info("driver {}: {}", core_->driver_names_[i], figures);
    }
  }
  for (const CostSampler::Way& way : core_->sampler_.ways()) {
    if (way.is_rail) {
      core_->log_.info("rails to {} by driver {}: latency {} ns, {} ns a packet, {} ps a byte ({})",
                       way.host, way.driver, way.costs.latency_ns, way.costs.packet_ns,
                       way.costs.packet_ps_per_byte, to_string(way.origin));
      continue;
    }
    core_->log_.info("ways to {} by driver {}: {}", way.host, way.driver,
                     core_->gates_[way.nodes.front()].cost().describe());
  }
  for (std::uint32_t node = 0; node < core_->limits_.node_count; ++node) {
    if (const WayLearner& learner = core_->gates_[node].learner(); learner.ps_per_byte() != 0) {
      core_->log_.info("packets that waited for node {} took {} ns each and {} ps a byte", node,
                       learner.packet_ns(), learner.ps_per_byte());
    }
  }
}

CostModel Transport::cost(std::uint32_t node) const {
  check(node < core_->limits_.node_count && core_->gates_[node].is_open(),
        "what is asked for is the way to another node");
  return core_->gates_[node].cost();
}

std::uint64_t Transport::expected_ns(std::uint32_t rank, std::uint64_t bytes) noexcept {
  const std::uint32_t node = node_of(rank);
  if (node >= core_->limits_.node_count || !core_->gates_[node].is_open()) {
    return 0;
  }
  const CostModel model = core_->gates_[node].cost();
  const double ns = std::min(model.eager_ns(bytes), model.rendezvous_ns(bytes));
  return static_cast<std::uint64_t>(ns);
}

TransportStatistics Transport::statistics() const noexcept {
  const auto& counters = core_->counters_;
  return {.messages_local = counters.local.read(),
          .messages_eager = counters.eager.read(),
          .messages_rendezvous = counters.rendezvous.read(),
          .frames_forwarded = counters.forwarded.read(),
          .frames_malformed = counters.malformed.read(),
          .frames_dropped = counters.dropped.read(),
          .frames_held = counters.held.read(),
          .bytes_direct = counters.direct_bytes.read(),
          .bytes_data = counters.data_bytes.read(),
          .heads_sent = counters.heads.read(),
          .heads_dropped = counters.dropped_heads.read(),
          .lent_bytes_twice =
              core_->bond_ != nullptr ? core_->bond_->lent_parts().twice_bytes() : 0,
          .frames_handed = counters.handed.read(),
          .messages_invited = counters.invited.read()};
}

}  // namespace sterna::net
