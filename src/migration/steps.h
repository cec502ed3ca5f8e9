// The names of the services of a move, and their small messages.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/wire.h"
#include "rpc/rpc.h"

namespace sterna::migration {

inline constexpr std::string_view kOfferService = "migration.offer";
inline constexpr std::string_view kReceivedService = "migration.received";
inline constexpr std::string_view kCommitService = "migration.commit";
inline constexpr std::string_view kCancelService = "migration.cancel";

/// The answer to an offer.
struct Acceptance {
  bool is_memory_shared = false;  // The destination has opened the slot's memory: send nothing.
  std::uint64_t landing_id = 0;   // Else: where the bytes go.
};

[[nodiscard]] inline rpc::Bytes encode(const Acceptance& acceptance) {
  rpc::Bytes bytes;
  wire::Writer writer{bytes, 9};
  writer.boolean(acceptance.is_memory_shared);
  writer.u64(acceptance.landing_id);
  return bytes;
}

[[nodiscard]] inline Result<Acceptance> decode_acceptance(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  Acceptance acceptance;
  acceptance.is_memory_shared = reader.boolean();
  acceptance.landing_id = reader.u64();
  if (!reader.finished()) {
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

[[nodiscard]] inline Result<std::uint32_t> decode_rank(std::span<const std::byte> bytes) {
  wire::Reader reader{bytes};
  const std::uint32_t rank = reader.u32();
  if (!reader.finished()) {
    return Error{Errc::malformed, "a step of a move that cannot be read"};
  }
  return rank;
}

}  // namespace sterna::migration
