// How the messages of the control channel about ranks are written and read: ends, output, status,
// moves.
#include <algorithm>
#include <cstring>

#include "runtime/control_frame.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kThreadNameBytesMax = 64;
constexpr std::size_t kSentenceBytesMax = 256;
constexpr std::size_t kTextBytesMin = 4;
constexpr std::size_t kEntityBytesMin = 6 + 3 * kTextBytesMin;

void read_entity_status(wire::Reader& reader, EntityStatus& status) {
  status.depth = reader.u32();
  status.is_bubble = reader.boolean();
  status.name = reader.text(kSentenceBytesMax);
  status.state = reader.text(kSentenceBytesMax);
  status.place = reader.text(kSentenceBytesMax);
  status.priority = reader.u8();
}

void read_rank_status(wire::Reader& reader, RankStatus& status) {
  status.rank = reader.u32();
  status.state = reader.text(kSentenceBytesMax);
  status.cpu_ns = reader.u64();
  status.load = reader.f64();
  status.messages = reader.u64();
  status.moves = reader.u32();
  status.activity = reader.text(kSentenceBytesMax);
  status.worker = reader.u32();
  status.refusal = reader.text(kSentenceBytesMax);
}

std::string_view shortened(std::string_view text, std::size_t bytes_max) {
  return text.substr(0, bytes_max);
}

}  // namespace

Frame encode(const RankEnd& end) {
  FrameWriter frame{FrameKind::ended};
  frame->u32(end.rank);
  frame->i32(end.exit_code);
  return frame.finish();
}

Result<RankEnd> decode_ended(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankEnd end;
  end.rank = reader.u32();
  end.exit_code = reader.i32();
  return finish(reader, end, "ended");
}

Frame encode(const RankAbort& abort) {
  FrameWriter frame{FrameKind::abort};
  frame->u32(abort.rank);
  frame->i32(abort.code);
  frame->text(shortened(abort.text, kControlTextBytesMax));
  return frame.finish();
}

Result<RankAbort> decode_abort(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankAbort abort;
  abort.rank = reader.u32();
  abort.code = reader.i32();
  abort.text = reader.text(kControlTextBytesMax);
  return finish(reader, std::move(abort), "abort");
}

std::size_t encode_crash(const RankCrash& crash,
                         std::span<std::byte, kCrashFrameBytesMax> memory) noexcept {
  wire::Writer writer{memory};
  writer.u32(0);
  writer.u16(static_cast<std::uint16_t>(FrameKind::crash));
  writer.u16(0);
  writer.u32(crash.rank);
  writer.i32(crash.signal);
  writer.u64(crash.address);
  writer.u64(crash.instruction);
  writer.text(shortened(crash.thread, kThreadNameBytesMax));
  writer.text(shortened(crash.text, kSentenceBytesMax));
  check(writer.ok(), "a crash report stays within its bound");
  const auto body_bytes = static_cast<std::uint32_t>(writer.bytes() - kFrameHeaderBytes);
  std::memcpy(memory.data(), &body_bytes, sizeof body_bytes);
  return writer.bytes();
}

Result<RankCrash> decode_crash(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankCrash crash;
  crash.rank = reader.u32();
  crash.signal = reader.i32();
  crash.address = reader.u64();
  crash.instruction = reader.u64();
  crash.thread = reader.text(kThreadNameBytesMax);
  crash.text = reader.text(kSentenceBytesMax);
  return finish(reader, crash, "crash");
}

Frame encode(const RankOutput& output) {
  check(output.bytes.size() <= kOutputBytesMax, "an output message stays within its bound");
  FrameWriter frame{FrameKind::output};
  frame->u32(output.rank);
  frame->u8(static_cast<std::uint8_t>(output.stream));
  frame->blob(output.bytes);
  return frame.finish();
}

Result<RankOutput> decode_output(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankOutput output;
  output.rank = reader.u32();
  const std::uint8_t stream = reader.u8();
  if (stream != 1 && stream != 2) {
    reader.refuse();
  }
  output.stream = static_cast<OutputStream>(stream);
  output.bytes = reader.blob(kOutputBytesMax);
  return finish(reader, output, "output");
}

Frame encode(const NodeStatus& status) {
  FrameWriter frame{FrameKind::status};
  frame->u32(status.node);
  frame->u32(status.workers);
  frame->boolean(status.is_final);
  frame->u64(status.cpu_ns);
  frame->u64(status.arrived);
  frame->u64(status.left);
  frame->u32(status.threads);
  frame->u32(static_cast<std::uint32_t>(status.busy_ns.size()));
  for (const std::uint64_t busy_ns : status.busy_ns) {
    frame->u64(busy_ns);
  }
  frame->u32(static_cast<std::uint32_t>(status.ranks.size()));
  for (const RankStatus& rank : status.ranks) {
    frame->u32(rank.rank);
    frame->text(shortened(rank.state, kSentenceBytesMax));
    frame->u64(rank.cpu_ns);
    frame->f64(rank.load);
    frame->u64(rank.messages);
    frame->u32(rank.moves);
    frame->text(shortened(rank.activity, kSentenceBytesMax));
    frame->u32(rank.worker);
    frame->text(shortened(rank.refusal, kSentenceBytesMax));
  }
  frame->u32(static_cast<std::uint32_t>(status.refusals.size()));
  for (const auto& [reason, count] : status.refusals) {
    frame->text(shortened(reason, kSentenceBytesMax));
    frame->u64(count);
  }
  frame->u32(static_cast<std::uint32_t>(status.entities.size()));
  for (const EntityStatus& entity : status.entities) {
    frame->u32(entity.depth);
    frame->boolean(entity.is_bubble);
    frame->text(shortened(entity.name, kSentenceBytesMax));
    frame->text(shortened(entity.state, kSentenceBytesMax));
    frame->text(shortened(entity.place, kSentenceBytesMax));
    frame->u8(entity.priority);
  }
  frame->u32(static_cast<std::uint32_t>(status.faults.size()));
  for (const std::string& fault : status.faults) {
    frame->text(shortened(fault, kSentenceBytesMax));
  }
  return frame.finish();
}

Result<NodeStatus> decode_status(std::span<const std::byte> body) {
  wire::Reader reader{body};
  NodeStatus status;
  status.node = reader.u32();
  status.workers = reader.u32();
  status.is_final = reader.boolean();
  status.cpu_ns = reader.u64();
  status.arrived = reader.u64();
  status.left = reader.u64();
  status.threads = reader.u32();
  const std::uint32_t worker_count = reader.count(8);
  for (std::uint32_t i = 0; i < worker_count && reader.ok(); ++i) {
    status.busy_ns.push_back(reader.u64());
  }
  const std::uint32_t rank_count = reader.count(48);
  for (std::uint32_t i = 0; i < rank_count && reader.ok(); ++i) {
    read_rank_status(reader, status.ranks.emplace_back());
  }
  const std::uint32_t refusal_count = reader.count(12);
  for (std::uint32_t i = 0; i < refusal_count && reader.ok(); ++i) {
    std::string reason{reader.text(kSentenceBytesMax)};
    status.refusals.emplace_back(std::move(reason), reader.u64());
  }
  const std::uint32_t entity_count = reader.count(kEntityBytesMin);
  for (std::uint32_t i = 0; i < entity_count && reader.ok(); ++i) {
    read_entity_status(reader, status.entities.emplace_back());
  }
  const std::uint32_t fault_count = reader.count(kTextBytesMin);
  for (std::uint32_t i = 0; i < fault_count && reader.ok(); ++i) {
    status.faults.emplace_back(reader.text(kSentenceBytesMax));
  }
  return finish(reader, std::move(status), "status");
}

Frame encode(const MoveOrder& order) {
  FrameWriter frame{FrameKind::move};
  frame->u32(order.rank);
  frame->u32(order.node);
  return frame.finish();
}

Result<MoveOrder> decode_move(std::span<const std::byte> body) {
  wire::Reader reader{body};
  MoveOrder order;
  order.rank = reader.u32();
  order.node = reader.u32();
  return finish(reader, order, "move");
}

Frame encode(const RankMove& move) {
  FrameWriter frame{FrameKind::moved};
  frame->u32(move.rank);
  frame->u32(move.node);
  frame->u64(move.move);
  return frame.finish();
}

Result<RankMove> decode_moved(std::span<const std::byte> body) {
  wire::Reader reader{body};
  RankMove move;
  move.rank = reader.u32();
  move.node = reader.u32();
  move.move = reader.u64();
  return finish(reader, move, "moved");
}

}  // namespace sterna::runtime
