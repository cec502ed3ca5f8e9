// Looking for messages without receiving them.
#include "net/core.h"
#include "net/matching/matching.h"

namespace sterna::net {

/// Null: none that fits has come. Taken: only receive_matched() gets it.
template <typename Wanted>
Message* TransportCore::look_for(Endpoint& at, const Wanted& wanted, bool is_taken,
                                 Envelope& found) noexcept {
  RankEntry& entry = ranks_[at.rank];
  const threads::OwnedGuard guard{entry.lock};
  Message* message = is_taken ? take_message(at, wanted) : find_message(at, wanted);
  if (message != nullptr) {
    found = message->envelope;
  }
  return message;
}
template Message* TransportCore::look_for(Endpoint&, const Pattern&, bool, Envelope&) noexcept;
template Message* TransportCore::look_for(Endpoint&, const MaskedPattern&, bool,
                                          Envelope&) noexcept;

}  // namespace sterna::net
