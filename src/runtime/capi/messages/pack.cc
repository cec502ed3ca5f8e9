// pack.h: the sender's side.
#include "runtime/capi/messages/pack.h"

#include <atomic>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "net/buffer.h"
#include "net/endpoint.h"
#include "net/transport.h"
#include "runtime/capi/messages/message_callback.h"
#include "runtime/capi/messages/message_request.h"
#include "runtime/capi/messages/piece_head.h"
#include "runtime/capi/program.h"
#include "runtime/capi/threads/handle.h"
#include "runtime/runtime.h"
#include "runtime/safe_point.h"
#include "runtime/scope.h"

namespace sterna::runtime::capi {
namespace {

/// One message of the transport: a block, or a long piece. In the heap of the rank; the bytes of a
/// block, or a copy, lie behind it.
struct PackedPart {
  PackedPart* next = nullptr;
  const void* data = nullptr;
  std::size_t bytes = 0;
  net::SendRequest send;
};

/// A short piece that is read at the end.
struct LaterPiece {
  LaterPiece* next;
  const void* data;
  std::size_t bytes;
  std::byte* place;  // In its block.
};

/// In memory of the program, whose thread at a time is the guard; iso-addresses only.
struct Packing {
  static constexpr std::uint32_t kMade = 0x9ac4'ed01;

  std::uint32_t made = kMade;
  bool has_ended = false;   // The parts are being sent.
  bool is_checked = false;  // Pieces have heads: the setting pack_checks.
  std::uint32_t rank = 0;
  std::int32_t tag = 0;
  MessageSession* session = nullptr;
  PackedPart* first = nullptr;  // The head.
  PackedPart* last = nullptr;
  PackedPart* block = nullptr;  // Where short pieces go.
  LaterPiece* later = nullptr;
  std::uint32_t parts = 0;  // Besides the head.
};
static_assert(sizeof(Packing) <= sizeof(sterna_packing));

Packing* packing_in(sterna_packing* storage) noexcept {
  auto* const packing = reinterpret_cast<Packing*>(storage);
  return packing != nullptr && packing->made == Packing::kMade ? packing : nullptr;
}

std::byte* room_of(PackedPart& part) noexcept {
  return reinterpret_cast<std::byte*>(&part + 1);
}

/// Null: no memory. With `room` bytes behind it, which are its data if there are any.
PackedPart* add_part(RankContext& rank, Packing& packing, std::size_t room) noexcept {
  void* const memory = rank.heap->allocate(sizeof(PackedPart) + room);
  if (memory == nullptr) {
    return nullptr;
  }
  auto* const part = ::new (memory) PackedPart;
  part->data = room_of(*part);
  (packing.last != nullptr ? packing.last->next : packing.first) = part;
  packing.parts += packing.last != nullptr ? 1 : 0;
  packing.last = part;
  return part;
}

/// Gives all back. None is under way.
void free_all(RankContext& rank, Packing& packing) noexcept {
  while (PackedPart* const part = packing.first) {
    packing.first = part->next;
    rank.heap->deallocate(part);
  }
  while (LaterPiece* const piece = packing.later) {
    packing.later = piece->next;
    rank.heap->deallocate(piece);
  }
  if (packing.session != nullptr) {
    packing.session->started.fetch_sub(1, std::memory_order_relaxed);
  }
  packing.made = 0;
}

/// The bytes that a piece takes of a block besides its own.
std::size_t head_bytes(const Packing& packing) noexcept {
  return packing.is_checked ? kPieceHeadBytes : 0;
}

/// Room in the block for so much more, if need be a new block. Null: no memory.
std::byte* room_in_block(RankContext& rank, Packing& packing, std::size_t bytes) noexcept {
  if (packing.block->bytes + bytes > kPackBlockBytes) {
    PackedPart* const block = add_part(rank, packing, kPackBlockBytes);
    if (block == nullptr) {
      return nullptr;
    }
    packing.block = block;
  }
  return room_of(*packing.block) + packing.block->bytes;
}

/// The piece is there: its head, if it has one, and `bytes` more of the block are used.
void count_in_block(Packing& packing, std::byte* place, const PieceHead& head,
                    std::size_t bytes) noexcept {
  if (packing.is_checked) {
    encode(head, place);
  }
  packing.block->bytes += head_bytes(packing) + bytes;
}

/// False: no memory, nothing happened but that a block may be there.
bool add_short(RankContext& rank, Packing& packing, const void* data,
               const PieceHead& piece) noexcept {
  const std::size_t bytes = piece.bytes;
  std::byte* const place = room_in_block(rank, packing, head_bytes(packing) + bytes);
  if (place == nullptr) {
    return false;
  }
  std::byte* const to = place + head_bytes(packing);
  if (piece.mode == STERNA_PACK_LATER && bytes != 0) {
    void* const memory = rank.heap->allocate(sizeof(LaterPiece));
    if (memory == nullptr) {
      return false;
    }
    packing.later = ::new (memory) LaterPiece{packing.later, data, bytes, to};
  } else if (bytes != 0) {
    net::copy_bytes(to, static_cast<const std::byte*>(data), bytes);
  }
  count_in_block(packing, place, piece, bytes);
  return true;
}

bool add_long(RankContext& rank, Packing& packing, const void* data,
              const PieceHead& piece) noexcept {
  // First, as a block that begins with the head of the piece comes before the piece.
  std::byte* const place = room_in_block(rank, packing, head_bytes(packing));
  const bool is_copied = piece.mode == STERNA_PACK_SAFER;
  PackedPart* const part =
      place != nullptr ? add_part(rank, packing, is_copied ? piece.bytes : 0) : nullptr;
  if (part == nullptr) {
    return false;
  }
  part->bytes = piece.bytes;
  if (is_copied) {
    net::copy_bytes(room_of(*part), static_cast<const std::byte*>(data), piece.bytes);
  } else {
    part->data = data;
  }
  count_in_block(packing, place, piece, 0);
  return true;
}

/// The numbers of one rank differ as long as there are fewer than 2^20 messages under way that it
/// has sent from one node, and it has moved less than 2^11 times meanwhile: each node counts alone.
std::uint32_t next_number(const RankContext& rank) noexcept {
  static constinit std::atomic<std::uint32_t> count{0};
  return (rank.endpoint->epoch & 0x7ff) << 20 |
         (count.fetch_add(1, std::memory_order_relaxed) & 0xf'ffff);
}

void send_all(RankContext& rank, Packing& packing) noexcept {
  for (const LaterPiece* piece = packing.later; piece != nullptr; piece = piece->next) {
    net::copy_bytes(piece->place, static_cast<const std::byte*>(piece->data), piece->bytes);
  }
  const PackHeader header{.number = next_number(rank),
                          .parts = packing.parts | (packing.is_checked ? kPackChecked : 0)};
  std::memcpy(room_of(*packing.first), &header, sizeof header);
  packing.has_ended = true;
  for (PackedPart* part = packing.first; part != nullptr; part = part->next) {
    const bool is_head = part == packing.first;
    const std::uint32_t context =
        context_of(packing.session, is_head ? ContextUse::pack_heads : ContextUse::pack_parts);
    rank.transport->send(*rank.endpoint, part->send,
                         {.rank = packing.rank,
                          .context = context,
                          .tag = is_head ? packing.tag : static_cast<std::int32_t>(header.number)},
                         net::Buffer::of(part->data, part->bytes));
  }
}

/// All parts are done: how they were.
sterna_status end(RankContext& rank, Packing& packing, const char* call) noexcept {
  sterna_status status = STERNA_SUCCESS;
  for (const PackedPart* part = packing.first; part != nullptr; part = part->next) {
    status = status == STERNA_SUCCESS ? to_status(part->send.fault) : status;
  }
  if (status != STERNA_SUCCESS) {
    (void)refuse(status, "{}: the message to rank {} with tag {}{}: {}", call, packing.rank,
                 packing.tag, words_for(packing.session), sterna_status_text(status));
  }
  free_all(rank, packing);
  return status;
}

/// use(rank, packing), or why not, with a text.
template <typename Use>
sterna_status with(sterna_packing* storage, const char* call, Use use) noexcept {
  RankContext* const rank = find_current_rank();
  if (rank == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  Packing* const packing = packing_in(storage);
  return packing == nullptr ? refuse(storage == nullptr ? STERNA_INVALID_ARGUMENT : STERNA_REFUSED,
                                     "{}: the packing is NULL, or has not begun", call)
                            : use(*rank, *packing);
}

sterna_status refuse_ended(const Packing& packing, const char* call) noexcept {
  return refuse(STERNA_REFUSED, "{}: the end of the message to rank {} with tag {}{} has begun",
                call, packing.rank, packing.tag, words_for(packing.session));
}

}  // namespace
}  // namespace sterna::runtime::capi

namespace capi = sterna::runtime::capi;
using capi::Packing;
using sterna::runtime::find_current_rank;
using sterna::runtime::RankContext;
using sterna::runtime::RuntimeScope;

sterna_status sterna_pack_begin(sterna_packing* packing, sterna_session* session, uint32_t rank,
                                int32_t tag) noexcept {
  const RuntimeScope scope;
  RankContext* const self = find_current_rank();
  if (self == nullptr) {
    return capi::refuse_not_started(__func__);
  }
  capi::MessageSession* const own = capi::session_in(session);
  if (packing == nullptr || rank >= self->size || tag < 0 ||
      (session != nullptr && own == nullptr)) {
    return capi::refuse(STERNA_INVALID_ARGUMENT,
                        "{}: the packing is NULL, rank {} or tag {} out of range, or the session "
                        "not open",
                        __func__, rank, tag);
  }
  auto* const made = new (packing) Packing;
  made->rank = rank;
  made->tag = tag;
  made->is_checked = self->runtime->checks_packs();
  made->block = capi::add_part(*self, *made, capi::kPackBlockBytes);
  if (made->block == nullptr) {
    made->made = 0;
    return STERNA_OUT_OF_MEMORY;
  }
  made->block->bytes = sizeof(capi::PackHeader);
  made->session = own;
  if (own != nullptr) {
    own->started.fetch_add(1, std::memory_order_relaxed);
  }
  return STERNA_SUCCESS;
}

sterna_status sterna_pack(sterna_packing* packing, const void* data, size_t bytes,
                          sterna_pack_mode mode, sterna_unpack_mode other) noexcept {
  const RuntimeScope scope;
  return capi::with(packing, __func__, [&](RankContext& rank, Packing& own) noexcept {
    if ((data == nullptr && bytes != 0) || !capi::are_pack_modes(mode, other) ||
        bytes > capi::kMessageBytesMax) {
      return capi::refuse(STERNA_INVALID_ARGUMENT,
                          "sterna_pack: NULL, no modes of pieces, or more bytes than there can be");
    }
    if (own.has_ended) {
      return capi::refuse_ended(own, "sterna_pack");
    }
    const capi::PieceHead piece{.bytes = bytes, .mode = mode, .other = other};
    const bool is_added = capi::is_short_piece(bytes, other)
                              ? capi::add_short(rank, own, data, piece)
                              : capi::add_long(rank, own, data, piece);
    return is_added ? STERNA_SUCCESS : STERNA_OUT_OF_MEMORY;
  });
}

sterna_status sterna_pack_start_end(sterna_packing* packing) noexcept {
  const RuntimeScope scope;
  return capi::with(packing, __func__, [](RankContext& rank, Packing& own) noexcept {
    if (own.has_ended) {
      return capi::refuse_ended(own, "sterna_pack_start_end");
    }
    capi::send_all(rank, own);
    return STERNA_SUCCESS;
  });
}

sterna_status sterna_pack_end(sterna_packing* packing) noexcept {
  const RuntimeScope scope;
  return capi::with(packing, __func__, [](RankContext& rank, Packing& own) noexcept {
    if (capi::is_in_callback(rank)) {
      return capi::refuse(STERNA_DEADLOCK,
                          "sterna_pack_end: a callback of a message must not wait");
    }
    sterna::runtime::safe_point(rank);
    if (!own.has_ended) {
      capi::send_all(rank, own);
    }
    for (capi::PackedPart* part = own.first; part != nullptr; part = part->next) {
      (void)capi::wait_until(rank, part->send.done, sterna::kNever);
    }
    return capi::end(rank, own, "sterna_pack_end");
  });
}

sterna_status sterna_pack_test_end(sterna_packing* packing, int* done) noexcept {
  const RuntimeScope scope;
  return capi::with(packing, __func__, [&](RankContext& rank, Packing& own) noexcept {
    if (done == nullptr || !own.has_ended) {
      return capi::refuse(done == nullptr ? STERNA_INVALID_ARGUMENT : STERNA_REFUSED,
                          "sterna_pack_test_end: the end has not begun (sterna_pack_start_end)");
    }
    const auto is_done = [&]() noexcept {
      const capi::PackedPart* part = own.first;
      while (part != nullptr && part->send.done.done()) {
        part = part->next;
      }
      return part == nullptr;
    };
    if (!is_done()) {
      capi::test_in_vain(rank);
    }
    *done = is_done() ? 1 : 0;
    return *done != 0 ? capi::end(rank, own, "sterna_pack_test_end") : STERNA_SUCCESS;
  });
}

sterna_status sterna_pack_cancel(sterna_packing* packing) noexcept {
  const RuntimeScope scope;
  return capi::with(packing, __func__, [](RankContext& rank, Packing& own) noexcept {
    if (own.has_ended) {
      return capi::refuse_ended(own, "sterna_pack_cancel");
    }
    capi::free_all(rank, own);
    return STERNA_SUCCESS;
  });
}
