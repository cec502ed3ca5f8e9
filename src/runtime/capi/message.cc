// message.h: messages with tags over the transport, in a context of the C API.
#include <sterna/message.h>

#include "net/endpoint.h"
#include "progress/progress.h"
#include "runtime/capi/program.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

sterna_status to_status(net::Fault fault) noexcept {
  switch (fault) {
    case net::Fault::none:
      return STERNA_SUCCESS;
    case net::Fault::truncated:
      return STERNA_TRUNCATED;
    case net::Fault::peer_lost:
      return STERNA_CLOSED;
    case net::Fault::cancelled:
      return STERNA_REFUSED;
    case net::Fault::no_memory:
      return STERNA_OUT_OF_MEMORY;
  }
  return STERNA_SYSTEM;
}

/// A mobile rank moves while it waits, when it is asked to. Switches.
void wait(RankContext& rank, progress::Completion& done) noexcept {
  if (rank.slot == nullptr) {
    done.wait(*rank.progress);
    return;
  }
  while (!done.done()) {
    safe_point(rank);
    (void)done.wait_for(*rank.progress, {.is_interruptible = true});
  }
}

bool is_pattern(const RankContext& rank, std::uint32_t source, std::int32_t tag) noexcept {
  return (source < rank.size || source == STERNA_ANY_RANK) && tag >= STERNA_ANY_TAG;
}

void store(const net::Envelope& from, sterna_envelope* to) noexcept {
  if (to != nullptr) {
    *to = {.source = from.source, .tag = from.tag, .bytes = from.bytes};
  }
}

}  // namespace

sterna_status send_message(std::uint32_t rank, std::uint32_t context, std::int32_t tag,
                           const void* data, std::size_t bytes) noexcept {
  RankContext& self = current_rank();
  net::SendRequest request;
  self.transport->send(*self.endpoint, request, {.rank = rank, .context = context, .tag = tag},
                       net::Buffer::of(data, bytes));
  wait(self, request.done);
  return to_status(request.fault);
}

sterna_status receive_message(std::uint32_t rank, std::uint32_t context, std::int32_t tag,
                              void* buffer, std::size_t bytes, net::Envelope& envelope) noexcept {
  RankContext& self = current_rank();
  net::RecvRequest request;
  self.transport->receive(*self.endpoint, request, {.source = rank, .context = context, .tag = tag},
                          net::Buffer::of(buffer, bytes));
  wait(self, request.done);
  envelope = request.envelope;
  return to_status(request.fault);
}

}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

static_assert(STERNA_ANY_RANK == sterna::net::kAnySource);
static_assert(STERNA_ANY_TAG == sterna::net::kAnyTag);

sterna_status sterna_message_send(uint32_t rank, int32_t tag, const void* data,
                                  size_t bytes) noexcept {
  const RuntimeScope scope;
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return STERNA_NOT_STARTED;
  }
  if (rank >= self->size || tag < 0 || (data == nullptr && bytes != 0)) {
    return STERNA_INVALID_ARGUMENT;
  }
  sterna::runtime::safe_point(*self);
  return capi::send_message(rank, capi::kMessageContext, tag, data, bytes);
}

sterna_status sterna_message_receive(uint32_t rank, int32_t tag, void* buffer, size_t bytes_max,
                                     sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return STERNA_NOT_STARTED;
  }
  if (!capi::is_pattern(*self, rank, tag) || (buffer == nullptr && bytes_max != 0)) {
    return STERNA_INVALID_ARGUMENT;
  }
  sterna::runtime::safe_point(*self);
  sterna::net::Envelope found;
  const sterna_status status =
      capi::receive_message(rank, capi::kMessageContext, tag, buffer, bytes_max, found);
  if (status == STERNA_SUCCESS || status == STERNA_TRUNCATED) {
    capi::store(found, envelope);
  }
  return status;
}

sterna_status sterna_message_probe(uint32_t rank, int32_t tag, int* found,
                                   sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return STERNA_NOT_STARTED;
  }
  if (!capi::is_pattern(*self, rank, tag) || found == nullptr) {
    return STERNA_INVALID_ARGUMENT;
  }
  const sterna::net::Pattern pattern{rank, capi::kMessageContext, tag};
  sterna::net::Envelope seen;
  *found = self->transport->probe(*self->endpoint, pattern, seen) ? 1 : 0;
  if (*found == 0) {
    sterna::runtime::tested_in_vain(*self);
  } else {
    capi::store(seen, envelope);
  }
  return STERNA_SUCCESS;
}
