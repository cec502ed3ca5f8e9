// The numbers of services, and what is known by them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace sterna::rpc {

/// Up to 8 bytes, the first one lowest.
[[nodiscard]] constexpr std::uint64_t word_of(std::string_view text) noexcept {
  const std::size_t bytes = text.size();
  std::uint64_t word = 0;
  if (!std::is_constant_evaluated() && bytes >= 4 && std::endian::native == std::endian::little) {
    std::uint32_t first = 0;
    std::uint32_t last = 0;  // They may overlap.
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + bytes - sizeof last, sizeof last);
    return first | std::uint64_t{last} << (8 * (bytes - sizeof last));
  }
  for (std::size_t i = 0; i < bytes; ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  return word;
}

/// The number of a service on the wire, made anew at each call: a hash with one multiplication for
/// eight bytes.
[[nodiscard]] constexpr std::uint64_t service_number(std::string_view name,
                                                     std::uint64_t space = 0) noexcept {
  const auto fold = [](std::uint64_t hash) {
    const unsigned __int128 product = static_cast<unsigned __int128>(hash) * 0x9e3779b97f4a7c15;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::uint64_t hash = mix64(space) ^ name.size();
  for (; name.size() > 8; name.remove_prefix(8)) {
    hash = fold(hash ^ word_of(name.substr(0, 8)));
  }
  return fold(hash ^ word_of(name));
}

/// Services by number. They stay where they are; constant while anybody asks.
template <typename Entry>
class ServiceTable {
 public:
  /// False: there is one with that number.
  [[nodiscard]] bool add(std::uint64_t number, Entry entry) {
    if (find(number) != nullptr) {
      return false;
    }
    entries_.push_back(std::move(entry));
    if (2 * entries_.size() > places_.size()) {
      std::vector<Place> old(2 * places_.size());
      old.swap(places_);
      for (const Place& place : old) {
        if (place.entry != nullptr) {
          place_for(place.number) = place;
        }
      }
    }
    place_for(number) = {number, &entries_.back()};
    return true;
  }

  /// Null: there is none.
  [[nodiscard]] const Entry* find(std::uint64_t number) const noexcept {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = number & mask;
    while (places_[at].number != number && places_[at].entry != nullptr) {
      at = (at + 1) & mask;
    }
    return places_[at].entry;
  }

 private:
  struct Place {
    std::uint64_t number = 0;
    const Entry* entry = nullptr;  // Null: it is free.
  };

  [[nodiscard]] Place& place_for(std::uint64_t number) noexcept {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = number & mask;
    while (places_[at].entry != nullptr) {
      at = (at + 1) & mask;
    }
    return places_[at];
  }

  std::deque<Entry> entries_;
  // From that of a number on, to the first that is free. A power of two, half of them free.
  std::vector<Place> places_ = std::vector<Place>(16);
};

}  // namespace sterna::rpc
