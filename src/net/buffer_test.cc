// Copies, however they are done, copy what they are told and nothing else.
#include "net/buffer.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace sterna::net {
namespace {

constexpr std::size_t kPage = 4096;

class Copies : public testing::Test {
 protected:
  Copies() {
    for (std::size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<std::byte>(i * 7 + i / 251);
    }
  }
  void expect_copied(std::size_t bytes, std::size_t to_offset, std::size_t from_offset) {
    std::ranges::fill(to, std::byte{0xee});
    copy_long(to.data() + to_offset, from.data() + from_offset, bytes);
    const auto begin = to.begin() + static_cast<std::ptrdiff_t>(to_offset);
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    EXPECT_TRUE(
        std::equal(begin, end, from.begin() + static_cast<std::ptrdiff_t>(from_offset)))
        << bytes << " bytes to " << to_offset << " from " << from_offset;
    const auto is_untouched = [](std::byte byte) { return byte == std::byte{0xee}; };
    EXPECT_TRUE(std::all_of(to.begin(), begin, is_untouched) &&
                std::all_of(end, to.end(), is_untouched))
        << bytes << " bytes to " << to_offset << " from " << from_offset;
  }
  std::vector<std::byte> from = std::vector<std::byte>(10 * kPage);
  std::vector<std::byte> to = std::vector<std::byte>(10 * kPage);
};

TEST_F(Copies, OfAnyLength) {
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1984, 1985, 2048, 4095, 8191, 8192, 8193, 8194,
                                  9000, 16'384, 22'480, 32'767}) {
    expect_copied(bytes, 48, 16);
  }
}

TEST_F(Copies, FromAndToAnyPlaceOfAPage) {
  const auto here = reinterpret_cast<std::uintptr_t>(to.data());
  const auto there = reinterpret_cast<std::uintptr_t>(from.data());
  // The targets lie from a line before their sources, within a page, to two lines behind.
  for (std::size_t ahead = 0; ahead < 192; ahead += 3) {
    for (const std::size_t from_offset : {64, 100, 2048, 4095}) {
      const std::size_t place = there + from_offset + ahead - 64;
      expect_copied(8193, (place - here) % kPage, from_offset);
    }
  }
}

}  // namespace
}  // namespace sterna::net
