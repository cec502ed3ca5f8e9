// What probes find among messages that their sender keeps: held.h says what it means.
#include "net/matching/held.h"

namespace sterna::net {
namespace {

constexpr std::uint8_t kTimesPassedMax = 8;

bool is_clear(const Hold& hold) noexcept {
  return hold.asker == nullptr && hold.next_asker == nullptr;
}

bool is_same_search(const Hold& hold, const MaskedPattern& wanted) noexcept {
  return hold.sought.context == wanted.pattern.context && hold.sought.tag == wanted.pattern.tag &&
         hold.sought_mask == wanted.mask;
}

bool may_be_of(const MaskedPattern& wanted, const Peer& peer) noexcept {
  return wanted.pattern.source == kAnySource || wanted.pattern.source == peer.rank;
}

/// What was sighted there is the first that fits.
bool is_sighted(const Hold& hold, const MaskedPattern& wanted) noexcept {
  return hold.sight == Hold::Sight::seen && hold.seen.context == wanted.pattern.context &&
         (is_same_search(hold, wanted) ||
          (wanted.mask == kWholeTag && wanted.pattern.tag == hold.seen.tag));
}

}  // namespace

Hold* sight(Endpoint& at, const MaskedPattern& wanted) noexcept {
  for (Peer* peer = at.holders; peer != nullptr; peer = peer->hold->next_holder) {
    Hold& hold = *peer->hold;
    if (!may_be_of(wanted, *peer)) {
      continue;
    }
    const bool is_it = is_sighted(hold, wanted);
    if (is_it && is_clear(hold)) {
      return &hold;
    }
    const bool is_other = hold.sight == Hold::Sight::seen && !is_it;
    if (hold.sight == Hold::Sight::nothing ||
        (is_other && ++hold.times_passed >= kTimesPassedMax)) {
      hold.sight = Hold::Sight::wanted;
      hold.sought = wanted.pattern;
      hold.sought_mask = wanted.mask;
      want_to_ask(at, *peer);
    }
  }
  return nullptr;
}

Hold* find_sighted(Endpoint& at, const MaskedPattern& wanted) noexcept {
  for (Peer* peer = at.holders; peer != nullptr; peer = peer->hold->next_holder) {
    Hold& hold = *peer->hold;
    if (may_be_of(wanted, *peer) && is_sighted(hold, wanted) && is_clear(hold)) {
      return &hold;
    }
  }
  return nullptr;
}

bool are_all_asked(const Endpoint& at, const MaskedPattern& wanted) noexcept {
  for (const Peer* peer = at.holders; peer != nullptr; peer = peer->hold->next_holder) {
    const Hold& hold = *peer->hold;
    const bool is_asked = hold.sight == Hold::Sight::wanted || hold.sight == Hold::Sight::asked;
    if (may_be_of(wanted, *peer) && !(is_asked && is_same_search(hold, wanted))) {
      return false;
    }
  }
  return true;
}

}  // namespace sterna::net
