// Packets formed by strategies.
#include "net/packets/forming.h"

#include <new>
#include <type_traits>

#include "net/packets/packet.h"

namespace sterna::net {
namespace {

/// Between ranks, and with a number that restores its place, or none that matters: others may go
/// first. Frames between nodes and answers keep their places: moves count on it.
bool may_be_passed(const FrameHeader& header) noexcept {
  return is_in_turn(header.kind) || header.kind == FrameKind::data ||
         header.kind == FrameKind::bulk;
}

Traffic traffic_of(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::eager:
      return Traffic::message;
    case FrameKind::eager_more:
      return Traffic::more;
    case FrameKind::rendezvous:
      return Traffic::announcement;
    case FrameKind::head:
      return Traffic::head;
    case FrameKind::seek:
    case FrameKind::nothing:
    case FrameKind::claim:
    case FrameKind::clear:
    case FrameKind::finish:
    case FrameKind::matched:
    case FrameKind::credit:
      return Traffic::answer;
    case FrameKind::rank_note:
    case FrameKind::node:
      return Traffic::rpc;
    case FrameKind::data:
    case FrameKind::bulk:
    case FrameKind::bulk_finish:
      return Traffic::bulk;
    case FrameKind::moved:
    case FrameKind::sample:
    case FrameKind::sample_answer:
    case FrameKind::sample_result:
      break;
  }
  return Traffic::control;
}

/// As a strategy sees it.
WaitingFrame view_of(const HeldPacket& packet, const FrameHeader& header, bool may_pass) noexcept {
  const Traffic traffic = traffic_of(header.kind);
  const bool is_of_message = traffic <= Traffic::head;
  return {.bytes = packet.bytes,
          .priority = header.priority,
          .may_pass = may_pass && is_in_turn(header.kind),
          .flow = std::uint64_t{header.source} << 32 | header.destination,
          .context = is_of_message ? header.context : 0,
          .tag = is_of_message ? header.tag : 0,
          .message_bytes = is_of_message ? header.total_bytes : 0,
          .traffic = traffic};
}

/// Only the first `count` of each are there: to clear all would take longer than to look.
class Choice {
 public:
  void add(HeldPacket& packet, const WaitingFrame& frame) noexcept {
    new (frames_ + count * sizeof frame) WaitingFrame{frame};
    packets[count++] = &packet;
  }
  [[nodiscard]] std::span<const WaitingFrame> waiting() const noexcept {
    return {std::launder(reinterpret_cast<const WaitingFrame*>(frames_)), count};
  }

  std::array<HeldPacket*, kPacketPiecesMax> packets;
  std::uint32_t count = 0;

 private:
  alignas(WaitingFrame) std::byte frames_[kPacketPiecesMax * sizeof(WaitingFrame)];
};
static_assert(std::is_trivially_destructible_v<WaitingFrame>);

void look(const WaitingFrames& frames, Choice& choice) noexcept {
  bool may_pass = true;
  for (HeldPacket* packet = frames.first; packet != nullptr && choice.count < kPacketPiecesMax;
       packet = packet->next) {
    const FrameHeader header = header_of(*packet);
    choice.add(*packet, view_of(*packet, header, may_pass));
    may_pass = may_pass && may_be_passed(header);
  }
}

/// Null: the choice keeps the rules of Strategy::form.
const char* rule_broken(const Choice& choice, const PacketLimits& limits,
                        std::span<const std::uint8_t> chosen) noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] >= choice.count || (i != 0 && chosen[i] <= chosen[i - 1])) {
      return "places ascend, and are of frames that wait";
    }
    if (chosen[i] != i && !choice.waiting()[chosen[i]].may_pass) {
      return "it passes frames that it may not pass";
    }
    bytes += choice.waiting()[chosen[i]].bytes;
  }
  return bytes > limits.packet_bytes_max ? "its frames fit one packet" : nullptr;
}

}  // namespace

void form_packet(const WaitingFrames& frames, const Strategy& strategy, const PacketLimits& limits,
                 std::uint32_t passed_over, Formed& formed) noexcept {
  formed.count = 1;
  formed.packets[0] = frames.first;
  formed.pieces[0] = frames.first->packet();
  formed.passed_over = 0;
  formed.broken_rule = nullptr;
  if (frames.first->next == nullptr || passed_over >= kPassedOverMax) {
    return;
  }
  Choice choice;
  look(frames, choice);
  std::array<std::uint8_t, kPacketPiecesMax> chosen;
  const std::uint32_t count = strategy.form(choice.waiting(), limits, chosen);
  formed.broken_rule = count == 0 || count > choice.count
                           ? "it chooses one frame at least"
                           : rule_broken(choice, limits, {chosen.data(), count});
  if (formed.broken_rule != nullptr) {
    return;
  }
  formed.passed_over = chosen[0] == 0 ? 0 : passed_over + 1;
  formed.count = count;
  for (std::uint32_t i = 0; i < count; ++i) {
    formed.packets[i] = choice.packets[chosen[i]];
    formed.pieces[i] = formed.packets[i]->packet();
  }
}

void take_out(WaitingFrames& frames, const Formed& formed) noexcept {
  HeldPacket* before = nullptr;
  HeldPacket* packet = frames.first;
  for (std::uint32_t i = 0; i < formed.count;) {
    HeldPacket* const next = packet->next;
    if (packet == formed.packets[i]) {
      (before != nullptr ? before->next : frames.first) = next;
      if (frames.last == packet) {
        frames.last = before;
      }
      ++i;
    } else {
      before = packet;
    }
    packet = next;
  }
}

}  // namespace sterna::net
