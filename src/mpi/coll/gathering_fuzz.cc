// A meeting in memory that another process overwrites: each call ends, nothing is written outside,
// and who waits sees the end or that it will not come.
#include <cstring>
#include <memory>

#include "base/check.h"
#include "mpi/coll/gathering.h"

namespace {

using sterna::check;
using sterna::mpi::Gathering;

constexpr std::uint32_t kMembers = 3;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  struct Fenced {
    std::uint64_t before = 42;
    std::array<Gathering, 2> board{};
    std::uint64_t behind = 42;
  };
  const auto fenced = std::make_unique<Fenced>();
  std::size_t at = 0;
  const auto next = [&] { return at < bytes ? data[at++] : std::uint8_t{0}; };
  std::uint32_t number = 0;
  std::uint32_t woken = 0;
  while (at < bytes) {
    const std::uint8_t what = next();
    Gathering* const gathering = Gathering::find(fenced->board, what / 8 % 4);
    if (what % 8 >= 6) {
      std::uint64_t garbage = 0;
      for (int i = 0; i < 8; ++i) {
        garbage = garbage << 8 | next();
      }
      const std::size_t place =
          (std::size_t{next()} << 8 | next()) * 8 % (sizeof fenced->board - 7);
      std::memcpy(reinterpret_cast<std::byte*>(&fenced->board) + place / 8 * 8, &garbage,
                  sizeof garbage);
      continue;
    }
    if (gathering == nullptr) {
      continue;  // All are taken, by strangers too: then messages do it.
    }
    const std::uint32_t member = next() % kMembers;
    std::array<std::byte, Gathering::kBytesMax> value{};
    const auto arrival = gathering->arrive(member, kMembers, what, value);
    number = arrival.number;
    if (arrival.is_last) {
      check(!gathering->is_spoilt(kMembers), "who is the last one is one of the members");
      for (std::uint32_t i = 0; i < kMembers; ++i) {
        (void)gathering->what_of(number, i);
        gathering->copy_bytes_of(number, i, value);
      }
      gathering->set_result(number, 0, value);
      gathering->let_go(number, kMembers, [&](std::uint32_t other) {
        check(other < kMembers, "who is woken is a member");
        ++woken;
      });
      check(gathering->has_ended(number), "who is let go sees it");
    } else {
      gathering->say_asleep(number, member);
      (void)gathering->has_ended(number);
    }
    (void)gathering->take(number, value);
  }
  check(fenced->before == 42 && fenced->behind == 42, "nothing is written outside of the board");
  return 0;
}
