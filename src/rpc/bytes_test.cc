// Copies of bytes of any number.
#include "rpc/bytes.h"

#include <gtest/gtest.h>

namespace sterna::rpc {
namespace {

Bytes some(std::size_t bytes) {
  Bytes made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  return made;
}

TEST(Bytes, AreCopiedWhateverTheirNumber) {
  for (const std::size_t bytes : {0, 1, 1983, 1984, 1985, 3968, 3969, 100'000}) {
    EXPECT_EQ(copy_of(some(bytes)), some(bytes)) << bytes;
  }
}

TEST(Bytes, AreAppendedToWhatThereIs) {
  Bytes all = some(5000);
  append(all, {});
  append(all, some(3000));
  ASSERT_EQ(all.size(), 8000U);
  EXPECT_EQ((Bytes{all.begin(), all.begin() + 5000}), some(5000));
  EXPECT_EQ((Bytes{all.begin() + 5000, all.end()}), some(3000));
}

// What is called inside a poll counts on it: no allocation that could fail.
TEST(Bytes, StayWhereTheyAreWhenThereIsRoom) {
  Bytes all = some(9000);
  const std::byte* const place = all.data();
  assign(all, some(8000));
  EXPECT_EQ(all, some(8000));
  EXPECT_EQ(all.data(), place);
  append(all, some(1000));
  EXPECT_EQ(all.data(), place);
}

}  // namespace
}  // namespace sterna::rpc
