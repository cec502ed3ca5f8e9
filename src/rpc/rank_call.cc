// A call made by a rank: the reply goes to the rank, as notes that follow it when it moves.
//
// The call lies on the rank's stack, so its address is the same wherever the rank is. A note names
// that address and a random cookie; a note that fits neither (the call timed out meanwhile, or
// bytes of a stranger) changes nothing. Notes are not ordered: each says which part of the reply it
// holds.
#include <algorithm>
#include <array>

#include "base/clock.h"
#include "base/hash.h"
#include "memory/rank_slot.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kNoteHeaderBytes = 29;
constexpr std::size_t kNoteBodyBytesMax = net::kRankNoteBytesMax - kNoteHeaderBytes;
constexpr std::size_t kReplyBytesMax = 16 << 20;
// A rank looks this often whether the node that should answer still lives.
constexpr std::uint64_t kLookNs = 100'000'000;

struct Note {
  std::uint64_t address = 0;
  std::uint64_t cookie = 0;
  bool is_error = false;
  std::uint32_t offset = 0;
  std::uint32_t total = 0;
  std::span<const std::byte> body;
};

void write(wire::Writer& writer, const Note& note) noexcept {
  writer.u64(note.address);
  writer.u64(note.cookie);
  writer.boolean(note.is_error);
  writer.u32(note.offset);
  writer.u32(note.total);
  writer.blob(note.body);
}

bool read(wire::Reader& reader, Note& note) noexcept {
  note.address = reader.u64();
  note.cookie = reader.u64();
  note.is_error = reader.boolean();
  note.offset = reader.u32();
  note.total = reader.u32();
  note.body = reader.blob(kNoteBodyBytesMax);
  return reader.finished() && note.total <= kReplyBytesMax && note.offset <= note.total &&
         note.body.size() <= note.total - note.offset;
}

}  // namespace

/// In the rank's slot. Guard: Rpc::notes_lock_, until `done` or the withdrawal; the lock is not in
/// here because a late note would take it in a frame that is not there any more.
struct Rpc::RankCall {
  std::uint64_t cookie = 0;
  progress::Completion done;
  bool is_error = false;
  std::uint32_t total = 0;
  std::uint32_t received = 0;
  std::byte* reply = nullptr;  // In the system heap; null before the first note.
  memory::Heap* heap = nullptr;
};

void Rpc::on_rank_note(void* self, std::uint32_t rank, std::uint32_t,
                       std::span<const std::byte> bytes) noexcept {
  wire::Reader reader{bytes};
  Note note;
  const memory::RankSlot* slot = memory::rank_slot_address(rank);
  if (!read(reader, note) || note.address % alignof(RankCall) != 0 ||
      !slot->stack.contains(note.address)) {
    return;
  }
  const SpinGuard guard{static_cast<Rpc*>(self)->notes_lock_};
  auto* call = reinterpret_cast<RankCall*>(note.address);
  if (call->cookie != note.cookie || call->done.done()) {
    return;
  }
  if (call->reply == nullptr) {
    call->reply =
        static_cast<std::byte*>(call->heap->allocate(std::max<std::size_t>(note.total, 1)));
    call->total = note.total;
    call->is_error = note.is_error;
  }
  if (call->reply == nullptr) {
    call->is_error = true;
    call->total = 0;  // No memory for the reply: an error without a text.
    call->done.complete();
    return;
  }
  if (call->total != note.total) {
    return;
  }
  std::ranges::copy(note.body, call->reply + note.offset);
  call->received += static_cast<std::uint32_t>(note.body.size());
  if (call->received == call->total) {
    call->done.complete();
  }
}

void Rpc::reply_to_rank(const ReplyTo& to, const Result<Bytes>& result) {
  const Bytes body =
      result.has_value() ? Result<Bytes>{result}.value() : encode_error(result.error());
  Note note;
  note.address = to.id;
  note.cookie = to.cookie;
  note.is_error = !result.has_value();
  note.total = static_cast<std::uint32_t>(std::min(body.size(), kReplyBytesMax));
  do {
    const std::size_t part = std::min(kNoteBodyBytesMax, note.total - std::size_t{note.offset});
    note.body = std::span{body}.subspan(note.offset, part);
    std::array<std::byte, net::kRankNoteBytesMax> memory;
    wire::Writer writer{memory};
    write(writer, note);
    check(writer.ok(), "a part of a reply fits a note");
    options_.transport->rank_message(to.rank, kRankHandler,
                                     std::span{memory}.first(writer.bytes()));
    note.offset += static_cast<std::uint32_t>(part);
  } while (note.offset < note.total);
}

Result<Bytes> Rpc::call_from_rank(std::uint32_t node, std::string_view name,
                                  std::span<const std::byte> arguments, std::uint64_t deadline_ns) {
  memory::RankSlot* slot = memory::rank_slot_of(__builtin_frame_address(0));
  RankCall call;
  call.heap = slot->system_heap;
  call.cookie = mix64(cycles() ^ reinterpret_cast<std::uintptr_t>(&call));
  ReplyTo reply_to{.node = options_.transport->job().node_index,
                   .rank = slot->rank,
                   .id = reinterpret_cast<std::uint64_t>(&call),
                   .cookie = call.cookie};
  if (Result<> sent = send_request(node, name, arguments, reply_to); !sent) {
    return sent.error();
  }
  Result<Bytes> result =
      Error{Errc::timed_out, fmt::format("node {} did not answer {}", node, name)};
  for (;;) {
    const std::uint64_t look_ns = std::min(deadline_ns, now_ns() + kLookNs);
    if (call.done.done() || call.done.wait_for(*options_.progress, {.deadline_ns = look_ns}) ==
                                threads::Wake::signalled) {
      if (call.reply == nullptr) {
        result = Error{Errc::out_of_memory,
                       fmt::format("rank {}: no memory for the answer of {}", slot->rank, name)};
        break;
      }
      const Bytes body{call.reply, call.reply + call.total};
      result = call.is_error ? Result<Bytes>{decode_error(body)} : Result<Bytes>{body};
      break;
    }
    bool is_lost = false;
    {
      const SpinGuard guard{lock_};
      is_lost = lost_[node];
    }
    if (is_lost) {
      result = Error{Errc::closed, fmt::format("node {} is gone", node)};
      break;
    }
    if (now_ns() >= deadline_ns) {
      break;
    }
  }
  {
    const SpinGuard guard{notes_lock_};
    call.cookie = 0;  // Notes that come later find nothing.
  }
  call.heap->deallocate(call.reply);
  return result;
}

}  // namespace sterna::rpc
