// Receives that compare some bits of the tag only, and messages for them.
#include "net/matching/matching.h"

namespace sterna::net {
namespace {

MaskedPattern masked_pattern_of(const RecvRequest& posted) noexcept {
  const Envelope& kept = posted.envelope;
  return {{kept.source, kept.context, kept.tag}, static_cast<std::uint32_t>(posted.message_bytes)};
}

}  // namespace

void post_masked(Endpoint& endpoint, RecvRequest& request, const MaskedPattern& pattern) noexcept {
  request.order = endpoint.next_order++;
  request.lane = nullptr;
  request.envelope = {pattern.pattern.source, pattern.pattern.context, pattern.pattern.tag, 0};
  request.message_bytes = pattern.mask;
  request.next = nullptr;
  request.previous = endpoint.masked_last;
  (endpoint.masked_last != nullptr ? endpoint.masked_last->next : endpoint.masked_first) = &request;
  endpoint.masked_last = &request;
  request.state = RecvRequest::State::posted;
  ++endpoint.posted_count[kMaskedClass];
}

RecvRequest* find_masked(const Endpoint& endpoint, const Pattern& exact) noexcept {
  RecvRequest* request = endpoint.masked_first;
  while (request != nullptr && !fits(masked_pattern_of(*request), exact)) {
    request = request->next;
  }
  return request;
}

void unpost_masked(Endpoint& endpoint, RecvRequest& request) noexcept {
  (request.previous != nullptr ? request.previous->next : endpoint.masked_first) = request.next;
  (request.next != nullptr ? request.next->previous : endpoint.masked_last) = request.previous;
  request.state = RecvRequest::State::idle;
  --endpoint.posted_count[kMaskedClass];
}

Message* find_message(Endpoint& endpoint, const MaskedPattern& pattern) noexcept {
  Message* message = endpoint.messages_first;
  while (message != nullptr && !fits(pattern, {message->envelope.source, message->envelope.context,
                                               message->envelope.tag})) {
    message = message->all_next;
  }
  return message;
}

}  // namespace sterna::net
