// The begin and the end of a receive that has matched. Under the lock of its rank.
#pragma once

#include "net/endpoint.h"
#include "net/matching/held.h"
#include "net/traced.h"

namespace sterna::net {

/// Of a receive or a probe, whether it asks with a mask or without.
inline const Pattern& plain(const Pattern& pattern) noexcept {
  return pattern;
}
inline const Pattern& plain(const MaskedPattern& pattern) noexcept {
  return pattern.pattern;
}
inline MaskedPattern masked(const Pattern& pattern) noexcept {
  return {pattern, kWholeTag};
}
inline const MaskedPattern& masked(const MaskedPattern& pattern) noexcept {
  return pattern;
}

inline void start_receive(const Endpoint& at, RecvRequest& request,
                          const Envelope& envelope) noexcept {
  trace_message(trace::Kind::receives, envelope, at.rank);
  request.message_bytes = envelope.bytes;
  request.received_bytes = 0;
  request.envelope = envelope;
  request.state = RecvRequest::State::receiving;
  if (envelope.bytes > request.data.bytes) {
    request.envelope.bytes = request.data.bytes;
    request.fault = Fault::truncated;
  }
}

inline void complete(RecvRequest& request) noexcept {
  request.state = RecvRequest::State::idle;
  request.done.complete();
}

}  // namespace sterna::net
