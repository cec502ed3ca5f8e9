// The names of the services of a move, and their small messages.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/wire.h"
#include "rpc/rpc.h"

namespace sterna::migration {

inline constexpr std::string_view kPrepareService = "migration.prepare";
inline constexpr std::string_view kDropService = "migration.drop";
inline constexpr std::string_view kWakeService = "migration.wake";
inline constexpr std::string_view kTakeService = "migration.take";
inline constexpr std::string_view kGiftService = "migration.gift";
inline constexpr std::string_view kOfferService = "migration.offer";
inline constexpr std::string_view kReceivedService = "migration.received";
inline constexpr std::string_view kCommitService = "migration.commit";
inline constexpr std::string_view kCancelService = "migration.cancel";

// Between two steps of a move on one host: about what falling asleep and being woken would cost
// both sides, so who polls that long loses at most once more.
inline constexpr std::uint64_t kNextStepNs = 100'000;

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

enum class Way : std::uint8_t {
  shared,        // The destination has opened the slot's memory: nothing is sent.
  copied,        // The bytes go to landing_id.
  not_openable,  // It could not open the memory: offer again, with the extents to copy.
};

/// The answer to an offer.
struct Acceptance {
  Way way = Way::shared;
  std::uint64_t landing_id = 0;
};

[[nodiscard]] inline rpc::Bytes encode(const Acceptance& acceptance) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 9};
  writer.u8(static_cast<std::uint8_t>(acceptance.way));
  writer.u64(acceptance.landing_id);
  return bytes;
}

[[nodiscard]] inline Result<Acceptance> decode_acceptance(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  Acceptance acceptance;
  const std::uint8_t way = reader.u8();
  acceptance.way = Way{way};
  acceptance.landing_id = reader.u64();
  if (!reader.finished() || way > static_cast<std::uint8_t>(Way::not_openable)) {
    return Error{Errc::malformed, "an acceptance that cannot be read"};
  }
  return acceptance;
}

[[nodiscard]] inline rpc::Bytes encode_rank(std::uint32_t rank) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 4};
  writer.u32(rank);
  return bytes;
}

/// TAKE: of one attempt to give a rank (custody.h).
struct Take {
  std::uint32_t rank = 0;
  std::uint64_t given = 0;
};

[[nodiscard]] inline rpc::Bytes encode_take(std::uint32_t rank, std::uint64_t given) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 12};
  writer.u32(rank);
  writer.u64(given);
  return bytes;
}

[[nodiscard]] inline Result<Take> decode_take(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  Take take;
  take.rank = reader.u32();
  take.given = reader.u64();
  if (!reader.finished()) {
    return Error{Errc::malformed, "a rank that is given in words that cannot be read"};
  }
  return take;
}

/// CANCEL: of one offer of a rank.
[[nodiscard]] inline rpc::Bytes encode_cancel(std::uint32_t rank, std::uint64_t number) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 12};
  writer.u32(rank);
  writer.u64(number);
  return bytes;
}

struct Cancel {
  std::uint32_t rank = 0;
  std::uint64_t number = 0;
};

[[nodiscard]] inline Result<Cancel> decode_cancel(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  Cancel cancel;
  cancel.rank = reader.u32();
  cancel.number = reader.u64();
  if (!reader.finished()) {
    return Error{Errc::malformed, "a cancelled offer that cannot be read"};
  }
  return cancel;
}

[[nodiscard]] inline Result<std::uint32_t> decode_rank(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  const std::uint32_t rank = reader.u32();
  if (!reader.finished()) {
    return Error{Errc::malformed, "a step of a move that cannot be read"};
  }
  return rank;
}

}  // namespace sterna::migration
