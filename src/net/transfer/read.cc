// Announced messages that the receiver's node reads by itself from the memory of the sender's
// process: one message less on the way than when the sender's node writes, and the sender may
// compute meanwhile. Short ones in one go, others in parts, from poll().
//
// The receive belongs to nobody else meanwhile, and its rank is pinned. The sender is an ordinary
// process, whose bytes stay where they are until it gets an answer.
//
// A sender that computed when the read began, and waits before it ends, could as well send: then
// both copy at a time. So the rest goes in packets, where those are the faster way: `clear` says
// from where.
#include <algorithm>

#include "net/core.h"

namespace sterna::net {

void TransportCore::read_remote(std::uint32_t rank, Outcome& outcome) noexcept {
  RecvRequest& request = *outcome.read.request;
  const std::uint64_t bytes = request.envelope.bytes;
  const std::uint32_t route = ranks_[request.envelope.source].route.load(std::memory_order_relaxed);
  const bool is_possible = route != RankEntry::kNoRoute && gates_[route].is_direct();
  if (!is_possible || (bytes <= kReadAtOnceBytesMax && !outcome.read.is_for_wait)) {
    std::uint64_t took_ns = 0;
    const bool is_measured = is_possible && gates_[route].lessons().is_read_next(bytes);
    const bool is_read =
        is_possible && read_part(gates_[route], request, outcome.read.address, 0, bytes,
                                 is_measured ? &took_ns : nullptr) == ReadState::read;
    finish_read(rank, request, outcome.read.send_id, is_read ? bytes : 0, took_ns);
    return;
  }
  auto* job = new TransferJob;
  job->gate = &gates_[route];
  job->node = route;
  job->header.destination = rank;
  job->header.cookie = outcome.read.send_id;
  job->total_bytes = bytes;
  job->read = &request;
  job->address = outcome.read.address;
  const Channel* const channel = job->gate->channel();
  job->may_turn = channel != nullptr && channel->peer_is() != PeerIs::at_hand;
  submit(job);
}

ReadState TransportCore::read_part(Gate& gate, const RecvRequest& request, std::uint64_t address,
                                   std::uint64_t offset, std::uint64_t bytes,
                                   std::uint64_t* took_ns) noexcept {
  Channel* const channel = gate.channel();
  if (channel == nullptr) {
    return ReadState::impossible;
  }
  if (bytes == 0) {
    return ReadState::read;
  }
  const Layout* const layout = request.data.layout();
  const bool is_measured = took_ns != nullptr && layout == nullptr;
  const std::uint64_t start_ns = is_measured ? clock_.now_ns() : 0;
  const RemotePiece from{address + offset, bytes};
  const Result<> read = layout != nullptr
                            ? read_into(*layout, offset, from, *channel)
                            : channel->read_remote(request.data.address + offset, from);
  if (read) {
    if (is_measured) {
      const std::uint64_t ns = clock_.now_ns() - start_ns;
      gate.measured_direct(bytes, ns);
      *took_ns += ns;
    }
    return ReadState::read;
  }
  if (read.error().code == Errc::closed) {
    return ReadState::lost;
  }
  if (read.error().code == Errc::unsupported) {
    return ReadState::impossible;  // Known since the way was opened.
  }
  log_.warn("direct copy from the node of rank {} failed, it shall send: {}",
            request.envelope.source, read.error().text);
  return ReadState::impossible;
}

/// True: the job has ended. A peer that is gone is told of by its driver, which ends the job.
bool TransportCore::step_read(TransferJob& job) noexcept {
  const Channel* const channel = job.gate->channel();
  const std::uint64_t now_ns = clock_.now_ns();
  if (channel != nullptr && turns_to_packets(job, *channel, now_ns)) {
    job.has_turned = true;
    return true;
  }
  const std::uint64_t bytes = direct_step_bytes(job, options_.chunk_bytes, now_ns);
  switch (read_part(*job.gate, *job.read, job.address, job.offset, bytes, &job.read_ns)) {
    case ReadState::read:
      job.offset += bytes;
      if (job.offset != job.total_bytes) {
        return false;
      }
      direct_ended(job, *channel, clock_.now_ns());
      return true;
    case ReadState::lost:
      return false;
    case ReadState::impossible:
      return true;
  }
  return true;
}

void TransportCore::end_read(const TransferJob& job, Fault fault) noexcept {
  const std::uint32_t rank = job.header.destination;
  if (fault == Fault::none) {
    const bool is_kept = job.has_turned || job.offset == job.total_bytes;
    finish_read(rank, *job.read, job.header.cookie, is_kept ? job.offset : 0, job.read_ns);
    return;
  }
  RankEntry& entry = ranks_[rank];
  const threads::OwnedGuard guard{entry.lock};
  --entry.pins;
  job.read->fault = fault;
  job.read->state = RecvRequest::State::idle;
  job.read->done.complete();
}

/// Not all was read: the sender's node shall send the rest. All: it learns how long that took, by
/// which it chooses.
void TransportCore::finish_read(std::uint32_t rank, RecvRequest& request, std::uint64_t send_id,
                                std::uint64_t read_bytes, std::uint64_t took_ns) noexcept {
  const std::uint32_t source = request.envelope.source;
  RankEntry& entry = ranks_[rank];
  Outcome answers;
  {
    const threads::OwnedGuard guard{entry.lock};
    --entry.pins;
    Endpoint& at = *entry.endpoint;
    counters_.direct_bytes.add(read_bytes);
    if (read_bytes == request.envelope.bytes) {
      answer_matched(at, source, send_id, answers, took_ns);
      request.state = RecvRequest::State::idle;
      request.done.complete();
    } else {
      Message announced;
      announced.send_id = send_id;
      request.received_bytes = read_bytes;
      clear_to_send(entry, at, request, announced, true, answers);
    }
  }
  act(rank, answers);
}

/// The sender chooses how its messages go, and the receiver knows what reading them costs, out of
/// packets as well.
void TransportCore::learn_read(const FrameHeader& matched, std::uint64_t bytes) noexcept {
  const std::uint32_t route = ranks_[matched.source].route.load(std::memory_order_relaxed);
  if (matched.total_bytes != 0 && route != RankEntry::kNoRoute && gates_[route].is_direct()) {
    gates_[route].measured_direct(bytes, matched.total_bytes);
    gates_[route].told_reading(matched.context);
  }
}

}  // namespace sterna::net
