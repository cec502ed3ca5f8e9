// Looking for messages without receiving them.
#include "net/core.h"
#include "net/matching/held.h"
#include "net/matching/matching.h"

namespace sterna::net {
namespace {

const MaskedPattern& masked(const MaskedPattern& wanted) noexcept {
  return wanted;
}
MaskedPattern masked(const Pattern& wanted) noexcept {
  return {wanted, kWholeTag};
}

}  // namespace

/// Whether one that fits has come, or is known to be kept by its sender. `taken`, if it is asked
/// for: the message, which only receive_matched() gets. `watch`, if there is none: is told of one.
template <typename Wanted>
bool TransportCore::look_for(Endpoint& at, const Wanted& wanted, Message** taken, Envelope& found,
                             MessageWatch* watch) noexcept {
  RankEntry& entry = ranks_[at.rank];
  FrameHeader claim;
  bool is_found = false;
  bool is_claimed = false;
  bool has_kept = false;
  {
    const threads::OwnedGuard guard{entry.lock};
    Message* message = taken != nullptr ? take_message(at, wanted) : find_message(at, wanted);
    is_found = message != nullptr;
    if (is_found) {
      found = message->envelope;
    } else if (at.holder_count != 0) [[unlikely]] {
      Hold* const hold = look_elsewhere(at, wanted);
      message = hold != nullptr && taken != nullptr ? claim_seen(at, *hold, claim) : nullptr;
      is_claimed = message != nullptr;
      is_found = is_claimed || (hold != nullptr && taken == nullptr);
      found = is_found ? hold->seen : found;
      has_kept = has_kept_frames(at);
    }
    if (taken != nullptr) {
      *taken = message;
    }
    if (!is_found && watch != nullptr) {
      list_watch(at, *watch, masked(wanted));
    }
  }
  if (is_claimed) {
    (void)transmit(claim, Buffer{});
  }
  if (has_kept) {
    advance_kept(at.rank);
  }
  return is_found;
}
template bool TransportCore::look_for(Endpoint&, const Pattern&, Message**, Envelope&,
                                      MessageWatch*) noexcept;
template bool TransportCore::look_for(Endpoint&, const MaskedPattern&, Message**, Envelope&,
                                      MessageWatch*) noexcept;

}  // namespace sterna::net
