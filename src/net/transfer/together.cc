// The last data frames of several messages to one node, in one call of its channel: over sockets it
// is each call that costs (docs/drivers/tcp.md).
//
// Only of messages that follow each other among the jobs, whose rest fits a packet with that of its
// neighbours. What a call leaves goes as ever.
#include <array>

#include "net/buffer.h"
#include "net/core.h"

namespace sterna::net {
namespace {

/// Goes in data frames only, from one piece of memory that nobody withdraws.
bool is_plain(const TransferJob& job) noexcept {
  return job.send != nullptr && job.remote.empty() && job.loans == nullptr && !job.is_invited &&
         job.local.extents == nullptr && job.offset < job.total_bytes;
}

}  // namespace

std::uint32_t TransportCore::send_together() noexcept {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i + 1 < jobs_.size();) {
    i = send_some_together(i, count);
  }
  return count;
}

/// From the job at `first` on. Returns the next one to begin at; `count`: frames that have gone.
std::size_t TransportCore::send_some_together(std::size_t first, std::uint32_t& count) noexcept {
  Gate& gate = *jobs_[first]->gate;
  if (!gate.is_open() || gate.is_lost() || jobs_[first + 1]->gate != &gate) {
    return first + 1;
  }
  const Channel* const channel = gate.channel();
  if (channel == nullptr || !channel->gains_by_several()) {
    return first + 1;
  }
  std::array<FrameHeader, kPacketsAtOnceMax> headers;
  std::array<std::array<Piece, 2>, kPacketsAtOnceMax> pieces;
  std::array<std::span<const Piece>, kPacketsAtOnceMax> frames;
  std::uint64_t room = gate.packet_bytes_max();
  std::size_t taken = 0;
  for (std::size_t i = first; i < jobs_.size() && taken < kPacketsAtOnceMax; ++i) {
    const TransferJob& job = *jobs_[i];
    const std::uint64_t bytes = job.total_bytes - job.offset;
    if (job.gate != &gate || !is_plain(job) || bytes + kHeaderBytes > room || waits_for_others(i)) {
      break;
    }
    room -= bytes + kHeaderBytes;
    headers[taken] = job.header;
    headers[taken].total_bytes = job.offset;
    headers[taken].payload_bytes = static_cast<std::uint32_t>(bytes);
    pieces[taken] = {std::as_bytes(std::span{&headers[taken], 1}),
                     Piece{job.local.address + job.offset, bytes}};
    frames[taken] = pieces[taken];
    ++taken;
  }
  if (taken < 2) {
    return first + 1;
  }
  SendState state;
  const std::size_t sent = gate.try_send({frames.data(), taken}, state);
  for (std::size_t i = 0; i < sent; ++i) {
    jobs_[first + i]->offset += headers[i].payload_bytes;
    counters_.data_bytes.add(headers[i].payload_bytes);
  }
  count += static_cast<std::uint32_t>(sent);
  std::size_t next = first + taken;
  while (sent != taken && next < jobs_.size() && jobs_[next]->gate == &gate) {
    ++next;  // There is no room now.
  }
  return next;
}

}  // namespace sterna::net
