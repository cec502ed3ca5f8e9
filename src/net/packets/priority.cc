// A receiver takes the frames of one pair of ranks in the order of their numbers, whatever order
// they come in. So a frame that overtakes another one of its pair changes numbers with it. That is
// right while neither has left this node, and while no number between theirs is elsewhere: then the
// numbers of a pair that wait here go out ascending, as before, on frames in another order.
#include "net/packets/priority.h"

#include <cstring>

#include "net/packets/packet.h"

namespace sterna::net {
namespace {

void renumber(HeldPacket& packet, std::uint32_t sequence) noexcept {
  std::memcpy(packet.data() + offsetof(FrameHeader, sequence), &sequence, sizeof sequence);
}

/// A message, or its announcement, in one frame: what has a number and may change it.
bool is_whole(const FrameHeader& header) noexcept {
  return (header.kind == FrameKind::rendezvous && (header.flags & kFrameHeld) == 0) ||
         (header.kind == FrameKind::eager && header.payload_bytes == header.total_bytes);
}

bool is_of_pair(const FrameHeader& one, const FrameHeader& other) noexcept {
  return is_in_turn(one.kind) && one.source == other.source && one.destination == other.destination;
}

/// Whether `late` may go before `early` if the numbers of their pair allow it. Frames between nodes
/// and answers keep their places: moves count on their order, and they are short.
bool may_overtake(const FrameHeader& late, const FrameHeader& early) noexcept {
  if (late.priority <= early.priority) {
    return false;
  }
  if (is_of_pair(early, late)) {
    return is_whole(early) && (early.context != late.context || early.tag != late.tag);
  }
  return is_in_turn(early.kind) || early.kind == FrameKind::data || early.kind == FrameKind::bulk;
}

/// Where a frame goes: behind `after` (null: first), which it may not overtake; of its pair it
/// overtakes `count`.
struct Place {
  HeldPacket* after = nullptr;
  std::uint32_t count = 0;
};

Place place_of(const WaitingFrames& frames, const FrameHeader& header) noexcept {
  Place place;
  for (HeldPacket* packet = frames.first; packet != nullptr; packet = packet->next) {
    const FrameHeader early = header_of(*packet);
    if (packet->overtaken >= kOvertakenMax || !may_overtake(header, early)) {
      place = {packet, 0};
    } else if (is_of_pair(early, header)) {
      ++place.count;
    }
  }
  // The last of its pair must have the number before its own, the one before that the next, ...
  std::uint32_t left = place.count;
  for (HeldPacket* packet = place.after != nullptr ? place.after->next : frames.first; left != 0;
       packet = packet->next) {
    const FrameHeader early = header_of(*packet);
    if (is_of_pair(early, header)) {
      if (early.sequence != header.sequence - left) {
        place = {packet, left - 1};
      }
      --left;
    }
  }
  return place;
}

void append(WaitingFrames& frames, HeldPacket& packet) noexcept {
  packet.next = nullptr;
  (frames.last != nullptr ? frames.last->next : frames.first) = &packet;
  frames.last = &packet;
}

}  // namespace

void add_by_priority(WaitingFrames& frames, HeldPacket& packet) noexcept {
  const bool is_plain = packet.data()[offsetof(FrameHeader, priority)] == std::byte{0};
  if (is_plain || frames.first == nullptr) [[likely]] {
    append(frames, packet);
    return;
  }
  const FrameHeader header = header_of(packet);
  if (!is_whole(header)) {
    append(frames, packet);
    return;
  }
  const Place place = place_of(frames, header);
  if (place.after == frames.last) {
    append(frames, packet);
    return;
  }
  HeldPacket*& link = place.after != nullptr ? place.after->next : frames.first;
  for (HeldPacket* other = link; other != nullptr; other = other->next) {
    ++other->overtaken;
    if (const FrameHeader early = header_of(*other); is_of_pair(early, header)) {
      renumber(*other, early.sequence + 1);
    }
  }
  renumber(packet, header.sequence - place.count);
  packet.next = link;
  link = &packet;
}

}  // namespace sterna::net
