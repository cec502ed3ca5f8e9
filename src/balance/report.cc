// Encoding and defensive decoding of reports and plans.
#include "balance/report.h"

namespace sterna::balance {

std::vector<std::byte> encode(const Report& report) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, kReportBytesMax};
  writer.f64(report.speed);
  writer.u32(static_cast<std::uint32_t>(report.ranks.size()));
  for (const RankLoad& rank : report.ranks) {
    writer.u32(rank.rank);
    writer.u64(rank.cpu_ns);
    writer.u64(rank.messages);
    writer.u64(rank.bytes);
    writer.boolean(rank.movable);
  }
  check(writer.ok(), "a report of a node fits kReportBytesMax");
  return bytes;
}

Result<Report> decode_report(std::span<const std::byte> bytes, std::uint32_t node,
                             std::uint32_t rank_count) {
  wire::Reader reader{bytes};
  Report report;
  report.speed = reader.f64();
  const std::uint32_t count = reader.count(29);
  for (std::uint32_t i = 0; reader.ok() && i < count; ++i) {
    RankLoad rank{};
    rank.rank = reader.u32();
    rank.node = node;
    rank.cpu_ns = reader.u64();
    rank.messages = reader.u64();
    rank.bytes = reader.u64();
    rank.movable = reader.boolean();
    if (rank.rank >= rank_count) {
      reader.refuse();
    }
    report.ranks.push_back(rank);
  }
  if (!reader.finished() || !(report.speed > 0.0) || report.speed > 1e6) {
    return Error{Errc::malformed, "a report of load that cannot be read"};
  }
  return report;
}

std::vector<std::byte> encode(const Plan& plan) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, kReportBytesMax};
  writer.u32(static_cast<std::uint32_t>(plan.size()));
  for (const Move& move : plan) {
    writer.u32(move.rank);
    writer.u32(move.from);
    writer.u32(move.to);
  }
  check(writer.ok(), "a plan fits kReportBytesMax");
  return bytes;
}

Result<Plan> decode_plan(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  Plan plan;
  const std::uint32_t count = reader.count(12);
  for (std::uint32_t i = 0; reader.ok() && i < count; ++i) {
    Move move{};
    move.rank = reader.u32();
    move.from = reader.u32();
    move.to = reader.u32();
    plan.push_back(move);
  }
  if (!reader.finished()) {
    return Error{Errc::malformed, "orders to move that cannot be read"};
  }
  return plan;
}

std::vector<std::byte> encode(const Arrived& arrived) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 13};
  writer.u32(arrived.rank);
  writer.u64(arrived.number);
  writer.boolean(arrived.has_ended);
  return bytes;
}

Result<Arrived> decode_arrived(std::span<const std::byte> bytes, std::uint32_t rank_count) {
  wire::Reader reader{bytes};
  Arrived arrived;
  arrived.rank = reader.u32();
  arrived.number = reader.u64();
  arrived.has_ended = reader.boolean();
  if (!reader.finished() || arrived.rank >= rank_count) {
    return Error{Errc::malformed, "a rank at a balance point that cannot be read"};
  }
  return arrived;
}

std::vector<std::byte> encode_release(std::uint64_t number) {
  std::vector<std::byte> bytes;
  wire::Writer writer{bytes, 8};
  writer.u64(number);
  return bytes;
}

Result<std::uint64_t> decode_release(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  const std::uint64_t number = reader.u64();
  if (!reader.finished()) {
    return Error{Errc::malformed, "the end of a balance point that cannot be read"};
  }
  return number;
}

}  // namespace sterna::balance
