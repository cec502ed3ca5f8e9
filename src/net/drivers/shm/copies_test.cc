// That a way without copies between the processes is known as one before anybody has tried to copy.
#include "net/drivers/builtin.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

class ShmCopies : public testing::Test {
 protected:
  static Settings no_copies() {
    Settings settings{kShmDriver.tunables};
    check(settings.set("shm_direct", "off", SettingSource::command_line, "test").has_value(),
          "the setting is there");
    return settings;
  }

  const Settings settings = no_copies();
  TestJob job{2};
  TestNode a{kShmDriver, job, 0};
  TestNode b{kShmDriver, job, 1, DriverOptions{.settings = &settings}};
};

TEST_F(ShmCopies, AreKnownToBeRefusedFromTheConnectionOn) {
  EXPECT_TRUE(b.to(a, 0).are_copies_refused());
  EXPECT_FALSE(b.to(a, 0).can_write_remote());
  EXPECT_TRUE(b.sink.refusals.empty());  // Who connects asks.
}

TEST_F(ShmCopies, AreToldToBeRefusedWhenTheAddressOfThePeerCameWithItsFirstPacket) {
  Channel& back = b.to(0, {});
  EXPECT_FALSE(back.are_copies_refused());
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), "here I am"));
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.packets.size() == 1; }));
  EXPECT_TRUE(back.are_copies_refused());
  EXPECT_EQ(b.sink.refusals, std::vector<std::uint32_t>{0});
  ASSERT_TRUE(send_patiently({&a}, a.to(b, 1), "still here"));
  ASSERT_TRUE(poll_until({&b}, [&] { return b.sink.packets.size() == 2; }));
  EXPECT_EQ(b.sink.refusals.size(), 1U);
}

TEST_F(ShmCopies, AreNotRefusedWhereTheyWork) {
  Channel& there = a.to(b, 1);
  EXPECT_NE(there.can_write_remote(), there.are_copies_refused());
}

}  // namespace
}  // namespace sterna::net
