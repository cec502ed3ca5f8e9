// A large copy that goes on from poll to poll: transfer.cc, read.cc, bulk.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "memory/kept_blocks.h"
#include "net/matching/gate.h"
#include "net/packets/packet.h"
#include "net/transport.h"

namespace sterna::net {

// Messages of up to so many bytes are read in one go, within the call or the poll in which they
// match.
inline constexpr std::uint64_t kReadAtOnceBytesMax = 256 << 10;

/// A message that is lent in parts (Channel::try_lend): one is registered while others fly.
class Loans {
 public:
  static constexpr std::size_t kPartsMax = 8;   // Under way over several rails:
  static constexpr std::size_t kPartsOfOne = 4;  // so that a slow one gets its share; over one.
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    Lent lent;
  };
  Loans(Channel& by, std::uint32_t bytes, std::uint32_t at_end, bool has_several_rails) noexcept
      : channel{by},
        part_bytes{bytes},
        end_bytes{at_end},
        part_count{has_several_rails ? kPartsMax : kPartsOfOne} {}
  /// Those under way are taken back.
  ~Loans() {
    for (Part& part : parts) {
      if (part.lent.state.load(std::memory_order_relaxed) != Lent::State::none) {
        channel.take_back(part.lent);
      }
    }
  }
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  Channel& channel;
  const std::uint32_t part_bytes;
  const std::uint32_t end_bytes;  // Less than so many are lent with the part before them.
  const std::size_t part_count;  // Of them those that are used.
  std::array<Part, kPartsMax> parts;
  std::uint32_t under_way = 0;
  bool is_over = false;  // One came back: that one and the rest go in data frames.
  // Of those that came back: from where to where.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> returned;
};

/// How the data frames of a job are cut.
struct FrameCut {
  std::uint64_t payload_max = 0;
  // Sent in the place of a program that comes back soon: one at a time.
  bool is_in_place = false;
};

/// A large copy to another node: of a message between pinned ranks, or for bulk_send.
struct TransferJob : MpscNode {
  Gate* gate = nullptr;
  std::uint32_t node = 0;
  FrameHeader header;  // Of its data frames, without what changes.
  FrameKind finish_kind{};
  Buffer local;
  std::vector<Extent> extents;      // Behind `local`, for bulk_send.
  std::vector<RemotePiece> remote;  // Empty: data frames.
  std::unique_ptr<Loans> loans;     // But for what is lent.
  bool is_lending_judged = false;   // Whether it has those.
  bool is_invited = false;          // The announcement of its message may still wait for the gate.
  bool is_alone = true;             // All the time: how long it takes is what packets cost.
  bool may_turn = false;            // From a direct copy to data frames, halfway.
  bool has_turned = false;          // A read: its sender shall send the rest.
  std::uint64_t total_bytes = 0;
  std::uint64_t begin = 0;  // Before it is the head.
  std::uint64_t offset = 0;
  std::uint64_t started_ns = 0;
  std::uint32_t overtaken = 0;  // By how many of higher priority that came later.
  SendRequest* send = nullptr;  // One of these three.
  BulkSend* bulk = nullptr;
  RecvRequest* read = nullptr;  // Read from `address` of the peer's process: read.cc.
  std::uint64_t address = 0;
  std::uint64_t read_ns = 0;  // So long that took till now.

  /// As pieces_of(local, ...). Of a message with a layout: one, which is there until another is
  /// asked for.
  [[nodiscard]] std::uint32_t pieces(std::uint64_t from, std::uint64_t most, std::span<Piece> into,
                                     std::uint64_t& taken_bytes) noexcept;
  memory::KeptBlocks::Block packed = nullptr;
  std::uint64_t packed_from = 0;
  std::size_t packed_bytes = 0;
  std::array<std::byte, 256> few_packed;  // Without memory.
};

/// Reads memory of the peer's process into a layout, from `offset` on.
[[nodiscard]] Result<> read_into(const Layout& layout, std::uint64_t offset, RemotePiece from,
                                 Channel& channel) noexcept;

/// turn.cc: whether a direct copy goes on in data frames now.
[[nodiscard]] bool turns_to_packets(const TransferJob& job, const Channel& channel,
                                    std::uint64_t now_ns) noexcept;
/// How much of it is copied until the next look whether it does.
[[nodiscard]] std::uint64_t direct_step_bytes(const TransferJob& job, std::uint32_t chunk_bytes,
                                              std::uint64_t now_ns) noexcept;
/// All has been copied directly.
void direct_ended(const TransferJob& job, const Channel& channel, std::uint64_t now_ns) noexcept;

}  // namespace sterna::net
