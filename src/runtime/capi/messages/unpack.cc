// pack.h: the receiver's side.
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "net/buffer.h"
#include "net/endpoint.h"
#include "net/transport.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_probe.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/messages/pack.h"
#include "runtime/capi/messages/piece_head.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

/// A long piece that was asked for; in the heap of the rank.
struct AwaitedPart {
  AwaitedPart* next = nullptr;
  std::size_t bytes = 0;
  net::RecvRequest receive;
};

/// In memory of the program, whose thread at a time is the guard; iso-addresses only.
struct Unpacking {
  static constexpr std::uint32_t kMade = 0x9ac4'ed02;

  std::uint32_t made = kMade;
  std::uint32_t source = 0;
  std::int32_t tag = 0;
  PackHeader header;
  std::uint32_t parts_left = 0;  // That were not asked for.
  std::uint32_t pieces = 0;      // That were taken, where they have heads.
  MessageSession* session = nullptr;
  std::byte* block = nullptr;  // kPackBlockBytes of the rank's heap.
  std::size_t block_bytes = 0;
  std::size_t position = 0;  // Of the next short piece in it.
  AwaitedPart* first = nullptr;
  AwaitedPart* last = nullptr;
  sterna_status fault = STERNA_SUCCESS;  // The first that a call has returned.

  /// Pieces have heads: the sender has the setting pack_checks.
  [[nodiscard]] bool is_checked() const noexcept { return (header.parts & kPackChecked) != 0; }
};
static_assert(sizeof(Unpacking) <= sizeof(sterna_unpacking));

Unpacking* unpacking_in(sterna_unpacking* storage) noexcept {
  auto* const unpacking = reinterpret_cast<Unpacking*>(storage);
  return unpacking != nullptr && unpacking->made == Unpacking::kMade ? unpacking : nullptr;
}

std::string describe(const Unpacking& unpacking) {
  return fmt::format("the message of rank {} with tag {}{}", unpacking.source, unpacking.tag,
                     words_for(unpacking.session));
}

net::Pattern parts_of(const Unpacking& unpacking) noexcept {
  return {unpacking.source, context_of(unpacking.session, ContextUse::pack_parts),
          static_cast<std::int32_t>(unpacking.header.number)};
}

sterna_status fail(Unpacking& unpacking, sterna_status status, const char* why) noexcept {
  unpacking.fault = unpacking.fault == STERNA_SUCCESS ? status : unpacking.fault;
  return refuse(status, "sterna_unpack: {}: {}", describe(unpacking), why);
}

/// The fault of a part that has come, of which `bytes` bytes were wanted.
sterna_status fault_of(const net::RecvRequest& receive, std::size_t bytes) noexcept {
  const sterna_status status = to_status(receive.fault);
  return status == STERNA_SUCCESS && receive.envelope.bytes != bytes ? STERNA_REFUSED : status;
}

/// The next block, which has to come now.
sterna_status next_block(RankContext& rank, Unpacking& unpacking) noexcept {
  if (unpacking.parts_left == 0) {
    return fail(unpacking, STERNA_REFUSED, "more is unpacked than was packed");
  }
  --unpacking.parts_left;
  net::RecvRequest request;
  rank.transport->receive(*rank.endpoint, request, parts_of(unpacking),
                          net::Buffer::of(unpacking.block, kPackBlockBytes));
  (void)wait_until(rank, request.done, kNever);
  unpacking.position = 0;
  unpacking.block_bytes = request.fault == net::Fault::none ? request.envelope.bytes : 0;
  const sterna_status status = to_status(request.fault);
  return status == STERNA_SUCCESS ? status : fail(unpacking, status, sterna_status_text(status));
}

/// Of a message whose pieces have heads: the next piece is the `wanted` one, and its head is taken.
/// Else nothing is.
sterna_status take_head(RankContext& rank, Unpacking& unpacking, const PieceHead& wanted) noexcept {
  while (unpacking.position == unpacking.block_bytes) {
    if (const sterna_status bad = next_block(rank, unpacking); bad != STERNA_SUCCESS) {
      return bad;
    }
  }
  PieceHead packed;
  if (!decode({unpacking.block, unpacking.block_bytes}, unpacking.position, packed)) {
    return fail(unpacking, STERNA_SYSTEM, "what came is no message in pieces");
  }
  if (packed != wanted) {
    const std::string why = fmt::format("piece {} was packed as {}, and is unpacked as {}",
                                        unpacking.pieces + 1, words_for(packed), words_for(wanted));
    return fail(unpacking, STERNA_REFUSED, why.c_str());
  }
  unpacking.position += kPieceHeadBytes;
  ++unpacking.pieces;
  return STERNA_SUCCESS;
}

/// The piece could not be taken.
void give_back_head(Unpacking& unpacking) noexcept {
  if (unpacking.is_checked()) {
    unpacking.position -= kPieceHeadBytes;
    --unpacking.pieces;
  }
}

sterna_status take_short(RankContext& rank, Unpacking& unpacking, void* buffer,
                         std::size_t bytes) noexcept {
  // The sender's rule: what does not fit begins a new block.
  if (unpacking.position + bytes > kPackBlockBytes) {
    if (const sterna_status bad = next_block(rank, unpacking); bad != STERNA_SUCCESS) {
      return bad;
    }
  }
  if (unpacking.position + bytes > unpacking.block_bytes) {
    return fail(unpacking, STERNA_REFUSED,
                "the piece is longer than what was packed, or its modes are others");
  }
  if (bytes != 0) {
    net::copy_bytes(static_cast<std::byte*>(buffer), unpacking.block + unpacking.position, bytes);
    unpacking.position += bytes;
  }
  return STERNA_SUCCESS;
}

sterna_status take_long(RankContext& rank, Unpacking& unpacking, void* buffer, std::size_t bytes,
                        sterna_unpack_mode mode) noexcept {
  if (unpacking.parts_left == 0) {
    return fail(unpacking, STERNA_REFUSED,
                "the piece is longer than what was packed, or its modes are others");
  }
  void* const memory = rank.heap->allocate(sizeof(AwaitedPart));
  if (memory == nullptr) {
    give_back_head(unpacking);
    return fail(unpacking, STERNA_OUT_OF_MEMORY, "no memory to wait for a piece");
  }
  --unpacking.parts_left;
  auto* const part = ::new (memory) AwaitedPart;
  part->bytes = bytes;
  rank.transport->receive(*rank.endpoint, part->receive, parts_of(unpacking),
                          net::Buffer::of(buffer, bytes));
  if (mode == STERNA_UNPACK_CHEAPER) {
    (unpacking.last != nullptr ? unpacking.last->next : unpacking.first) = part;
    unpacking.last = part;
    return STERNA_SUCCESS;
  }
  (void)wait_until(rank, part->receive.done, kNever);
  const sterna_status status = fault_of(part->receive, bytes);
  rank.heap->deallocate(part);
  return status == STERNA_SUCCESS
             ? status
             : fail(unpacking, status,
                    status == STERNA_REFUSED ? "the piece is longer than what was packed"
                                             : sterna_status_text(status));
}

/// Waits for what was asked for. The first fault.
sterna_status await_all(RankContext& rank, Unpacking& unpacking) noexcept {
  sterna_status first = STERNA_SUCCESS;
  while (AwaitedPart* const part = unpacking.first) {
    (void)wait_until(rank, part->receive.done, kNever);
    first = first == STERNA_SUCCESS ? fault_of(part->receive, part->bytes) : first;
    unpacking.first = part->next;
    rank.heap->deallocate(part);
  }
  return first;
}

/// Receives what nobody asked for, and drops it; whether there was any.
bool drop_rest(RankContext& rank, Unpacking& unpacking) noexcept {
  const bool has_rest = unpacking.parts_left != 0 || unpacking.position < unpacking.block_bytes;
  bool is_there = true;
  for (; unpacking.parts_left != 0 && is_there; --unpacking.parts_left) {
    net::RecvRequest request;
    rank.transport->receive(*rank.endpoint, request, parts_of(unpacking), net::Buffer{});
    (void)wait_until(rank, request.done, kNever);
    is_there = request.fault != net::Fault::peer_lost;
  }
  return has_rest;
}

void close(RankContext& rank, Unpacking& unpacking) noexcept {
  rank.heap->deallocate(unpacking.block);
  if (unpacking.session != nullptr) {
    unpacking.session->started.fetch_sub(1, std::memory_order_relaxed);
  }
  unpacking.made = 0;
}

/// Waits for the head.
sterna_status receive_head(RankContext& rank, Unpacking& unpacking) noexcept {
  net::RecvRequest request;
  rank.transport->receive(
      *rank.endpoint, request,
      net::Pattern{unpacking.source, context_of(unpacking.session, ContextUse::pack_heads),
                   unpacking.tag},
      net::Buffer::of(unpacking.block, kPackBlockBytes));
  (void)wait_until(rank, request.done, kNever);
  if (request.fault != net::Fault::none || request.envelope.bytes < sizeof(PackHeader)) {
    return request.fault == net::Fault::none ? STERNA_SYSTEM : to_status(request.fault);
  }
  std::memcpy(&unpacking.header, unpacking.block, sizeof(PackHeader));
  unpacking.source = request.envelope.source;
  unpacking.tag = request.envelope.tag;
  unpacking.parts_left = unpacking.header.parts & ~kPackChecked;
  unpacking.block_bytes = request.envelope.bytes;
  unpacking.position = sizeof(PackHeader);
  // A number is a tag: what another program may have sent must not break that rule here.
  return static_cast<std::int32_t>(unpacking.header.number) < 0 ? STERNA_SYSTEM : STERNA_SUCCESS;
}

/// The caller and its session, or why not.
sterna_status check_source(sterna_session* session, std::uint32_t rank, std::int32_t tag,
                           bool is_good, const char* call) noexcept {
  const RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  if (!is_good || !is_pattern(*self, rank, tag) ||
      (session != nullptr && session_in(session) == nullptr)) {
    return refuse(STERNA_INVALID_ARGUMENT,
                  "{}: a pointer is NULL, rank {} or tag {} out of range, STERNA_ANY_TAG with a "
                  "mask, or the session not open",
                  call, rank, tag);
  }
  return STERNA_SUCCESS;
}

void tell_source(std::uint32_t source, std::int32_t tag, sterna_envelope* envelope) noexcept {
  if (envelope != nullptr) {
    *envelope = {.source = source, .tag = tag, .bytes = 0};
  }
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::Unpacking;
using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

sterna_status sterna_unpack_probe(sterna_session* session, uint32_t rank, int32_t tag, int* found,
                                  sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad = capi::check_source(session, rank, tag, found != nullptr, __func__);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  const capi::Sought sought{
      .call = __func__,
      .source = rank,
      .context = capi::context_of(capi::session_in(session), capi::ContextUse::pack_heads),
      .tag = tag};
  sterna::net::Envelope seen;
  bool is_there = false;
  const sterna_status status =
      capi::look(*find_current_rank(), sought, nullptr, is_there, seen);
  *found = is_there ? 1 : 0;
  if (is_there) {
    capi::tell_source(seen.source, seen.tag, envelope);
  }
  return status;
}

sterna_status sterna_unpack_probe_for(sterna_session* session, uint32_t rank, int32_t tag,
                                      uint32_t mask, uint64_t timeout_ns,
                                      sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad =
          capi::check_source(session, rank, tag, capi::is_mask_for(tag, mask), __func__);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  const capi::Sought sought{
      .call = __func__,
      .source = rank,
      .context = capi::context_of(capi::session_in(session), capi::ContextUse::pack_heads),
      .tag = tag,
      .mask = mask};
  sterna::net::Envelope seen;
  const sterna_status status =
      capi::look_for(*find_current_rank(), sought, timeout_ns, nullptr, seen);
  if (status == STERNA_SUCCESS) {
    capi::tell_source(seen.source, seen.tag, envelope);
  }
  return status;
}

sterna_status sterna_unpack_begin(sterna_unpacking* unpacking, sterna_session* session,
                                  uint32_t rank, int32_t tag, sterna_envelope* envelope) noexcept {
  const RuntimeScope scope;
  if (const sterna_status bad =
          capi::check_source(session, rank, tag, unpacking != nullptr, __func__);
      bad != STERNA_SUCCESS) {
    return bad;
  }
  RankContext& self = *find_current_rank();
  if (capi::is_in_callback(self)) {
    return capi::refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", __func__);
  }
  sterna::runtime::safe_point(self);
  auto* const made = new (unpacking) Unpacking;
  made->source = rank;
  made->tag = tag;
  made->block = static_cast<std::byte*>(self.heap->allocate(capi::kPackBlockBytes));
  if (made->block == nullptr) {
    made->made = 0;
    return STERNA_OUT_OF_MEMORY;
  }
  made->session = capi::session_in(session);
  if (made->session != nullptr) {
    made->session->started.fetch_add(1, std::memory_order_relaxed);
  }
  const sterna_status status = capi::receive_head(self, *made);
  if (status != STERNA_SUCCESS) {
    (void)capi::refuse(status, "{}: {}: {}", __func__, capi::describe(*made),
                       sterna_status_text(status));
    capi::close(self, *made);
    return status;
  }
  capi::tell_source(made->source, made->tag, envelope);
  return STERNA_SUCCESS;
}

sterna_status sterna_unpack(sterna_unpacking* unpacking, void* buffer, size_t bytes,
                            sterna_pack_mode other, sterna_unpack_mode mode) noexcept {
  const RuntimeScope scope;
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  Unpacking* const own = capi::unpacking_in(unpacking);
  if (unpacking == nullptr || (buffer == nullptr && bytes != 0) ||
      !capi::are_pack_modes(other, mode)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT, "{}: NULL, or no modes of pieces", __func__);
  }
  if (own == nullptr) {
    return capi::refuse(STERNA_REFUSED, "{}: the unpacking has not begun", __func__);
  }
  if (capi::is_in_callback(*self)) {
    return capi::refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", __func__);
  }
  if (own->is_checked()) {
    const sterna_status bad =
        capi::take_head(*self, *own, {.bytes = bytes, .mode = other, .other = mode});
    if (bad != STERNA_SUCCESS) {
      return bad;
    }
  }
  return capi::is_short_piece(bytes, mode) ? capi::take_short(*self, *own, buffer, bytes)
                                           : capi::take_long(*self, *own, buffer, bytes, mode);
}

sterna_status sterna_unpack_end(sterna_unpacking* unpacking) noexcept {
  const RuntimeScope scope;
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  Unpacking* const own = capi::unpacking_in(unpacking);
  if (own == nullptr) {
    return capi::refuse(unpacking == nullptr ? STERNA_INVALID_ARGUMENT : STERNA_REFUSED,
                        "{}: the unpacking is NULL, or has not begun", __func__);
  }
  if (capi::is_in_callback(*self)) {
    return capi::refuse(STERNA_DEADLOCK, "{}: a callback of a message must not wait", __func__);
  }
  sterna_status status = capi::await_all(*self, *own);
  const bool has_rest = capi::drop_rest(*self, *own);
  if (status == STERNA_SUCCESS && own->fault == STERNA_SUCCESS && has_rest) {
    status = STERNA_TRUNCATED;
  }
  if (status != STERNA_SUCCESS) {
    (void)capi::refuse(
        status, "{}: {}: {}", __func__, capi::describe(*own),
        has_rest ? "not all that was packed was unpacked" : sterna_status_text(status));
  }
  capi::close(*self, *own);
  return status;
}
