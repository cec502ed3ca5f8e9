// message.h and session.h: probes.
#include "runtime/capi/messages/message_probe.h"

#include <sterna/session.h>

#include "base/clock.h"
#include "net/endpoint.h"
#include "net/transport.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

bool is_there(RankContext& rank, const Sought& sought, net::Message** taken, net::Envelope& found,
              net::MessageWatch* watch = nullptr) noexcept {
  net::Transport& transport = *rank.transport;
  const auto fits = [&](const auto& wanted) noexcept {
    if (taken == nullptr) {
      return transport.probe(*rank.endpoint, wanted, found, watch);
    }
    *taken = transport.matched_probe(*rank.endpoint, wanted, found, watch);
    return *taken != nullptr;
  };
  const net::Pattern pattern{sought.source, sought.context, sought.tag};
  return sought.mask == STERNA_WHOLE_TAG ? fits(pattern)
                                         : fits(net::MaskedPattern{pattern, sought.mask});
}

/// No such message will come: its sender is lost, or, of one from anybody, may be among those that
/// were lost since it was asked for, as with receives. After it a last look finds what had come.
bool is_in_vain(const RankContext& rank, const Sought& sought, std::uint32_t losses) noexcept {
  return sought.source == STERNA_ANY_RANK ? net::Transport::loss_count(*rank.endpoint) != losses
                                          : is_named_and_lost(rank, sought.source);
}

sterna_status refuse_late(const Sought& sought) noexcept {
  return refuse(STERNA_TIMED_OUT, "{}: no such message has come", sought.call);
}

}  // namespace

sterna_status look(RankContext& rank, const Sought& sought, net::Message** taken, bool& is_found,
                   net::Envelope& found) noexcept {
  const bool is_lost = is_named_and_lost(rank, sought.source);
  is_found = is_there(rank, sought, taken, found);
  if (is_found) {
    return STERNA_SUCCESS;
  }
  if (is_lost) {
    return refuse_lost(sought.call, sought.source);
  }
  test_in_vain(rank);
  return STERNA_SUCCESS;
}

sterna_status look_for(RankContext& rank, const Sought& sought, std::uint64_t timeout_ns,
                       net::Message** taken, net::Envelope& found) noexcept {
  const std::uint32_t losses = net::Transport::loss_count(*rank.endpoint);
  const std::uint64_t deadline_ns = timeout_ns == 0 ? 0 : deadline_of(timeout_ns);
  if (is_there(rank, sought, taken, found)) {
    return STERNA_SUCCESS;
  }
  if (is_in_callback(rank)) {
    return timeout_ns == 0 ? refuse_late(sought)
                           : refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait",
                                    sought.call);
  }
  for (std::uint32_t round = 0;; round += round < UINT32_MAX ? 1 : 0) {
    const bool is_late = round != 0 && deadline_ns != kNever && now_ns() >= deadline_ns;
    net::MessageWatch watch;
    if (is_there(rank, sought, taken, found, &watch)) {
      return STERNA_SUCCESS;
    }
    const bool is_lost = is_in_vain(rank, sought, losses);  // Of losses since then it is told.
    const bool waits = !is_lost && !is_late && !watch.must_look_again;
    if (waits && wait_until(rank, watch.done, deadline_ns)) {
      continue;
    }
    rank.transport->end_watch(*rank.endpoint, watch);
    if (waits) {
      continue;  // Late, but for a last look.
    }
    if (is_lost && is_there(rank, sought, taken, found)) {
      return STERNA_SUCCESS;
    }
    if (is_lost && sought.source != STERNA_ANY_RANK) {
      return refuse_lost(sought.call, sought.source);
    }
    if (is_lost) {
      return refuse(STERNA_CLOSED, "{}: a process that might have sent such a message has ended",
                    sought.call);
    }
    if (is_late) {
      return refuse_late(sought);
    }
    wait_between_looks(rank, round, deadline_ns);
    call_ended_of_mobile(rank);
  }
}

namespace {

/// What all of these calls look at first.
class Prober {
 public:
  Prober(const char* call, const MessageSession* session, std::uint32_t rank, std::int32_t tag,
         std::uint32_t mask = STERNA_WHOLE_TAG) noexcept
      : session_{session},
        self_{find_current_rank()},
        sought_{.call = call,
                .source = rank,
                .context = context_of(session, ContextUse::messages),
                .tag = tag,
                .mask = mask} {}

  /// SUCCESS, or why not, with a text that names the session.
  [[nodiscard]] sterna_status check(bool is_good) const noexcept {
    if (self_ == nullptr) {
      return refuse_not_started(sought_.call);
    }
    if (is_good && is_pattern(*self_, sought_.source, sought_.tag) &&
        is_mask_for(sought_.tag, sought_.mask)) {
      return STERNA_SUCCESS;
    }
    return refuse(STERNA_INVALID_ARGUMENT,
                  "{}: rank {}, tag {} or mask {:#x}{} is out of range (ranks are 0 to {}; "
                  "STERNA_ANY_TAG has no mask), or a pointer is NULL",
                  sought_.call, sought_.source, sought_.tag, sought_.mask, words_for(session_),
                  self_->size - 1);
  }

  sterna_status probe(int* is_found, sterna_envelope* envelope) const noexcept {
    if (const sterna_status bad = check(is_found != nullptr); bad != STERNA_SUCCESS) {
      return bad;
    }
    net::Envelope found;
    bool is_there = false;
    const sterna_status status = look(*self_, sought_, nullptr, is_there, found);
    *is_found = is_there ? 1 : 0;
    return told(status, is_there, found, envelope);
  }
  sterna_status matched_probe(sterna_matched_message** message,
                              sterna_envelope* envelope) const noexcept {
    if (const sterna_status bad = check(message != nullptr); bad != STERNA_SUCCESS) {
      return bad;
    }
    net::Envelope found;
    net::Message* taken = nullptr;
    bool is_there = false;
    const sterna_status status = look(*self_, sought_, &taken, is_there, found);
    *message = reinterpret_cast<sterna_matched_message*>(taken);
    return told(status, is_there, found, envelope);
  }
  sterna_status probe_for(std::uint64_t timeout_ns, sterna_envelope* envelope) const noexcept {
    if (const sterna_status bad = check(true); bad != STERNA_SUCCESS) {
      return bad;
    }
    net::Envelope found;
    const sterna_status status = look_for(*self_, sought_, timeout_ns, nullptr, found);
    return told(status, status == STERNA_SUCCESS, found, envelope);
  }
  sterna_status matched_probe_for(std::uint64_t timeout_ns, sterna_matched_message** message,
                                  sterna_envelope* envelope) const noexcept {
    if (const sterna_status bad = check(message != nullptr); bad != STERNA_SUCCESS) {
      return bad;
    }
    net::Envelope found;
    net::Message* taken = nullptr;
    const sterna_status status = look_for(*self_, sought_, timeout_ns, &taken, found);
    *message = reinterpret_cast<sterna_matched_message*>(taken);
    return told(status, status == STERNA_SUCCESS, found, envelope);
  }

 private:
  static sterna_status told(sterna_status status, bool is_there, const net::Envelope& found,
                            sterna_envelope* envelope) noexcept {
    if (is_there) {
      store_envelope(found, envelope);
    }
    return status;
  }

  const MessageSession* session_;
  RankContext* self_;
  Sought sought_;
};

sterna_status refuse_session(const char* call) noexcept {
  return refuse(STERNA_INVALID_ARGUMENT, "{}: the session is NULL, or not open", call);
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::MessageSession;
using capi::Prober;
using sterna::runtime::RuntimeScope;

sterna_status sterna_message_probe(uint32_t rank, int32_t tag, int* found,
                                   sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return Prober{__func__, nullptr, rank, tag}.probe(found, envelope);
}

sterna_status sterna_message_matched_probe(uint32_t rank, int32_t tag,
                                           sterna_matched_message** message,
                                           sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return Prober{__func__, nullptr, rank, tag}.matched_probe(message, envelope);
}

sterna_status sterna_message_probe_for(uint32_t rank, int32_t tag, uint32_t mask,
                                       uint64_t timeout_ns, sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return Prober{__func__, nullptr, rank, tag, mask}.probe_for(timeout_ns, envelope);
}

sterna_status sterna_message_matched_probe_for(uint32_t rank, int32_t tag, uint32_t mask,
                                               uint64_t timeout_ns,
                                               sterna_matched_message** message,
                                               sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  return Prober{__func__, nullptr, rank, tag, mask}.matched_probe_for(timeout_ns, message,
                                                                      envelope);
}

sterna_status sterna_session_probe(sterna_session* session, uint32_t rank, int32_t tag, int* found,
                                   sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  const MessageSession* const own = capi::session_in(session);
  return own == nullptr ? capi::refuse_session(__func__)
                        : Prober{__func__, own, rank, tag}.probe(found, envelope);
}

sterna_status sterna_session_matched_probe(sterna_session* session, uint32_t rank, int32_t tag,
                                           sterna_matched_message** message,
                                           sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  const MessageSession* const own = capi::session_in(session);
  return own == nullptr ? capi::refuse_session(__func__)
                        : Prober{__func__, own, rank, tag}.matched_probe(message, envelope);
}

sterna_status sterna_session_probe_for(sterna_session* session, uint32_t rank, int32_t tag,
                                       uint32_t mask, uint64_t timeout_ns,
                                       sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  const MessageSession* const own = capi::session_in(session);
  return own == nullptr ? capi::refuse_session(__func__)
                        : Prober{__func__, own, rank, tag, mask}.probe_for(timeout_ns, envelope);
}

sterna_status sterna_session_matched_probe_for(sterna_session* session, uint32_t rank, int32_t tag,
                                               uint32_t mask, uint64_t timeout_ns,
                                               sterna_matched_message** message,
                                               sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  const MessageSession* const own = capi::session_in(session);
  return own == nullptr ? capi::refuse_session(__func__)
                        : Prober{__func__, own, rank, tag, mask}.matched_probe_for(
                              timeout_ns, message, envelope);
}
