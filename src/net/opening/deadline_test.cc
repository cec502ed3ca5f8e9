// A driver whose sleeps have an end (Driver::next_deadline_ns) is polled then, also through a
// decorator: else a node would sleep on beside a packet that nobody rings for.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "net/drivers/decorators/decorator.h"
#include "net/drivers/test_nodes.h"
#include "net/transport.h"
#include "progress/progress.h"

namespace sterna::net {
namespace {

using decorators::Decorator;
using decorators::DecoratorChannel;

/// Nobody rings, and each sleep ends a millisecond after it began.
class Ending final : public Decorator {
 public:
  using Decorator::Decorator;
  bool prepare_sleep() noexcept override {
    end_ns_ = now_ns() + 1'000'000;
    ++sleeps;
    return true;
  }
  std::uint64_t next_deadline_ns() noexcept override { return end_ns_; }
  void end_sleep() noexcept override {}
  static inline int sleeps = 0;

 private:
  std::unique_ptr<DecoratorChannel> make_channel(std::uint32_t node) override {
    return std::make_unique<DecoratorChannel>(*this, node);
  }
  std::uint64_t end_ns_ = kNever;
};

constexpr DecoratorEntry kEnding{
    .name = "ending",
    .summary = "sleeps that end",
    .tunables = {},
    .wrap = [](std::unique_ptr<Driver> inner, const DecoratorOptions& options) noexcept
        -> Result<std::unique_ptr<Driver>> {
      return std::unique_ptr<Driver>{new Ending{std::move(inner), options}};
    }};

TEST(SleepsWithAnEnd, EndWhereNobodyRings) {
  Settings settings{transport_tunables()};
  std::vector<DriverChoice> drivers{choice_of("count(shm)")};
  drivers.front().around.insert(drivers.front().around.begin(), {.entry = &kEnding});
  TestJob job{2};
  auto node =
      Transport::open({.bootstrap = &job.node(0), .drivers = drivers, .settings = &settings});
  ASSERT_TRUE(node) << node.error().text;
  const auto progress = std::move(progress::Progress::open().value());
  node.value()->add_to(*progress);
  (void)progress->poll();
  Ending::sleeps = 0;
  const std::atomic<std::uint32_t> word{1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(progress->sleep(kNever, word, 1));  // Would last for ever.
  }
  EXPECT_EQ(Ending::sleeps, 3);
  node.value()->remove_from(*progress);
}

}  // namespace
}  // namespace sterna::net
