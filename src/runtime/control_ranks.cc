// The messages of the control channel about ranks: ends, output, status, moves. Each has one list
// of its fields for both directions.
#include <cstring>

#include "runtime/control_frame.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kThreadNameBytesMax = 64;
constexpr std::size_t kSentenceBytesMax = 256;
constexpr std::size_t kTextBytesMin = 4;
constexpr std::size_t kRankBytesMin = 36 + 3 * kTextBytesMin;
constexpr std::size_t kEntityBytesMin = 58 + 4 * kTextBytesMin;
constexpr std::size_t kRefusalBytesMin = 8 + kTextBytesMin;

constexpr auto kRankEnd = [](auto& field, auto& end) {
  field.number(end.rank);
  field.number(end.exit_code);
  field.boolean(end.is_initialized);
  field.boolean(end.is_finalized);
};

constexpr auto kRankAbort = [](auto& field, auto& abort) {
  field.number(abort.rank);
  field.number(abort.code);
  field.text(abort.text, kControlTextBytesMax);
};

constexpr auto kRankCrash = [](auto& field, auto& crash) {
  field.number(crash.rank);
  field.number(crash.signal);
  field.number(crash.address);
  field.number(crash.instruction);
  field.text(crash.thread, kThreadNameBytesMax);
  field.text(crash.text, kSentenceBytesMax);
};

constexpr auto kRankOutput = [](auto& field, auto& output) {
  field.number(output.rank);
  field.choice(output.stream, OutputStream::output, OutputStream::error);
  field.blob(output.bytes, kOutputBytesMax);
};

constexpr auto kRankStatus = [](auto& field, auto& rank) {
  field.number(rank.rank);
  field.text(rank.state, kSentenceBytesMax);
  field.number(rank.cpu_ns);
  field.number(rank.load);
  field.number(rank.messages);
  field.number(rank.moves);
  field.text(rank.activity, kSentenceBytesMax);
  field.number(rank.worker);
  field.text(rank.refusal, kSentenceBytesMax);
};

constexpr auto kEntityStatus = [](auto& field, auto& entity) {
  field.number(entity.depth);
  field.boolean(entity.is_bubble);
  field.text(entity.name, kSentenceBytesMax);
  field.text(entity.state, kSentenceBytesMax);
  field.text(entity.place, kSentenceBytesMax);
  field.number(entity.priority);
  field.number(entity.key);
  field.number(entity.holder);
  field.number(entity.cpu_ns);
  field.number(entity.load);
  field.number(entity.memory);
  field.text(entity.last_place, kSentenceBytesMax);
  field.number(entity.threads);
  field.number(entity.running);
  field.number(entity.ready);
};

constexpr auto kNodeStatus = [](auto& field, auto& status) {
  field.number(status.node);
  field.number(status.workers);
  field.boolean(status.is_final);
  field.number(status.cpu_ns);
  field.number(status.arrived);
  field.number(status.left);
  field.number(status.threads);
  field.list(status.busy_ns, sizeof(std::uint64_t),
             [](auto& each, auto& busy_ns) { each.number(busy_ns); });
  field.list(status.ranks, kRankBytesMin, kRankStatus);
  field.list(status.refusals, kRefusalBytesMin, [](auto& each, auto& refusal) {
    each.text(refusal.first, kSentenceBytesMax);
    each.number(refusal.second);
  });
  field.list(status.entities, kEntityBytesMin, kEntityStatus);
  field.list(status.faults, kTextBytesMin,
             [](auto& each, auto& fault) { each.text(fault, kSentenceBytesMax); });
};

constexpr auto kMoveOrder = [](auto& field, auto& order) {
  field.number(order.rank);
  field.number(order.node);
};

constexpr auto kRankMove = [](auto& field, auto& move) {
  field.number(move.rank);
  field.number(move.node);
  field.number(move.move);
};

}  // namespace

Frame encode(const RankEnd& end) {
  return write_frame(FrameKind::ended, end, kRankEnd);
}
Result<RankEnd> decode_ended(std::span<const std::byte> body) {
  return read_body<RankEnd>(body, "ended", kRankEnd);
}

Frame encode(const RankAbort& abort) {
  return write_frame(FrameKind::abort, abort, kRankAbort);
}
Result<RankAbort> decode_abort(std::span<const std::byte> body) {
  return read_body<RankAbort>(body, "abort", kRankAbort);
}

std::size_t encode_crash(const RankCrash& crash,
                         std::span<std::byte, kCrashFrameBytesMax> memory) noexcept {
  wire::Writer writer{memory};
  writer.u32(0);
  writer.u16(static_cast<std::uint16_t>(FrameKind::crash));
  writer.u16(0);
  wire::FieldWriter field{writer};
  kRankCrash(field, crash);
  check(writer.ok(), "a crash report stays within its bound");
  const auto body_bytes = static_cast<std::uint32_t>(writer.bytes() - kFrameHeaderBytes);
  std::memcpy(memory.data(), &body_bytes, sizeof body_bytes);
  return writer.bytes();
}
Result<RankCrash> decode_crash(std::span<const std::byte> body) {
  return read_body<RankCrash>(body, "crash", kRankCrash);
}

Frame encode(const RankOutput& output) {
  check(output.bytes.size() <= kOutputBytesMax, "an output message stays within its bound");
  return write_frame(FrameKind::output, output, kRankOutput);
}
Result<RankOutput> decode_output(std::span<const std::byte> body) {
  return read_body<RankOutput>(body, "output", kRankOutput);
}

Frame encode(const NodeStatus& status) {
  return write_frame(FrameKind::status, status, kNodeStatus);
}
Result<NodeStatus> decode_status(std::span<const std::byte> body) {
  return read_body<NodeStatus>(body, "status", kNodeStatus);
}

Frame encode(const MoveOrder& order) {
  return write_frame(FrameKind::move, order, kMoveOrder);
}
Result<MoveOrder> decode_move(std::span<const std::byte> body) {
  return read_body<MoveOrder>(body, "move", kMoveOrder);
}

Frame encode(const RankMove& move) {
  return write_frame(FrameKind::moved, move, kRankMove);
}
Result<RankMove> decode_moved(std::span<const std::byte> body) {
  return read_body<RankMove>(body, "moved", kRankMove);
}

}  // namespace sterna::runtime
