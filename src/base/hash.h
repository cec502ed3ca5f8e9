// Hashes of numbers and bytes. Fixed for ever: fingerprints and wire formats contain them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace sterna {

/// A permutation of 64 bits that spreads every bit (the finalizer of splitmix64).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

/// FNV-1a, then mixed. Not for strangers' data in tables: it can be attacked.
[[nodiscard]] constexpr std::uint64_t hash_text(std::string_view text,
                                                std::uint64_t seed = 0) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return mix64(hash);
}

[[nodiscard]] inline std::uint64_t hash_bytes(std::span<const std::byte> bytes,
                                              std::uint64_t seed = 0) noexcept {
  return hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, seed);
}

}  // namespace sterna
