// A call made by a rank: the reply goes to the rank, as notes that follow it when it moves.
//
// The call lies in the rank's slot, so its address is the same wherever the rank is. A note names
// that address and a random cookie; a note that fits neither (the call timed out meanwhile, or
// bytes of a stranger) changes nothing. Notes are not ordered, those of two replies to one call (a
// completion that is signalled twice) neither: each says which part of which reply it holds, and
// the reply of which a part comes first is the one that counts.
#include "rpc/rank_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/wire_fields.h"
#include "memory/rank_slot.h"
#include "net/buffer.h"
#include "progress/progress.h"
#include "rpc/handlers.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kNoteHeaderBytes = 37;
constexpr std::size_t kNoteBodyBytesMax = net::kRankNoteBytesMax - kNoteHeaderBytes;
constexpr std::size_t kReplyBytesMax = 16 << 20;
// A rank looks this often whether the node that should answer still lives.
constexpr std::uint64_t kLookNs = 100'000'000;

struct Note {
  std::uint64_t address = 0;
  std::uint64_t cookie = 0;
  std::uint64_t reply = 0;  // Which one: no two of a job have the same.
  bool is_error = false;
  std::uint32_t offset = 0;
  std::uint32_t total = 0;
  std::span<const std::byte> body;
};

void note_fields(auto& field, auto& note) noexcept {
  field.number(note.address);
  field.number(note.cookie);
  field.number(note.reply);
  field.boolean(note.is_error);
  field.number(note.offset);
  field.number(note.total);
  field.blob(note.body, kNoteBodyBytesMax);
  field.refuse_unless(note.total <= kReplyBytesMax && note.offset <= note.total &&
                      note.body.size() <= note.total - note.offset);
}

bool read(std::span<const std::byte> bytes, Note& note) noexcept {
  wire::Reader reader{bytes};
  wire::FieldReader field{reader};
  note_fields(field, note);
  return reader.finished();
}

}  // namespace

RankCall::~RankCall() {
  check(cookie_ == 0 && reply_ == nullptr, "a call of a rank is taken before its memory goes");
}

/// Whether a call can be at the address: what is mapped of the stack and of the system heap. Which
/// call it is, the cookie proves.
bool Rpc::may_hold_call(memory::RankSlot& slot, std::uintptr_t address) noexcept {
  const auto lies_in = [&](std::uintptr_t base, std::uint64_t bytes) {
    return address >= base && address - base <= bytes &&
           bytes - (address - base) >= sizeof(RankCall);
  };
  return address % alignof(RankCall) == 0 &&
         (lies_in(slot.stack.base, slot.stack.bytes) ||
          lies_in(slot.system_heap_region.base, slot.system_heap->mapped_bytes()));
}

void Rpc::on_rank_note(void* self, std::uint32_t rank, std::uint32_t,
                       std::span<const std::byte> bytes) noexcept {
  Note note;
  memory::RankSlot& slot = *memory::rank_slot_address(rank);
  if (!read(bytes, note) || note.cookie == 0 || !may_hold_call(slot, note.address)) {
    return;
  }
  const SpinGuard guard{static_cast<Rpc*>(self)->notes_lock_};
  auto& call = *reinterpret_cast<RankCall*>(note.address);
  if (call.cookie_ != note.cookie || call.done_.done()) {
    return;
  }
  if (call.reply_ == nullptr) {
    call.reply_ =
        static_cast<std::byte*>(slot.system_heap->allocate(std::max<std::size_t>(note.total, 1)));
    call.reply_number_ = note.reply;
    call.total_ = note.total;
    call.is_error_ = note.is_error;
  }
  if (call.reply_ == nullptr) {
    call.done_.complete();  // take() says that there was no memory.
    return;
  }
  if (call.reply_number_ != note.reply || call.total_ != note.total) {
    return;
  }
  net::copy_bytes(call.reply_ + note.offset, note.body.data(), note.body.size());
  call.received_ += static_cast<std::uint32_t>(note.body.size());
  if (call.received_ == call.total_) {
    call.done_.complete();
  }
}

void Rpc::reply_to_rank(const ReplyTo& to, const Result<Bytes>& result) {
  const Bytes body =
      result.has_value() ? Result<Bytes>{result}.value() : encode_error(result.error());
  Note note;
  note.address = to.id;
  note.cookie = to.cookie;
  note.reply = std::uint64_t{node_} << 32 | next_number();
  note.is_error = !result.has_value();
  note.total = static_cast<std::uint32_t>(std::min(body.size(), kReplyBytesMax));
  do {
    const std::size_t part = std::min(kNoteBodyBytesMax, note.total - std::size_t{note.offset});
    note.body = std::span{body}.subspan(note.offset, part);
    std::array<std::byte, net::kRankNoteBytesMax> memory;
    wire::Writer writer{memory};
    wire::FieldWriter field{writer};
    note_fields(field, note);
    check(writer.ok(), "a part of a reply fits a note");
    options_.transport->rank_message(to.rank, kRankHandler,
                                     std::span{memory}.first(writer.bytes()));
    note.offset += static_cast<std::uint32_t>(part);
  } while (note.offset < note.total);
}

Result<> Rpc::start(std::uint32_t node, std::string_view name, std::span<const std::byte> arguments,
                    RankCall& call) {
  Result<> sent = send_request(node, service_number(name), arguments, expect(call, node));
  if (!sent) {
    call.cookie_ = 0;
  }
  return sent;
}

ReplyTo Rpc::expect(RankCall& call, std::uint32_t node) {
  check(memory::rank_slot_of(&call) == call.slot_ &&
            may_hold_call(*call.slot_, reinterpret_cast<std::uintptr_t>(&call)),
        "a call of a rank lies on its stack or in its system heap");
  check(call.cookie_ == 0, "a call is taken before the next one starts");
  call.done_.reset();
  call.to_node_ = node;
  call.received_ = 0;
  // Never 0: the lowest bit is set.
  call.cookie_ = mix64(cycles() ^ reinterpret_cast<std::uintptr_t>(&call)) | 1;
  return {.node = node_,
          .rank = call.slot_->rank,
          .id = reinterpret_cast<std::uint64_t>(&call),
          .cookie = call.cookie_};
}

bool Rpc::wait(RankCall& call, const threads::WaitOptions& options) noexcept {
  while (!call.done()) {
    if (is_lost(call.to_node_)) {
      return true;
    }
    threads::WaitOptions look = options;
    look.deadline_ns = std::min(options.deadline_ns, now_ns() + kLookNs);
    const threads::Wake wake = call.done_.wait_for(*options_.progress, look);
    if (wake == threads::Wake::interrupted || wake == threads::Wake::cancelled ||
        (wake == threads::Wake::timed_out && now_ns() >= options.deadline_ns)) {
      return call.done();
    }
  }
  return true;
}

Result<Bytes> Rpc::take(RankCall& call) {
  {
    const SpinGuard guard{notes_lock_};
    call.cookie_ = 0;  // Notes that come later find nothing.
  }
  std::byte* const reply = std::exchange(call.reply_, nullptr);
  Result<Bytes> result = Bytes{};
  if (!call.done()) {
    result = is_lost(call.to_node_)
                 ? Error{Errc::closed, fmt::format("node {} is gone", call.to_node_)}
                 : Error{Errc::timed_out, fmt::format("node {} did not answer", call.to_node_)};
  } else if (reply == nullptr) {
    result = Error{Errc::out_of_memory,
                   fmt::format("rank {}: no memory for an answer", call.slot_->rank)};
  } else {
    const Bytes body{reply, reply + call.total_};
    result = call.is_error_ ? Result<Bytes>{decode_error(body)} : Result<Bytes>{body};
  }
  call.slot_->system_heap->deallocate(reply);
  return result;
}

Result<Bytes> Rpc::call_from_rank(std::uint32_t node, std::string_view name,
                                  std::span<const std::byte> arguments, std::uint64_t deadline_ns) {
  RankCall call{*memory::rank_slot_of(__builtin_frame_address(0))};
  if (Result<> sent = start(node, name, arguments, call); !sent) {
    return sent.error();
  }
  (void)wait(call, {.deadline_ns = deadline_ns});
  return take(call);
}

}  // namespace sterna::rpc
