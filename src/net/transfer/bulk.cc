// Large copies between nodes: the receiver says where (a landing), the sender writes or sends
// there.
#include "net/buffer.h"
#include "net/core.h"

namespace sterna::net {

void TransportCore::expect_bulk(std::uint32_t from_node, std::span<const Extent> extents,
                                Landing& landing) noexcept {
  landing.done.reset();
  landing.fault = Fault::none;
  landing.received_bytes = 0;
  LandingState state{&landing, from_node, {extents.begin(), extents.end()}, 0};
  for (const Extent& extent : extents) {
    state.total_bytes += extent.bytes;
  }
  const SpinGuard guard{landings_lock_};
  landing.id = next_landing_++;
  landings_.emplace(landing.id, std::move(state));
}

bool TransportCore::withdraw_bulk(Landing& landing) noexcept {
  const SpinGuard guard{landings_lock_};
  return landings_.erase(landing.id) != 0;
}

void TransportCore::bulk_send(std::uint32_t to_node, std::uint64_t landing_id,
                              std::span<const Extent> local, std::span<const RemotePiece> remote,
                              BulkSend& request) noexcept {
  check(to_node < limits_.node_count && to_node != node_, "a large copy goes to another node");
  request.done.reset();
  request.fault = Fault::none;
  request.sent_bytes.store(0, std::memory_order_relaxed);
  request.is_withdrawn.store(false, std::memory_order_relaxed);
  auto* job = new TransferJob;
  job->gate = &gates_[to_node];
  job->node = to_node;
  job->header.kind = FrameKind::bulk;
  job->header.source = node_;
  job->header.destination = to_node;
  job->header.cookie = landing_id;
  job->finish_kind = FrameKind::bulk_finish;
  job->extents.assign(local.begin(), local.end());
  for (const Extent& extent : local) {
    job->total_bytes += extent.bytes;
  }
  job->local = {nullptr, job->total_bytes, job->extents.data(),
                static_cast<std::uint32_t>(job->extents.size())};
  job->remote.assign(remote.begin(), remote.end());
  job->bulk = &request;
  submit(job);
}

void TransportCore::accept_bulk(std::uint32_t from_node, const Frame& frame) noexcept {
  const FrameHeader& header = frame.header;
  const SpinGuard guard{landings_lock_};
  const auto found = landings_.find(header.cookie);
  if (found == landings_.end() || found->second.from_node != from_node) {
    refuse(header, "nobody expects its bytes");  // Withdrawn, perhaps.
    return;
  }
  LandingState& state = found->second;
  Landing& landing = *state.landing;
  if (header.kind == FrameKind::bulk) {
    if (header.payload_bytes > state.total_bytes ||
        header.total_bytes > state.total_bytes - header.payload_bytes) {
      refuse(header, "its bytes lie outside of the memory that expects them");
      return;
    }
    const Buffer buffer{nullptr, state.total_bytes, state.extents.data(),
                        static_cast<std::uint32_t>(state.extents.size())};
    copy_in(buffer, header.total_bytes, frame.payload.data(), frame.payload.size());
    landing.received_bytes += frame.payload.size();
    if (landing.received_bytes < state.total_bytes) {
      return;
    }
  }
  landing.received_bytes = state.total_bytes;
  landings_.erase(found);
  landing.done.complete();
}

void TransportCore::fail_landings(std::uint32_t node) noexcept {
  const SpinGuard guard{landings_lock_};
  for (auto next = landings_.begin(); next != landings_.end();) {
    if (next->second.from_node == node) {
      Landing& landing = *next->second.landing;
      next = landings_.erase(next);
      landing.fault = Fault::peer_lost;
      landing.done.complete();
    } else {
      ++next;
    }
  }
}

}  // namespace sterna::net
