// Looking for messages without receiving them.
#include <cstring>

#include "net/core.h"
#include "net/matching/matching.h"
#include "net/matching/plain.h"
#include "net/matching/receiving.h"

namespace sterna::net {
namespace {

bool fits(const MaskedPattern& wanted, const FrameHeader& header) noexcept {
  return net::fits(wanted, Pattern{header.source, header.context, header.tag});
}

/// Whether a packet that has come is the next message of its sender, whole and of the plain kind,
/// and fits. It stays where it is: who receives it next takes it from there (short.cc), and else
/// the next poll does.
template <typename Wanted>
bool is_wanted_here(const Endpoint& at, const Wanted& wanted, Packet packet, std::uint32_t window,
                    Envelope& found) noexcept {
  FrameHeader header;
  if (packet.size() < kHeaderBytes) {
    return false;
  }
  std::memcpy(&header, packet.data(), kHeaderBytes);
  if (!is_plain(header, packet.size()) || header.destination != at.rank ||
      !fits(wanted, header) || find_plain_peer(at, header, window) == nullptr) {
    return false;
  }
  found = {header.source, header.context, header.tag, header.total_bytes};
  return true;
}

}  // namespace

/// Whether one that fits has come, or is known to be kept by its sender. `taken`, if it is asked
/// for: the message, which only receive_matched() gets. `watch`, if there is none: is told of one;
/// its owner waits.
template <typename Wanted>
bool TransportCore::look_for(Endpoint& at, const Wanted& wanted, Message** taken, Envelope& found,
                             MessageWatch* watch) noexcept {
  RankEntry& entry = ranks_[at.rank];
  if (taken == nullptr && is_serial_ && at.is_fixed && may_look(at) && count_look()) {
    const bool waits = watch != nullptr && (has_company_ == nullptr || !*has_company_);
    if (watch != nullptr && habits_.is_open()) [[unlikely]] {
      habits_.waits(clock_.now_ns());
    }
    if (Driver::Sight seen; looked_at_->sight(waits ? looks_max_ : 0, seen)) {
      const threads::AloneGuard guard{entry.lock};
      if (is_wanted_here(at, wanted, seen.packet, options_.eager_window_bytes, found)) {
        return true;
      }
    } else if (watch == nullptr && at.holder_count == 0) {
      return false;  // Nothing waits, here or elsewhere, and nothing has come.
    }
  }
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
