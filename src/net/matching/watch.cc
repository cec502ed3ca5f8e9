// Probes that wait for a message: told of it when it begins to wait for its receive.
#include "net/matching/matching.h"

namespace sterna::net {
namespace {

bool is_wanted(const MessageWatch& watch, const Envelope& come) noexcept {
  const Pattern& wanted = watch.pattern;
  return wanted.context == come.context &&
         (wanted.source == kAnySource || wanted.source == come.source) &&
         (wanted.tag == kAnyTag ||
          ((static_cast<std::uint32_t>(wanted.tag) ^ static_cast<std::uint32_t>(come.tag)) &
           watch.mask) == 0);
}

}  // namespace

void list_watch(Endpoint& endpoint, MessageWatch& watch, const MaskedPattern& wanted) noexcept {
  watch.done.reset();
  watch.pattern = wanted.pattern;
  watch.mask = wanted.mask;
  watch.must_look_again = endpoint.holder_count != 0;
  watch.is_listed = true;
  watch.next = endpoint.watches;
  endpoint.watches = &watch;
}

void unlist_watch(Endpoint& endpoint, MessageWatch& watch) noexcept {
  if (!watch.is_listed) {
    return;
  }
  MessageWatch** place = &endpoint.watches;
  while (*place != &watch) {
    place = &(*place)->next;
  }
  *place = watch.next;
  watch.is_listed = false;
}

void tell_watches(Endpoint& endpoint, const Envelope* come) noexcept {
  MessageWatch** place = &endpoint.watches;
  while (MessageWatch* const watch = *place) {
    if (come != nullptr && !is_wanted(*watch, *come)) {
      place = &watch->next;
      continue;
    }
    *place = watch->next;
    watch->is_listed = false;
    watch->done.complete();  // Its memory is the waiter's from here on.
  }
}

}  // namespace sterna::net
