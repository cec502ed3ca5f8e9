// What a peer can read of our memory: what it was told of, for as long as that is lent.
#include <array>

#include <gtest/gtest.h>

#include "net/drivers/fabric/endpoint.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net::fabric {
namespace {

/// Two endpoints of one provider: `reader` reads of `owner`.
class Exposed : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const EndpointOptions options{.provider = GetParam(),
                                  .domain = {},
                                  .may_read = true,
                                  .message_bytes = 4096,
                                  .completions_max = 64};
    for (auto* place : {&owner, &reader}) {
      auto opened = Endpoint::open(options);
      if (!opened && opened.error().code == Errc::unsupported) {
        // Says which: libfabric, or a provider of it, is not on this machine.
        GTEST_SKIP() << opened.error().text;  // Libfabric, or a provider of it.
      }
      ASSERT_TRUE(opened.has_value()) << opened.error().text;
      *place = std::move(opened.value());
    }
    ASSERT_TRUE(reader->can_read());
    peer = reader->insert(owner->name()).value();
    ASSERT_TRUE(owner->insert(reader->name()).has_value());
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::byte>(i * 13);
    }
  }
  /// The error of its completion; 0: it was read.
  int read(std::size_t bytes, RemoteRegion from) {
    into.assign(bytes, std::byte{0x55});
    Read one;
    one.into = into;
    const std::uint64_t deadline = now_ns() + kPatienceNs / 4;
    Endpoint::Posted posted = Endpoint::Posted::again;
    std::array<Endpoint::Completion, 4> done;
    while ((posted = reader->start_read(one, peer, from)) == Endpoint::Posted::again &&
           now_ns() < deadline) {
      static_cast<void>(owner->poll(done));
      EXPECT_EQ(reader->poll(done), 0U);
    }
    if (posted != Endpoint::Posted::done) {
      reader->close(one.local);
      return -1;
    }
    while (now_ns() < deadline) {
      static_cast<void>(owner->poll(done));
      if (reader->poll(done) == 1) {
        EXPECT_EQ(done[0].read, &one);
        reader->close(one.local);
        return done[0].error;
      }
    }
    ADD_FAILURE() << "the read did not end";
    reader->shut();
    return -2;
  }
  static RemoteRegion of(const Region& region) {
    return {.address = region.address, .key = region.key};
  }

  std::vector<std::byte> memory = std::vector<std::byte>(100'000);
  std::vector<std::byte> into;
  std::unique_ptr<Endpoint> owner;
  std::unique_ptr<Endpoint> reader;
  fi_addr_t peer = FI_ADDR_UNSPEC;
};

TEST_P(Exposed, WhatIsToldIsRead) {
  auto region = owner->expose(std::span{memory}.subspan(1000, 50'000));
  ASSERT_TRUE(region.has_value()) << region.error().text;
  EXPECT_EQ(read(50'000, of(region.value())), 0);
  EXPECT_TRUE(std::equal(into.begin(), into.end(), memory.begin() + 1000));
  owner->close(region.value());
  EXPECT_EQ(region.value().registration, nullptr);
  owner->close(region.value());  // Once more does nothing.
}

TEST_P(Exposed, KeysCannotBeGuessed) {
  auto first = owner->expose(std::span{memory}.first(100));
  auto second = owner->expose(std::span{memory}.first(100));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_NE(first.value().key, second.value().key);
  EXPECT_GT(first.value().key | second.value().key, std::uint64_t{1} << 40);
  owner->close(first.value());
  owner->close(second.value());
}

TEST_P(Exposed, AWrongKeyReadsNothing) {
  auto region = owner->expose(std::span{memory}.first(50'000));
  ASSERT_TRUE(region.has_value());
  RemoteRegion wrong = of(region.value());
  wrong.key ^= 1;
  EXPECT_NE(read(50'000, wrong), 0);
  EXPECT_TRUE(std::ranges::all_of(into, [](std::byte b) { return b == std::byte{0x55}; }));
  owner->close(region.value());
}

TEST_P(Exposed, WhatLiesBehindIsNotRead) {
  auto region = owner->expose(std::span{memory}.first(50'000));
  ASSERT_TRUE(region.has_value());
  EXPECT_NE(read(50'001, of(region.value())), 0);
  EXPECT_TRUE(std::ranges::all_of(into, [](std::byte b) { return b == std::byte{0x55}; }));
  owner->close(region.value());
}

TEST_P(Exposed, NothingIsReadOnceItIsClosed) {
  auto region = owner->expose(std::span{memory}.first(50'000));
  ASSERT_TRUE(region.has_value());
  const RemoteRegion told = of(region.value());
  ASSERT_EQ(read(50'000, told), 0);
  owner->close(region.value());
  EXPECT_NE(read(50'000, told), 0);
  EXPECT_TRUE(std::ranges::all_of(into, [](std::byte b) { return b == std::byte{0x55}; }));
}

TEST_P(Exposed, AnEndpointThatIsShutDoesNothing) {
  auto region = owner->expose(std::span{memory}.first(50'000));
  ASSERT_TRUE(region.has_value());
  owner->shut();
  owner->close(region.value());
  EXPECT_FALSE(owner->expose(memory).has_value());
  Read one;
  one.into = memory;
  EXPECT_EQ(owner->start_read(one, 0, {}), Endpoint::Posted::failed);
  std::array<Endpoint::Completion, 4> done;
  EXPECT_EQ(owner->poll(done), 0U);
}

// The provider shm is not among them: it reads by process_vm_readv, which asks no key. What the
// system lets a process of the same user read it can read without us.
constexpr auto kName = [](const auto& provider) { return std::string{provider.param}; };
INSTANTIATE_TEST_SUITE_P(Providers, Exposed, testing::Values("tcp", "sockets"), kName);

}  // namespace
}  // namespace sterna::net::fabric
