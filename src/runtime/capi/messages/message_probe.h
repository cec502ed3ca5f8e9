// Probes of message.h, session.h and pack.h: a look, or looks until something comes.
#pragma once

#include <cstdint>

#include <sterna/message.h>

#include "net/message.h"
#include "runtime/rank_context.h"

namespace sterna::runtime::capi {

/// What a probe looks for, of the entry point `call`.
struct Sought {
  const char* call;
  std::uint32_t source;
  std::uint32_t context;
  std::int32_t tag;
  std::uint32_t mask = STERNA_WHOLE_TAG;
};

/// Whether a mask may be given with the tag.
[[nodiscard]] constexpr bool is_mask_for(std::int32_t tag, std::uint32_t mask) noexcept {
  return tag != STERNA_ANY_TAG || mask == STERNA_WHOLE_TAG;
}

/// Looks once; in vain it lets others run. CLOSED as the headers say, with a text. With `taken` it
/// takes the message out, and null says that none was there; switches.
sterna_status look(RankContext& rank, const Sought& sought, net::Message** taken, bool& is_found,
                   net::Envelope& found) noexcept;

/// Until one is there. TIMED_OUT; CLOSED: what a receive would end with; DEADLOCK; with a text.
/// Switches; may move the rank.
sterna_status look_for(RankContext& rank, const Sought& sought, std::uint64_t timeout_ns,
                       net::Message** taken, net::Envelope& found) noexcept;

}  // namespace sterna::runtime::capi
