// Sessions of programs: contexts of the transport by name.
#pragma once

#include <atomic>
#include <cstdint>

#include <sterna/session.h>

#include "runtime/rank_context.h"
#include "runtime/session_numbers.h"

namespace sterna::runtime::capi {

/// What a context of a session is for.
enum class ContextUse : std::uint32_t {
  messages = 0,
  job_barriers = 1,  // Without a session they have another: 1 is that of the start there.
  pack_heads = 2,
  pack_parts = 3,
};

/// In memory of the program; constant while it is open, but for the count.
struct MessageSession {
  static constexpr std::uint32_t kOpen = 0x5e55'10e7;
  // Above those of MPI, which counts from 0, and below that without a name (program.h).
  static constexpr std::uint32_t kContextFirst = 0x8000'0000;
  static constexpr std::uint32_t kContextsEach = 4;

  std::uint32_t state = 0;  // kOpen: it is.
  std::uint32_t context = 0;
  std::atomic<std::uint32_t> started{0};  // Requests. Relaxed: for who closes it, who orders that.
  char name[kSessionNameBytesMax + 1] = {};
};
static_assert(sizeof(MessageSession) <= sizeof(sterna_session) &&
              alignof(MessageSession) <= alignof(sterna_session));
static_assert(kSessionNameBytesMax + 1 == STERNA_SESSION_NAME_BYTES);
static_assert(MessageSession::kContextFirst + MessageSession::kContextsEach * kSessionsMax <
              0xffff'fff0);

/// Null: NULL, or not open.
[[nodiscard]] MessageSession* session_in(sterna_session* storage) noexcept;

/// Of a session, or, for null, of that without a name.
[[nodiscard]] std::uint32_t context_of(const MessageSession* session, ContextUse use) noexcept;

/// " of session 'name'"; empty for null.
[[nodiscard]] std::string words_for(const MessageSession* session);

}  // namespace sterna::runtime::capi
