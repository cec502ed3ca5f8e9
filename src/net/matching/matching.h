// Matching of receives and messages in one Endpoint, as MPI orders it: a message goes to the oldest
// receive that fits, a receive takes the oldest message that fits. The cost does not depend on how
// many wait: receives lie in lanes, one for each pattern, and a message looks into the (at most
// four) lanes that fit it. Messages lie in the lane of their exact pattern, and in those of the
// other classes once a receive or a probe of that class has found nothing in front of it.
//
// Receives that compare some bits of the tag only are in a list of their own, which a message walks
// where there are any; they and probes of their kind walk the messages. The oldest that fits wins
// among all receives. Nothing is paid for them while there is none.
//
// All of it under the lock of the rank's RankEntry.
#pragma once

#include "net/endpoint.h"

namespace sterna::net {

inline constexpr std::uint32_t kPatternClasses = 4;
// Where receives with a mask count: those who look whether any receive is posted need not know
// them.
inline constexpr std::uint32_t kMaskedClass = kPatternClasses - 1;
inline constexpr std::uint32_t kSmallMessageBytes = 128;  // Payload within a recycled Message.

/// 0: exact; 1: any source; 2: any tag; 3: both.
[[nodiscard]] constexpr std::uint32_t class_of(const Pattern& pattern) noexcept {
  return (pattern.source == kAnySource ? 1U : 0U) | (pattern.tag == kAnyTag ? 2U : 0U);
}

[[nodiscard]] inline bool is_same(const Pattern& a, const Pattern& b) noexcept {
  return a.tag == b.tag && a.source == b.source && a.context == b.context;
}

/// The lanes that were looked for last, or null: they lie behind the buckets, and go with them.
/// Messages of one kind follow each other, or those of two threads, each of its own kind.
inline constexpr std::uint32_t kNearLanes = 2;
[[nodiscard]] inline Lane** near_lanes(const Endpoint& endpoint) noexcept {
  return endpoint.lanes + endpoint.lane_bucket_count;
}
/// One of them if it is that of this very pattern; else null, which says nothing.
[[nodiscard, gnu::always_inline]] inline Lane* find_near_lane(const Endpoint& endpoint,
                                                              const Pattern& key) noexcept {
  Lane* const* const near = endpoint.lanes != nullptr ? near_lanes(endpoint) : nullptr;
  if (near == nullptr || near[0] == nullptr) {
    return nullptr;
  }
  if (is_same(near[0]->key, key)) [[likely]] {
    return near[0];
  }
  return near[1] != nullptr && is_same(near[1]->key, key) ? near[1] : nullptr;
}

/// The receive waits, after all those posted before. False: no memory, nothing happened.
[[nodiscard]] bool post_receive(Endpoint& endpoint, RecvRequest& request,
                                const Pattern& pattern) noexcept;
/// The same, in the lane of its pattern.
inline void post_in_lane(Endpoint& endpoint, Lane& lane, RecvRequest& request) noexcept {
  request.order = endpoint.next_order++;
  request.lane = &lane;
  request.next = nullptr;
  request.previous = lane.receives_last;
  (lane.receives_last != nullptr ? lane.receives_last->next : lane.receives_first) = &request;
  lane.receives_last = &request;
  request.state = RecvRequest::State::posted;
  ++endpoint.posted_count[lane.pattern_class];
}
/// The lane of this very pattern, null: there is none yet.
[[nodiscard]] Lane* find_lane(Endpoint& endpoint, const Pattern& key) noexcept;
/// The same for one with a mask; needs no memory.
void post_masked(Endpoint& endpoint, RecvRequest& request, const MaskedPattern& pattern) noexcept;
void unpost_masked(Endpoint& endpoint, RecvRequest& request) noexcept;
/// The oldest of them that fits; null: none.
[[nodiscard]] RecvRequest* find_masked(const Endpoint& endpoint, const Pattern& exact) noexcept;
/// The receive waits no longer, whichever of the two kinds it is.
void unpost_receive(Endpoint& endpoint, RecvRequest& request) noexcept;

/// The receive waits after all others, in no lane; its rank posts nothing before it is done.
inline void park_receive(Endpoint& endpoint, RecvRequest& request,
                         const Pattern& pattern) noexcept {
  request.state = RecvRequest::State::posted;
  endpoint.parked = &request;
  endpoint.parked_pattern = pattern;
}
/// Takes the parked receive, if it waits for a message of this exact pattern; else null.
[[nodiscard]] inline RecvRequest* take_parked(Endpoint& endpoint, const Pattern& exact) noexcept {
  RecvRequest* const parked = endpoint.parked;
  const Pattern& wanted = endpoint.parked_pattern;
  if (parked == nullptr || wanted.context != exact.context ||
      (wanted.source != exact.source && wanted.source != kAnySource) ||
      (wanted.tag != exact.tag && wanted.tag != kAnyTag)) {
    return nullptr;
  }
  endpoint.parked = nullptr;
  parked->state = RecvRequest::State::idle;
  return parked;
}

/// The oldest receive that is posted for a message of this exact pattern, and stays so; null: none.
[[nodiscard]] RecvRequest* find_receive(Endpoint& endpoint, const Pattern& exact) noexcept;
/// Takes the oldest receive that waits for a message of this exact pattern, if it was posted before
/// `order`; null: it was not, or there is none.
[[nodiscard]] RecvRequest* take_receive_before(Endpoint& endpoint, const Pattern& exact,
                                               std::uint64_t order) noexcept;
/// Takes the oldest receive that waits for a message of this exact pattern; null: none.
[[nodiscard, gnu::always_inline]] inline RecvRequest* take_receive(Endpoint& endpoint,
                                                                   const Pattern& exact) noexcept {
  // Receives of other classes, among them those with a mask, might be older.
  // Those that ask for what senders keep are in one list more.
  const bool is_first_class = (endpoint.posted_count[1] | endpoint.posted_count[2] |
                               endpoint.posted_count[3] | endpoint.seeker_count) == 0;
  Lane* const lane = is_first_class ? find_near_lane(endpoint, exact) : nullptr;
  RecvRequest* const first = lane != nullptr ? lane->receives_first : nullptr;
  if (first == nullptr) [[unlikely]] {
    const Pattern usual = exact;  // Has an address: the other stays in registers.
    return take_receive_before(endpoint, usual, ~std::uint64_t{0});
  }
  lane->receives_first = first->next;
  (first->next != nullptr ? first->next->previous : lane->receives_last) = nullptr;
  first->lane = nullptr;
  first->state = RecvRequest::State::idle;
  --endpoint.posted_count[0];
  return first;
}

/// The oldest message that fits; it stays. Null: none.
[[nodiscard]] Message* find_message(Endpoint& endpoint, const Pattern& pattern) noexcept;

/// The same; by a walk over all that wait.
[[nodiscard]] Message* find_message(Endpoint& endpoint, const MaskedPattern& pattern) noexcept;

/// Of a mask without bits any tag fits.
[[nodiscard]] inline bool fits(const MaskedPattern& masked, const Pattern& exact) noexcept {
  const Pattern& wanted = masked.pattern;
  return wanted.context == exact.context &&
         (wanted.source == kAnySource || wanted.source == exact.source) &&
         ((static_cast<std::uint32_t>(wanted.tag) ^ static_cast<std::uint32_t>(exact.tag)) &
          masked.mask) == 0;
}

/// The probe found nothing; it is told of the next message that fits.
void list_watch(Endpoint& endpoint, MessageWatch& watch, const MaskedPattern& wanted) noexcept;
/// It need not be told, and may have been.
void unlist_watch(Endpoint& endpoint, MessageWatch& watch) noexcept;
/// Whoever waits for such a message looks again; null: all of them.
void tell_watches(Endpoint& endpoint, const Envelope* come) noexcept;

/// A message with room for `payload_bytes` of payload, in no list; null: no memory.
[[nodiscard]] Message* create_message(Endpoint& endpoint, std::uint64_t payload_bytes) noexcept;
/// It is in no list.
void free_message(Endpoint& endpoint, Message* message) noexcept;
/// The end of those that lie ready to be used again.
void forget_free_messages(Endpoint& endpoint) noexcept;

/// The message waits, after all those that came before. False: no memory, nothing happened.
[[nodiscard]] bool add_message(Endpoint& endpoint, Message& message) noexcept;
/// The message is in no list any more.
void remove_message(Endpoint& endpoint, Message& message) noexcept;

/// The oldest message that fits a Pattern or a MaskedPattern, in no list any more; null: none.
template <typename Wanted>
[[nodiscard]] Message* take_message(Endpoint& endpoint, const Wanted& wanted) noexcept {
  Message* const message = find_message(endpoint, wanted);
  if (message != nullptr) {
    remove_message(endpoint, *message);
  }
  return message;
}

/// Frees all lanes and the messages that wait. No receive is posted.
void clear_matching(Endpoint& endpoint) noexcept;

/// Walks over everything and stops at the first broken rule. For tests.
void check_matching(Endpoint& endpoint) noexcept;

}  // namespace sterna::net
