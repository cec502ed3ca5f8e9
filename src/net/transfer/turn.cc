// Direct copies that go on in packets, where the peer's program has come back and can help.
#include <algorithm>

#include "net/matching/gate.h"
#include "net/transfer/job.h"

namespace sterna::net {
namespace {

// Between two looks whether a peer whose memory is written or read waits by now; at least.
constexpr std::uint32_t kTurnedBytesMin = 128 << 10;

/// What is at least as long is copied directly to its end.
std::uint64_t direct_from_bytes(const TransferJob& job) noexcept {
  return job.read != nullptr ? job.gate->direct_thresholds().when_read()
                             : job.gate->direct_from_bytes();
}

/// Else it goes directly to its end, whoever comes back.
bool is_looked_at(const TransferJob& job) noexcept {
  return job.may_turn && job.total_bytes < direct_from_bytes(job);
}

}  // namespace

/// A copy of all bytes by one side costs a peer whose program computes nothing. When it waits again
/// it could help: the rest goes in packets, where those are the faster way.
bool turns_to_packets(const TransferJob& job, const Channel& channel,
                      std::uint64_t now_ns) noexcept {
  const std::uint64_t left = job.total_bytes - job.offset;
  const bool turns = job.may_turn && left >= kTurnedBytesMin &&
                     left < direct_from_bytes(job) &&
                     channel.peer_is() == PeerIs::at_hand &&
                     (!job.is_invited || job.gate->is_empty());
  if (turns) {
    job.gate->stay_habit().stayed(now_ns - job.started_ns);
  }
  return turns;
}

std::uint64_t direct_step_bytes(const TransferJob& job, std::uint32_t chunk_bytes,
                                std::uint64_t now_ns) noexcept {
  const std::uint64_t left = job.total_bytes - job.offset;
  if (!is_looked_at(job)) {
    return std::min<std::uint64_t>(left, chunk_bytes);
  }
  const std::uint64_t part =
      job.gate->stay_habit().part_bytes(job.offset, now_ns - job.started_ns,
                                        std::min(chunk_bytes, kTurnedBytesMin), chunk_bytes);
  return std::min(left, part);
}

void direct_ended(const TransferJob& job, const Channel& channel, std::uint64_t now_ns) noexcept {
  if (is_looked_at(job)) {
    job.gate->stay_habit().stayed(channel.peer_is() == PeerIs::at_hand ? now_ns - job.started_ns
                                                                       : StayHabit::kForever);
  }
}

}  // namespace sterna::net
