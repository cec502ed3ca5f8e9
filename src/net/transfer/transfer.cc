// Transfers of large messages, once receiver and sender have found each other: copied within the
// node, written directly on the host, or sent in data frames; in parts, from poll().
#include "net/buffer.h"
#include "net/core.h"
#include "net/peer.h"

namespace sterna::net {
namespace {

/// All goes in data frames: the receiver counts the bytes of those, and of a head, only.
void go_in_frames(TransferJob& job) noexcept {
  job.remote.clear();
  job.offset = job.begin;
}

/// The system does not let us write there, neither this message nor the next ones. If it lets us
/// read (nothing, to ask), messages of a rank that never moves still go directly, and cost that.
void forget_writes(TransferJob& job, Channel& channel, bool has_fixed_rank) noexcept {
  if (!has_fixed_rank || !channel.read_remote(nullptr, {0, 0})) {
    job.gate->lose_direct();
  }
  go_in_frames(job);
}

// In a frame of who sends in the place of a program that comes back sooner than all has been sent:
// it then waits until a frame is with the network, and could as well send the next one itself while
// its peer reads.
constexpr std::uint32_t kInPlaceBytes = 512 << 10;

}  // namespace

void TransportCore::start_transfer(std::uint32_t rank, Outcome& outcome) noexcept {
  SendRequest& send = *outcome.cleared;
  const ClearPayload& clear = outcome.clear;
  const std::uint32_t to_rank = outcome.cleared_by;
  if (clear.node == node_) {
    // A head that is the whole message has ended its receive, or will, where that is now.
    if (send.head_bytes != 0 && clear.begin == clear.bytes_max && clear.begin != 0) {
      end_send(rank, send, Fault::none);
    } else {
      copy_local(rank, to_rank, send, clear.receive_id);
    }
    return;
  }
  Gate& gate = gates_[clear.node];
  if (outcome.cleared->head_bytes != 0) {
    gate.heads().ended(clear.begin != 0);
    counters_.data_bytes.add(clear.begin);
    if (clear.begin == clear.bytes_max && clear.begin != 0) {
      end_send(rank, send, Fault::none);
      return;
    }
  }
  auto* job = new TransferJob;
  job->gate = &gate;
  job->node = clear.node;
  job->header.kind = FrameKind::data;
  job->header.source = rank;
  job->header.destination = to_rank;
  job->header.cookie = clear.receive_id;
  job->header.priority = send.target.priority;
  job->header.context = send.target.context;  // For strategies: no receiver reads these two.
  job->header.tag = send.target.tag;
  job->finish_kind = FrameKind::finish;
  job->local = send.data;
  job->total_bytes = clear.bytes_max;
  job->is_invited = outcome.is_invited;
  // Who awaits a head counts its bytes, too; and a trial of direct writes is to measure them.
  job->may_turn = clear.begin == 0 && !send.is_trial;
  // Packets wait for somebody who takes them.
  const bool is_chosen = job->total_bytes >= job->gate->direct_from_bytes();
  const bool is_away = outcome.is_away && job->gate->is_direct();
  // What is packed first goes in packets, while the peer reads those before, if it looks.
  const bool is_written = is_chosen != send.is_trial && send.data.layout() == nullptr;
  if (outcome.is_invited || is_away || is_written) {
    job->remote.assign(outcome.extents.pieces, outcome.extents.pieces + outcome.extents.count);
  }
  // Direct writes are told of by `finish`, which would not wait for a head that is still on its
  // way.
  job->begin = clear.begin;
  job->offset = job->remote.empty() ? job->begin : 0;
  job->send = &send;
  submit(job);
}

/// Both ranks are pinned. The addresses are those of the receive itself, not of the frame.
void TransportCore::copy_local(std::uint32_t rank, std::uint32_t to_rank, SendRequest& send,
                               std::uint64_t receive_id) noexcept {
  RankEntry& entry = ranks_[to_rank];
  RecvRequest* receive = nullptr;
  {
    const threads::OwnedGuard guard{entry.lock};
    if (entry.state == RankState::here) {
      receive = static_cast<RecvRequest*>(
          find_pending(*entry.endpoint, receive_id, PendingEntry::Kind::receive, rank));
    }
  }
  if (receive == nullptr) {
    log_.error("rank {} cleared a message of rank {} for a receive that does not wait", to_rank,
               rank);
    end_send(rank, send, Fault::peer_lost);
    return;
  }
  copy_between(receive->data, send.data, receive->envelope.bytes);
  counters_.direct_bytes.add(receive->envelope.bytes);
  {
    const threads::OwnedGuard guard{entry.lock};
    finish_receive(entry, *entry.endpoint, *receive, Fault::none);
  }
  end_send(rank, send, Fault::none);
}

void TransportCore::end_send(std::uint32_t rank, SendRequest& send, Fault fault) noexcept {
  RankEntry& entry = ranks_[rank];
  const threads::OwnedGuard guard{entry.lock};
  --entry.pins;
  send.fault = fault;
  send.done.complete();
}

void TransportCore::submit(TransferJob* job) noexcept {
  // Relaxed: the queue publishes the job, this only says whether to look.
  job_count_.fetch_add(1, std::memory_order_relaxed);
  sending_jobs_.fetch_add(job->send != nullptr ? 1 : 0, std::memory_order_relaxed);
  new_jobs_.push(*job);
  wake();
}

std::uint32_t TransportCore::advance_jobs() noexcept {
  if (job_count_.load(std::memory_order_relaxed) == 0 || are_copies_left_) [[likely]] {
    return 0;
  }
  std::uint32_t lending = 0;
  while (TransferJob* job = new_jobs_.pop()) {
    job->started_ns = clock_.now_ns();
    take_in(job);
  }
  std::uint32_t count = send_together();
  for (std::size_t i = 0; i < jobs_.size();) {
    TransferJob* job = jobs_[i];
    const std::uint64_t before = job->offset;
    const bool is_withdrawn =
        job->bulk != nullptr && job->bulk->is_withdrawn.load(std::memory_order_relaxed);
    const bool has_ended = is_withdrawn || (!waits_for_others(i) && step(*job));
    if (job->bulk != nullptr) {
      job->bulk->sent_bytes.store(job->offset, std::memory_order_relaxed);
    }
    count += has_ended || job->offset != before ? 1 : 0;
    if (has_ended) {
      jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i));
      urgent_jobs_ -= job->header.priority != 0 ? 1 : 0;
      job_count_.fetch_sub(1, std::memory_order_relaxed);
      end_job(job, job->gate->is_lost() ? Fault::peer_lost
                   : is_withdrawn       ? Fault::cancelled
                                        : Fault::none);
    } else {
      const Loans* const loans = job->loans.get();
      lending += loans != nullptr && !loans->is_over && loans->under_way != 0 ? 1 : 0;
      ++i;
    }
  }
  lending_jobs_.store(lending, std::memory_order_relaxed);
  return count;
}

/// Before those of lower priority, but for those that kOvertakenMax have overtaken.
void TransportCore::take_in(TransferJob* job) noexcept {
  if (!jobs_.empty()) {
    job->is_alone = jobs_.front()->is_alone = false;  // Of two or more none is.
  }
  std::size_t place = jobs_.size();
  while (place != 0 && jobs_[place - 1]->header.priority < job->header.priority &&
         jobs_[place - 1]->overtaken < kOvertakenMax) {
    --place;
    jobs_[place]->overtaken += jobs_[place]->node == job->node ? 1 : 0;
  }
  jobs_.insert(jobs_.begin() + static_cast<std::ptrdiff_t>(place), job);
  urgent_jobs_ += job->header.priority != 0 ? 1 : 0;
}

/// Another one of higher priority, in front of it, goes to the same node. It ends: with its bytes,
/// or its peer.
bool TransportCore::waits_for_others(std::size_t index) const noexcept {
  const TransferJob& job = *jobs_[index];
  for (std::size_t i = 0; urgent_jobs_ != 0 && i < index; ++i) {
    if (jobs_[i]->node == job.node && jobs_[i]->header.priority > job.header.priority) {
      return true;
    }
  }
  return false;
}

bool TransportCore::step(TransferJob& job) noexcept {
  if (!job.gate->is_open() || job.gate->is_lost()) {
    return true;
  }
  if (job.read != nullptr) {
    return step_read(job);
  }
  if (!job.remote.empty()) {
    Channel* channel = job.gate->channel();
    if (channel == nullptr) {
      return false;  // Somebody is opening it: the next poll will find it.
    }
    if (channel->can_write_remote()) {
      return step_direct(job, *channel);
    }
    forget_writes(job, *channel, invitations_.rank() != Invitations::kNoRank);
  }
  if (job.loans != nullptr || begin_loans(job)) {
    return step_loans(job);
  }
  return step_frames(job);
}

bool TransportCore::step_direct(TransferJob& job, Channel& channel) noexcept {
  const std::uint64_t now_ns = clock_.now_ns();
  if (turns_to_packets(job, channel, now_ns)) {
    FrameHeader written = job.header;  // What has been; the rest will come.
    written.kind = job.finish_kind;
    written.total_bytes = job.offset;
    if (job.offset == 0 || send_to_node(job.node, written, {})) {
      job.remote.clear();
      job.begin = job.offset;
      job.is_alone = false;  // What it takes is not what packets cost.
      return false;
    }
  }
  const std::uint64_t bytes = direct_step_bytes(job, options_.chunk_bytes, now_ns);
  std::array<Piece, kPacketPiecesMax> local;
  std::array<RemotePiece, kPacketPiecesMax> remote;
  std::uint64_t local_bytes = 0;
  std::uint64_t remote_bytes = 0;
  std::uint32_t remote_count = 0;
  std::uint64_t skip = job.offset;
  std::uint32_t local_count = job.pieces(job.offset, bytes, local, local_bytes);
  for (const RemotePiece& piece : job.remote) {
    if (skip >= piece.bytes) {
      skip -= piece.bytes;
      continue;
    }
    const std::uint64_t part = std::min(piece.bytes - skip, local_bytes - remote_bytes);
    if (part == 0 || remote_count == remote.size()) {
      break;
    }
    remote[remote_count++] = {piece.address + skip, part};
    remote_bytes += part;
    skip = 0;
  }
  if (remote_bytes < local_bytes) {  // Many small pieces there: as many bytes as they hold.
    local_count = job.pieces(job.offset, remote_bytes, local, local_bytes);
  }
  if (remote_bytes != 0) {
    if (Result<> written =
            channel.write_remote({local.data(), local_count}, {remote.data(), remote_count});
        !written) {
      if (written.error().code == Errc::closed) {
        return false;  // The driver will report the loss of the peer.
      }
      log_.warn("direct copy to node {} failed, using packets: {}", job.node, written.error().text);
      if (channel.can_write_remote()) {
        go_in_frames(job);  // This time; the next message tries again.
      } else {
        forget_writes(job, channel, invitations_.rank() != Invitations::kNoRank);
      }
      return false;
    }
    const std::uint64_t end_ns = clock_.now_ns();
    if (job.local.layout() == nullptr) {
      job.gate->measured_direct(remote_bytes, end_ns - now_ns);
    }
    counters_.direct_bytes.add(remote_bytes);
    job.offset += remote_bytes;
    if (job.offset == job.total_bytes) {
      direct_ended(job, channel, end_ns);
    }
  }
  if (job.offset < job.total_bytes) {
    return false;
  }
  FrameHeader finish = job.header;
  finish.kind = job.finish_kind;
  finish.total_bytes = job.total_bytes;
  (void)send_to_node(job.node, finish, {});
  return true;
}

bool TransportCore::step_frames(TransferJob& job) noexcept {
  if (job.is_invited && !job.gate->is_empty()) {
    return false;
  }
  // Filled and read by turns: what that takes is not what packets cost.
  job.is_alone = job.is_alone && !is_in_place_;
  if (job.total_bytes == 0) {
    FrameHeader finish = job.header;
    finish.kind = job.finish_kind;
    return send_to_node(job.node, finish, {}) || job.gate->is_lost();
  }
  // Whole frames: the rest of one would be a packet of its own.
  const FrameCut cut = cut_of(job);
  const std::uint64_t chunk_bytes =
      cut.is_in_place
          ? cut.payload_max
          : std::max(options_.chunk_bytes / cut.payload_max * cut.payload_max, cut.payload_max);
  const std::uint64_t stop =
      job.offset + std::min<std::uint64_t>(job.total_bytes - job.offset, chunk_bytes);
  return send_frames(job, job.offset, stop, cut.payload_max) == SendState::closed ||
         job.offset == job.total_bytes;
}

/// Over several rails a message is cut for all of them. Asks the cost model, under its lock: once
/// for frames that are sent together.
FrameCut TransportCore::cut_of(const TransferJob& job) const noexcept {
  const bool is_in_place = is_in_place_ && !is_left_whole(*job.gate, job.total_bytes);
  std::uint32_t most = job.gate->packet_bytes_max() - std::uint32_t{kHeaderBytes};
  most = is_in_place ? std::min(most, kInPlaceBytes) : most;
  const bool is_for_several = job.gate->has_several_rails();
  return {.payload_max =
              is_for_several ? job.gate->frame_bytes(job.total_bytes - job.begin, most) : most,
          .is_in_place = is_in_place};
}

SendState TransportCore::send_frames(TransferJob& job, std::uint64_t& offset, std::uint64_t end,
                                     std::uint64_t payload_max) noexcept {
  std::array<Piece, kPacketPiecesMax> pieces;
  const bool is_laid_out = job.local.layout() != nullptr;
  while (offset < end) {
    std::uint64_t taken = 0;
    const std::uint32_t count = job.pieces(offset, std::min(end - offset, payload_max),
                                           std::span{pieces}.subspan(1), taken);
    FrameHeader header = job.header;
    header.total_bytes = offset;
    header.payload_bytes = static_cast<std::uint32_t>(taken);
    pieces[0] = std::as_bytes(std::span{&header, 1});
    const std::span<const Piece> frame{pieces.data(), count + 1};
    // One that is alone is measured as a whole: end_job().
    const bool is_measured = !job.is_alone && !is_laid_out && !is_in_place_ &&
                             job.gate->is_direct() && frames_until_measure_-- == 0;
    const SendState state =
        is_measured ? send_measured(*job.gate, frame, taken) : job.gate->try_send(frame);
    if (state != SendState::accepted) {
      return state;
    }
    offset += taken;
    counters_.data_bytes.add(taken);
  }
  return SendState::accepted;
}

/// What packets cost where messages may be copied directly, too, by one of them: to fill it, while
/// there is room. To wait for who reads them is no more a part of that than of a direct copy.
SendState TransportCore::send_measured(Gate& gate, std::span<const Piece> frame,
                                       std::uint64_t bytes) noexcept {
  constexpr std::uint32_t kMeasureEvery = 8;
  const std::uint64_t start_ns = clock_.now_ns();
  const SendState state = gate.try_send(frame);
  frames_until_measure_ = kMeasureEvery - 1;
  const Channel& channel = *gate.open_channel();
  if (state == SendState::accepted && channel.is_settled() && !channel.is_receiver_behind()) {
    gate.measured_filling(bytes, clock_.now_ns() - start_ns, kMeasureEvery);
  }
  return state;
}

void TransportCore::end_job(TransferJob* job, Fault fault) noexcept {
  if (job->read != nullptr) {
    end_read(*job, fault);
    delete job;
    return;
  }
  sending_jobs_.fetch_sub(job->send != nullptr ? 1 : 0, std::memory_order_relaxed);
  const bool is_lent = job->loans != nullptr;
  job->loans.reset();  // Before their bytes are the sender's again.
  const Channel* const channel = job->gate->channel();
  if (fault == Fault::none && job->remote.empty() && !is_lent &&
      job->local.layout() == nullptr && channel != nullptr &&
      channel->is_settled() && (job->is_alone || !job->gate->is_direct())) {
    // With what it waited for its receiver: nobody else was on the way.
    job->gate->measured_filling(job->total_bytes - job->begin, clock_.now_ns() - job->started_ns,
                                1);
  }
  if (job->send != nullptr) {
    end_send(job->header.source, *job->send, fault);
  } else {
    job->bulk->fault = fault;
    job->bulk->done.complete();
  }
  delete job;
}

}  // namespace sterna::net
