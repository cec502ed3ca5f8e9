// Probes that wait for a message: told of it when it begins to wait for its receive.
#include "net/matching/held.h"
#include "net/matching/matching.h"

namespace sterna::net {

void list_watch(Endpoint& endpoint, MessageWatch& watch, const MaskedPattern& wanted) noexcept {
  watch.done.reset();
  watch.pattern = wanted.pattern;
  watch.mask = wanted.pattern.tag == kAnyTag ? 0 : wanted.mask;
  watch.must_look_again = endpoint.holder_count != 0 && !are_all_asked(endpoint, wanted);
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
    if (come != nullptr &&
        !fits({watch->pattern, watch->mask}, {come->source, come->context, come->tag})) {
      place = &watch->next;
      continue;
    }
    *place = watch->next;
    watch->is_listed = false;
    watch->done.complete();  // Its memory is the waiter's from here on.
  }
}

}  // namespace sterna::net
