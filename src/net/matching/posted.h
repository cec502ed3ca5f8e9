// The posted receive that a message is for. Under the lock of the receiver.
#pragma once

#include "net/core.h"
#include "net/matching/matching.h"

namespace sterna::net {

/// The oldest one that fits, in no list any more, for a message that its sender does not write by
/// itself; null: none.
[[gnu::always_inline]] inline RecvRequest* TransportCore::take_posted(
    RankEntry& entry, Endpoint& at, Pattern exact, std::uint32_t sequence_after) noexcept {
  RecvRequest* const request = take_receive(at, exact);
  if (request == nullptr || !request->may_be_written) [[likely]] {
    return request;
  }
  return take_written(entry, at, *request, exact, sequence_after);
}

}  // namespace sterna::net
