// Lanes, and the receives and messages in them.
#include "net/matching/matching.h"

#include <new>

#include "base/check.h"
#include "memory/heap.h"
#include "net/matching/held.h"
#include "net/matching/steps.h"

namespace sterna::net {
namespace {

constexpr std::uint32_t kBucketsMin = 32;

std::uint32_t hash_of(const Pattern& key) noexcept {
  const std::uint64_t place = (std::uint64_t{key.context} << 32) | key.source;
  const std::uint64_t hash =
      (place * 0x9e3779b97f4a7c15) ^ (static_cast<std::uint32_t>(key.tag) * 0xd6e8feb86659fd93);
  return static_cast<std::uint32_t>((hash * 0x9e3779b97f4a7c15) >> 32);
}

/// `look` is called for each lane that is looked at.
template <typename Look>
Lane* walk_bucket(const Endpoint& endpoint, const Pattern& key, Look look) noexcept {
  Lane* lane = endpoint.lanes[hash_of(key) & (endpoint.lane_bucket_count - 1)];
  while (lane != nullptr && (look(), !is_same(lane->key, key))) {
    lane = lane->next_in_bucket;
  }
  return lane;
}

[[gnu::noinline]] Lane* find_in_bucket(Endpoint& endpoint, const Pattern& key) noexcept {
  Lane* const lane = walk_bucket(endpoint, key, [] {});
  if (lane != nullptr) {
    near_lanes(endpoint)[1] = near_lanes(endpoint)[0];
    near_lanes(endpoint)[0] = lane;
  }
  return lane;
}

}  // namespace

Lane* find_lane(Endpoint& endpoint, const Pattern& key) noexcept {
  if (endpoint.lanes == nullptr) {
    return nullptr;
  }
  Lane* const near = find_near_lane(endpoint, key);
  return near != nullptr ? near : find_in_bucket(endpoint, key);
}

namespace {

/// Empty lanes go to the free list; the others go into `bucket_count` new buckets.
bool rehash(Endpoint& endpoint, std::uint32_t bucket_count) noexcept {
  auto** buckets = static_cast<Lane**>(
      endpoint.heap->allocate_zeroed((bucket_count + kNearLanes) * sizeof(Lane*)));
  if (buckets == nullptr) {
    return false;
  }
  std::uint32_t lane_count = 0;
  for (std::uint32_t i = 0; i < endpoint.lane_bucket_count; ++i) {
    Lane* lane = endpoint.lanes[i];
    while (lane != nullptr) {
      Lane* next = lane->next_in_bucket;
      const bool is_empty = lane->receives_first == nullptr && lane->messages_first == nullptr;
      Lane*& list =
          is_empty ? endpoint.free_lanes : buckets[hash_of(lane->key) & (bucket_count - 1)];
      lane->next_in_bucket = list;
      list = lane;
      lane_count += is_empty ? 0 : 1;
      lane = next;
    }
  }
  endpoint.heap->deallocate(endpoint.lanes);
  endpoint.lanes = buckets;
  endpoint.lane_bucket_count = bucket_count;
  endpoint.lane_count = lane_count;
  return true;
}

bool make_room(Endpoint& endpoint) noexcept {
  if (endpoint.lanes == nullptr) {
    return rehash(endpoint, kBucketsMin);
  }
  if (endpoint.lane_count < endpoint.lane_bucket_count) {
    return true;
  }
  // A program that counts its tags up leaves empty lanes behind: sweep first, grow when that did
  // not help, so that both cost a constant for each lane made.
  if (!rehash(endpoint, endpoint.lane_bucket_count)) {
    return false;
  }
  return endpoint.lane_count < endpoint.lane_bucket_count / 2 ||
         rehash(endpoint, endpoint.lane_bucket_count * 2);
}

Lane* make_lane(Endpoint& endpoint, const Pattern& key) noexcept {
  if (Lane* lane = find_lane(endpoint, key); lane != nullptr) [[likely]] {
    return lane;
  }
  if (!make_room(endpoint)) {
    return nullptr;
  }
  Lane* lane = endpoint.free_lanes;
  if (lane != nullptr) {
    endpoint.free_lanes = lane->next_in_bucket;
  } else {
    lane = static_cast<Lane*>(endpoint.heap->allocate(sizeof(Lane)));
    if (lane == nullptr) {
      return nullptr;
    }
  }
  Lane*& bucket = endpoint.lanes[hash_of(key) & (endpoint.lane_bucket_count - 1)];
  *lane = Lane{key,    static_cast<std::uint8_t>(class_of(key)), bucket, nullptr, nullptr, nullptr,
               nullptr};
  bucket = lane;
  ++endpoint.lane_count;
  return lane;
}

Pattern pattern_of(const Envelope& envelope, std::uint32_t pattern_class) noexcept {
  return {(pattern_class & 1) != 0 ? kAnySource : envelope.source, envelope.context,
          (pattern_class & 2) != 0 ? kAnyTag : envelope.tag};
}

bool link(Endpoint& endpoint, Message& message, std::uint32_t pattern_class) noexcept {
  Lane* lane = make_lane(endpoint, pattern_of(message.envelope, pattern_class));
  if (lane == nullptr) {
    return false;
  }
  message.links[pattern_class] = {nullptr, lane->messages_last, lane};
  (lane->messages_last != nullptr ? lane->messages_last->links[pattern_class].next
                                  : lane->messages_first) = &message;
  lane->messages_last = &message;
  return true;
}

void unlink(Message& message, std::uint32_t pattern_class) noexcept {
  Message::Link& place = message.links[pattern_class];
  if (place.lane == nullptr) {
    return;
  }
  (place.previous != nullptr ? place.previous->links[pattern_class].next
                             : place.lane->messages_first) = place.next;
  (place.next != nullptr ? place.next->links[pattern_class].previous : place.lane->messages_last) =
      place.previous;
  place = {};
}

/// From now on messages are also in the lanes of this class.
bool build_index(Endpoint& endpoint, std::uint32_t pattern_class) noexcept {
  for (Message* message = endpoint.messages_first; message != nullptr;
       message = message->all_next) {
    if (!link(endpoint, *message, pattern_class)) {
      for (Message* undo = endpoint.messages_first; undo != message; undo = undo->all_next) {
        unlink(*undo, pattern_class);
      }
      return false;
    }
  }
  endpoint.is_indexed[pattern_class] = true;
  return true;
}

}  // namespace

bool post_receive(Endpoint& endpoint, RecvRequest& request, const Pattern& pattern) noexcept {
  Lane* lane = make_lane(endpoint, pattern);
  if (lane == nullptr) {
    return false;
  }
  post_in_lane(endpoint, *lane, request);
  return true;
}

void unpost_receive(Endpoint& endpoint, RecvRequest& request) noexcept {
  if (request.is_seeking) [[unlikely]] {
    end_seeking(endpoint, request);
  }
  if (request.lane == nullptr) [[unlikely]] {
    unpost_masked(endpoint, request);
    return;
  }
  Lane& lane = *request.lane;
  (request.previous != nullptr ? request.previous->next : lane.receives_first) = request.next;
  (request.next != nullptr ? request.next->previous : lane.receives_last) = request.previous;
  request.lane = nullptr;
  request.state = RecvRequest::State::idle;
  --endpoint.posted_count[lane.pattern_class];
}

RecvRequest* find_receive(Endpoint& endpoint, const Pattern& exact) noexcept {
  RecvRequest* oldest = nullptr;
  if (endpoint.posted_count[0] != 0) {
    const Lane* lane = find_lane(endpoint, exact);
    oldest = lane != nullptr ? lane->receives_first : nullptr;
  }
  const Envelope envelope{exact.source, exact.context, exact.tag, 0};
  for (std::uint32_t i = 1; i < kPatternClasses; ++i) {
    if (endpoint.posted_count[i] != 0) {
      const Lane* lane = find_lane(endpoint, pattern_of(envelope, i));
      RecvRequest* first = lane != nullptr ? lane->receives_first : nullptr;
      if (first != nullptr && (oldest == nullptr || first->order < oldest->order)) {
        oldest = first;
      }
    }
  }
  if (endpoint.posted_count[kMaskedClass] != 0 && endpoint.masked_first != nullptr) [[unlikely]] {
    RecvRequest* const masked = find_masked(endpoint, exact);
    oldest =
        masked != nullptr && (oldest == nullptr || masked->order < oldest->order) ? masked : oldest;
  }
  return oldest;
}

RecvRequest* take_receive_before(Endpoint& endpoint, const Pattern& exact,
                                 std::uint64_t order) noexcept {
  RecvRequest* const oldest = find_receive(endpoint, exact);
  if (oldest == nullptr) {
    return take_parked(endpoint, exact);
  }
  if (oldest->order >= order) {
    return nullptr;
  }
  unpost_receive(endpoint, *oldest);
  return oldest;
}

// As take_receive_slowly(), class by class.
MatchingSteps count_steps(const Endpoint& endpoint, const Pattern& exact) noexcept {
  MatchingSteps steps;
  const Envelope envelope{exact.source, exact.context, exact.tag, 0};
  for (std::uint32_t i = 0; i < kPatternClasses && endpoint.lanes != nullptr; ++i) {
    if (endpoint.posted_count[i] != 0) {
      ++steps.searches;
      (void)walk_bucket(endpoint, pattern_of(envelope, i), [&] { ++steps.lanes; });
    }
  }
  const RecvRequest* const found = find_masked(endpoint, exact);
  for (const RecvRequest* it = endpoint.masked_first; it != nullptr; it = it->next) {
    ++steps.masked;
    if (it == found) {
      break;
    }
  }
  return steps;
}

Message* find_message(Endpoint& endpoint, const Pattern& pattern) noexcept {
  if (endpoint.message_count == 0) {
    return nullptr;
  }
  const std::uint32_t pattern_class = class_of(pattern);
  if (pattern_class != 0 && !endpoint.is_indexed[pattern_class]) {
    // The very first message usually fits; an index costs something on every message from then on.
    Message* first = endpoint.messages_first;
    const bool fits = first->envelope.context == pattern.context &&
                      (pattern.source == kAnySource || pattern.source == first->envelope.source) &&
                      (pattern.tag == kAnyTag || pattern.tag == first->envelope.tag);
    if (fits) {
      return first;
    }
    if (!build_index(endpoint, pattern_class)) {
      return nullptr;  // No memory for the index: as if nothing had come yet.
    }
  }
  const Lane* lane = find_lane(endpoint, pattern);
  return lane != nullptr ? lane->messages_first : nullptr;
}

bool add_message(Endpoint& endpoint, Message& message) noexcept {
  for (std::uint32_t i = 0; i < kPatternClasses; ++i) {
    if ((i == 0 || endpoint.is_indexed[i]) && !link(endpoint, message, i)) {
      while (i-- != 0) {
        unlink(message, i);
      }
      return false;
    }
  }
  message.order = endpoint.next_order++;
  message.all_next = nullptr;
  message.all_previous = endpoint.messages_last;
  (endpoint.messages_last != nullptr ? endpoint.messages_last->all_next : endpoint.messages_first) =
      &message;
  endpoint.messages_last = &message;
  ++endpoint.message_count;
  if (endpoint.watches != nullptr) [[unlikely]] {
    tell_watches(endpoint, &message.envelope);
  }
  return true;
}

void remove_message(Endpoint& endpoint, Message& message) noexcept {
  for (std::uint32_t i = 0; i < kPatternClasses; ++i) {
    if (i == 0 || endpoint.is_indexed[i]) {
      unlink(message, i);
    }
  }
  (message.all_previous != nullptr ? message.all_previous->all_next : endpoint.messages_first) =
      message.all_next;
  (message.all_next != nullptr ? message.all_next->all_previous : endpoint.messages_last) =
      message.all_previous;
  message.all_next = message.all_previous = nullptr;
  --endpoint.message_count;
}

void clear_matching(Endpoint& endpoint) noexcept {
  while (endpoint.messages_first != nullptr) {
    Message* message = endpoint.messages_first;
    remove_message(endpoint, *message);
    free_message(endpoint, message);
  }
  forget_free_messages(endpoint);
  for (std::uint32_t i = 0; i < endpoint.lane_bucket_count; ++i) {
    while (endpoint.lanes[i] != nullptr) {
      Lane* lane = endpoint.lanes[i];
      endpoint.lanes[i] = lane->next_in_bucket;
      endpoint.heap->deallocate(lane);
    }
  }
  while (endpoint.free_lanes != nullptr) {
    Lane* lane = endpoint.free_lanes;
    endpoint.free_lanes = lane->next_in_bucket;
    endpoint.heap->deallocate(lane);
  }
  endpoint.heap->deallocate(endpoint.lanes);
  endpoint.lanes = nullptr;
  endpoint.lane_bucket_count = endpoint.lane_count = 0;
}

void check_matching(Endpoint& endpoint) noexcept {
  std::uint32_t posted[kPatternClasses] = {};
  std::uint32_t linked[kPatternClasses] = {};
  for (std::uint32_t i = 0; i < endpoint.lane_bucket_count; ++i) {
    for (Lane* lane = endpoint.lanes[i]; lane != nullptr; lane = lane->next_in_bucket) {
      std::uint64_t order = 0;
      for (RecvRequest* r = lane->receives_first; r != nullptr; r = r->next) {
        check(r->lane == lane && r->order >= order, "receives of a lane are in order of posting");
        order = r->order + 1;
        ++posted[lane->pattern_class];
      }
      order = 0;
      for (Message* m = lane->messages_first; m != nullptr;
           m = m->links[lane->pattern_class].next) {
        check(m->order >= order, "messages of a lane are in order of arrival");
        order = m->order + 1;
        ++linked[lane->pattern_class];
      }
    }
  }
  std::uint64_t order = 0;
  for (const RecvRequest* r = endpoint.masked_first; r != nullptr; r = r->next) {
    check(r->lane == nullptr && r->order >= order, "receives with a mask are in order of posting");
    order = r->order + 1;
    ++posted[kMaskedClass];
  }
  for (std::uint32_t i = 0; i < kPatternClasses; ++i) {
    check(posted[i] == endpoint.posted_count[i], "receives are counted by class");
    check(linked[i] == (i == 0 || endpoint.is_indexed[i] ? endpoint.message_count.value : 0),
          "messages are in the lanes of every indexed class");
  }
}

}  // namespace sterna::net
