// Who sleeps for want of room, which any receiver may make: the chunks of a node are one pool.
#include <memory>
#include <string>
#include <vector>

#include "net/drivers/builtin.h"
#include "net/drivers/shm/driver.h"
#include "net/drivers/test_nodes.h"

namespace sterna::net {
namespace {

/// Nodes that send each other packets of a chunk each. A receiver is refused when it has three
/// quarters of all, or when there are none.
struct ShmRoom : testing::Test {
  static constexpr std::uint32_t kNodes = 4;
  static constexpr std::size_t kChunks = 128;

  ShmRoom() {
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      nodes.push_back(std::make_unique<TestNode>(kShmDriver, job, node));
    }
  }
  Channel& to(std::uint32_t node) { return nodes[0]->to(*nodes[node], node); }
  void send(std::uint32_t node, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(send_text(to(node), text), SendState::accepted) << i;
    }
  }

  const std::string text = std::string(1000, 'x');
  TestJob job{kNodes};
  std::vector<std::unique_ptr<TestNode>> nodes;
};

/// Neither of those that hold the chunks was ever refused one.
TEST_F(ShmRoom, WhoeverGivesItBackWakesWhoSleepsForIt) {
  for (const std::uint32_t giver : {1U, 2U}) {
    send(1, kChunks / 4 * 3);
    send(2, kChunks / 4);
    ASSERT_EQ(send_text(to(3), text), SendState::full);
    // The first sleeps after traffic are short, and what rang before the last one may still ring.
    for (int still = 0; still < 3;) {
      nodes[0]->poll();
      ASSERT_TRUE(nodes[0]->driver->prepare_sleep());
      still = is_readable(nodes[0]->driver->fd(), 20) ? 0 : still + 1;
      if (still < 3) {
        nodes[0]->driver->end_sleep();
      }
    }
    ASSERT_TRUE(poll_until({nodes[giver].get()},
                           [&] { return is_readable(nodes[0]->driver->fd(), 0); }))
        << "node " << giver;
    nodes[0]->driver->end_sleep();
    EXPECT_EQ(send_text(to(3), text), SendState::accepted);
    ASSERT_TRUE(poll_until({nodes[1].get(), nodes[2].get(), nodes[3].get()}, [&] {
      return nodes[1]->sink.packets.size() == kChunks / 4 * 3 &&
             nodes[2]->sink.packets.size() == kChunks / 4 && nodes[3]->sink.packets.size() == 1;
    }));
    for (auto& node : nodes) {
      node->sink.packets.clear();
    }
  }
}

}  // namespace
}  // namespace sterna::net
