// The messages of the control channel about ways: how a message would go, and why.
#include "runtime/control_frame.h"

namespace sterna::runtime {
namespace {

constexpr std::size_t kSentenceBytesMax = 4096;  // Those of strategies name each of 64 rails.
constexpr std::size_t kNameBytesMax = 1024;
constexpr std::size_t kTextBytesMin = 4;
constexpr std::size_t kThresholdBytesMin = 8 + kTextBytesMin;
constexpr std::size_t kCostBytesMin = 12 + 2 * kTextBytesMin;
constexpr std::size_t kShareBytesMin = 41 + 2 * kTextBytesMin;

constexpr auto kWayQuestion = [](auto& field, auto& question) {
  field.number(question.number);
  field.number(question.node);
  field.number(question.bytes);
  field.refuse_unless(question.bytes <= net::kExplainedBytesMax);
};

constexpr auto kThreshold = [](auto& field, auto& threshold) {
  field.text(threshold.name, kNameBytesMax);
  field.number(threshold.bytes);
};

constexpr auto kLearntCost = [](auto& field, auto& cost) {
  field.text(cost.name, kNameBytesMax);
  field.number(cost.value);
  field.text(cost.origin, kNameBytesMax);
  field.number(cost.corrections);
};

constexpr auto kRailShare = [](auto& field, auto& share) {
  field.text(share.name, kNameBytesMax);
  field.text(share.state, kNameBytesMax);
  field.boolean(share.is_measured);
  field.number(share.latency_ns);
  field.number(share.ps_per_byte);
  field.number(share.in_flight_bytes);
  field.number(share.bytes);
  field.number(share.ns);
};

constexpr auto kWayAnswer = [](auto& field, auto& answer) {
  auto& way = answer.way;
  field.number(answer.number);
  field.number(way.node);
  field.number(way.bytes);
  field.boolean(way.is_here);
  field.boolean(way.is_lost);
  field.text(way.driver, kNameBytesMax);
  field.text(way.strategy, kNameBytesMax);
  field.text(way.protocol, kSentenceBytesMax);
  field.text(way.forming, kSentenceBytesMax);
  field.text(way.choice, kSentenceBytesMax);
  field.text(way.copies, kSentenceBytesMax);
  field.list(way.thresholds, kThresholdBytesMin, kThreshold);
  field.list(way.costs, kCostBytesMin, kLearntCost);
  field.list(way.rails, kShareBytesMin, kRailShare);
};

}  // namespace

Frame encode(const WayQuestion& question) {
  return write_frame(FrameKind::explain, question, kWayQuestion);
}
Result<WayQuestion> decode_explain(std::span<const std::byte> body) {
  return read_body<WayQuestion>(body, "explain", kWayQuestion);
}

Frame encode(const WayAnswer& answer) {
  return write_frame(FrameKind::explained, answer, kWayAnswer);
}
Result<WayAnswer> decode_explained(std::span<const std::byte> body) {
  return read_body<WayAnswer>(body, "explained", kWayAnswer);
}

}  // namespace sterna::runtime
