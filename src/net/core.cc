// The life of a node's transport, and its polls.
#include "net/core.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kMeasureEvery = 16;

}  // namespace

TransportCore::TransportCore(const TransportOptions& options, const CoreOptions& core_options)
    : job_{options.bootstrap->job()},
      node_{job_.node_index},
      limits_{job_.node_count, job_.rank_count},
      options_{share_window(core_options, job_.rank_count)},
      clock_{options.clock != nullptr ? *options.clock : own_clock_},
      log_{options.log != nullptr ? Logger{*options.log, "net"} : Logger{}},
      ranks_{job_.node_index, job_.node_of_rank},
      gates_{std::make_unique<Gate[]>(job_.node_count)},
      links_{std::make_unique<NodeLink[]>(job_.node_count)},
      is_node_lost_(job_.node_count),
      large_pages_{options_.joins_pages ? std::make_unique<memory::LargePages>() : nullptr} {
  check(job_.node_of_rank.size() == job_.rank_count, "the initial placement covers all ranks");
}

TransportCore::~TransportCore() {
  while (TransferJob* job = new_jobs_.pop()) {
    delete job;
  }
  for (TransferJob* job : jobs_) {
    delete job;
  }
  while (HeldPacket* packet = own_messages_.pop()) {
    pool_.release(packet);
  }
  while (HeldPacket* packet = stale_frames_.pop()) {
    pool_.release(packet);
  }
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    RankEntry& entry = ranks_[rank];
    const threads::OwnedGuard guard{entry.lock};
    while (entry.held_first != nullptr) {
      HeldPacket* packet = entry.held_first;
      entry.held_first = packet->next;
      pool_.release(packet);
    }
  }
  gates_.reset();  // What waits in them goes back to the pool.
}

void TransportCore::serve_one_caller(bool is_one) noexcept {
  is_serial_ = is_one;
  for (std::uint32_t rank = 0; rank < limits_.rank_count; ++rank) {
    ranks_[rank].lock.serve_one_caller(is_one);
  }
}

progress::Source& Rail::source(progress::Progress& progress) {
  if (where_.places.empty()) {
    return *this;
  }
  if (bound_ == nullptr) {
    bound_ = std::make_unique<progress::BoundSource>(progress, *this, where_);
  }
  return *bound_;
}

inline bool TransportCore::may_have_inner() noexcept {
  return job_count_.load(std::memory_order_relaxed) != 0 || !own_messages_.looks_empty() ||
         !stale_frames_.looks_empty() || waiting_gates_.load(std::memory_order_relaxed) != 0 ||
         is_closing_.load(std::memory_order_relaxed) || sampler_.is_active() ||
         bond_ != nullptr || invitations_.has_waiting() || invitations_.has_left();
}

std::uint32_t Rail::poll() noexcept {
  if (core_.habits_.is_open() && core_.is_waited_for()) [[unlikely]] {
    core_.habits_.waits(core_.clock_.now_ns());
  }
  begin_poll();
  const std::uint32_t count = driver_->poll(*this, core_.options_.poll_packets_max);
  // Answers to what came, and copies it has cleared, go at once rather than with the next round.
  return core_.may_have_inner() ? count + core_.poll_inner() : count;
}

bool Rail::sight(std::uint32_t looks) noexcept {
  Driver::Sight seen;
  const bool is_seen = driver_->sight(looks, seen);
  if (core_.sampler_.is_active()) [[unlikely]] {
    core_.sampler_.note_look();
  }
  return is_seen;
}

bool Rail::prepare_sleep() noexcept {
  return driver_->prepare_sleep();
}

void Rail::end_sleep() noexcept {
  driver_->end_sleep();
  core_.sampler_.note_sleep();
}

void Rail::on_copies_refused(std::uint32_t node) noexcept {
  // A gate that connects later asks its channel.
  if (Gate& gate = core_.gates_[node]; gate.is_open() && gate.driver() == driver_.get()) {
    gate.lose_direct();
  }
}

void Rail::on_peer_lost(std::uint32_t node, std::string_view reason) noexcept {
  core_.on_rail_lost(index_, node, reason);
}

std::uint32_t InnerSource::poll() noexcept {
  return core_.rails_.empty() ? core_.poll_inner() : 0;  // Rails poll it, too.
}
bool InnerSource::prepare_sleep() noexcept {
  return !core_.has_next_step();
}
/// Links have times; what else is left to do Transport::has_work() says.
bool InnerSource::hear() noexcept {
  return core_.bond_ == nullptr;
}
std::uint64_t InnerSource::next_deadline_ns() noexcept {
  return core_.bond_ != nullptr ? core_.bond_->due_ns() : kNever;
}

std::uint32_t TransportCore::poll() noexcept {
  std::uint32_t count = 0;
  for (const auto& rail : rails_) {
    count += rail->poll();
  }
  return count + (rails_.empty() ? poll_inner() : 0);
}

std::uint32_t TransportCore::poll_inner() noexcept {
  std::uint32_t count = invitations_.has_waiting() ? write_invited() : 0;
  count += invitations_.has_left() ? read_left() : 0;
  count += advance_jobs();
  if (!own_messages_.looks_empty()) [[unlikely]] {
    count += deliver_own();
  }
  if (!stale_frames_.looks_empty()) [[unlikely]] {
    count += send_stale();
  }
  if (waiting_gates_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    for (std::uint32_t node = 0; node < limits_.node_count; ++node) {
      count += gates_[node].advance();
    }
  }
  const bool is_closing = is_closing_.load(std::memory_order_relaxed);
  if (sampler_.is_active()) [[unlikely]] {
    if (is_closing) {
      sampler_.stop();  // Of no use any more, and what it sends would have to be waited for.
    } else {
      count += sampler_.step();
    }
  }
  const bool is_at_end = is_closing && is_quiet();
  if (bond_ != nullptr) {
    count += bond_->step(is_at_end);
  }
  if (is_at_end && !are_drivers_closed_.load(std::memory_order_relaxed) &&
      (bond_ == nullptr || bond_->may_close())) [[unlikely]] {
    for (const auto& rail : rails_) {
      rail->driver().close();
    }
    are_drivers_closed_.store(true, std::memory_order_release);
  }
  return count;
}

void TransportCore::send_handed(void* core) noexcept {
  auto& self = *static_cast<TransportCore*>(core);
  (void)self.side_work_.help();  // First: its giver waits.
  for (std::uint32_t node = 0; node < self.limits_.node_count; ++node) {
    (void)self.gates_[node].advance();
  }
}

/// Something to do that no driver announces.
bool TransportCore::has_inner_work() noexcept {
  return job_count_.load(std::memory_order_relaxed) != 0 || !own_messages_.looks_empty() ||
         !stale_frames_.looks_empty();
}

/// The same without what its peers' answers will move.
bool TransportCore::has_next_step() noexcept {
  return job_count_.load(std::memory_order_relaxed) !=
             lending_jobs_.load(std::memory_order_relaxed) ||
         !own_messages_.looks_empty() || !stale_frames_.looks_empty();
}

bool TransportCore::has_work() noexcept {
  return has_inner_work() || (is_left_alone_ && invitations_.has_left());
}

bool TransportCore::is_quiet() noexcept {
  bool is_quiet = !has_inner_work();
  for (std::uint32_t node = 0; node < limits_.node_count && is_quiet; ++node) {
    is_quiet = gates_[node].is_empty() || gates_[node].is_lost();
  }
  return is_quiet;
}

bool TransportCore::is_drained() noexcept {
  bool is_drained =
      are_drivers_closed_.load(std::memory_order_acquire) || (rails_.empty() && is_quiet());
  for (const auto& rail : rails_) {
    is_drained = is_drained && rail->driver().is_drained();
  }
  return is_drained;
}

void TransportCore::on_packet(std::uint16_t rail, std::uint32_t from_node, Packet packet) noexcept {
  if (from_node >= limits_.node_count) {
    return;
  }
  if (bond_ != nullptr) {
    packet = bond_->has(from_node) ? bond_->take(rail, from_node, packet) : packet;
    if (packet.empty() || (packet.size() < kMeasuredPacketBytes && accept_plain(packet))) {
      return;
    }
  }
  // How fast packets are read here stands for how fast the peer reads ours, or is told to the peer.
  // Now and then: a look at the clock is a good part of what a short packet takes.
  const bool is_measured = packet.size() >= kMeasuredPacketBytes && --packets_until_measure_ == 0;
  if (!is_measured) [[likely]] {
    accept_packet(from_node, packet);
    return;
  }
  packets_until_measure_ = kMeasureEvery;
  const std::uint32_t unpacked = laid_out_copies();
  const std::uint64_t start_ns = clock_.now_ns();
  accept_packet(from_node, packet);
  Gate& gate = gates_[from_node];
  const Channel* const channel = gate.channel();
  if (!gate.is_direct() || channel == nullptr || unpacked != laid_out_copies()) {
    return;  // Without a direct copy there is nothing to choose by it.
  }
  const bool is_as_ours = channel->is_read_as_ours();
  if (is_as_ours || gate.only_receives()) {
    gate.measured_reading(packet.size(), clock_.now_ns() - start_ns, is_as_ours);
  }
}

void TransportCore::accept_packet(std::uint32_t from_node, Packet packet) noexcept {
  if (packet.size() >= kMeasuredPacketBytes &&
      (is_of_nodes(packet) ? accept_whole(from_node, packet) : accept_plain(packet))) {
    return;
  }
  std::span<const std::byte> rest = packet;
  Frame frame;
  for (;;) {
    switch (decode_frame(rest, limits_, frame)) {
      case DecodeState::frame:
        break;
      case DecodeState::end:
        return;
      case DecodeState::malformed:
        counters_.malformed.add();
        log_.error("a packet of node {} breaks the format, {} of its {} bytes were dropped",
                   from_node, rest.size(), packet.size());
        return;
    }
    if (frame.header.kind >= FrameKind::node) [[unlikely]] {
      accept_node_frame(from_node, frame);
    } else {
      deliver(from_node, frame);
    }
  }
}

}  // namespace sterna::net
