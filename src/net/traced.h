// Messages in the trace (base/trace.h): where they are sent, and where they meet their receive.
#pragma once

#include "base/probe.h"
#include "net/message.h"
#include "threads/observation/traced.h"

namespace sterna::net {

[[gnu::cold, gnu::noinline]] inline void record_message(trace::Kind kind, const Envelope& envelope,
                                                        std::uint32_t destination) noexcept {
  trace::record(kind, threads::trace_worker(), trace::message_subject(envelope.source, destination),
                trace::message_value(envelope.bytes, envelope.context),
                static_cast<std::uint32_t>(envelope.tag));
}

/// The n-th message sent with one source, destination, context and tag is the n-th received: order
/// between two ranks is kept, so records need no number to be paired.
[[gnu::always_inline]] inline void trace_message(trace::Kind kind, const Envelope& envelope,
                                                 std::uint32_t destination) noexcept {
  if (kind == trace::Kind::sends) {
    STERNA_PROBE4(message_send, envelope.source, destination, envelope.bytes, envelope.tag);
  } else {
    STERNA_PROBE4(message_receive, envelope.source, destination, envelope.bytes, envelope.tag);
  }
  if (trace::is_on()) [[unlikely]] {
    record_message(kind, envelope, destination);
  }
}

}  // namespace sterna::net
