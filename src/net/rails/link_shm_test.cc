// A link over shared memory, for the sums of its packets: two nodes of this process with a rank
// each.
#include <memory>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "memory/heap.h"
#include "net/drivers/builtin.h"
#include "net/drivers/test_job.h"
#include "net/endpoint.h"
#include "net/transport.h"

namespace sterna::net {
namespace {

TEST(Link, OverSharedMemoryCarriesSumsAndCopiesNothingDirectly) {
  for (const bool is_one_caller : {true, false}) {
    Settings settings{transport_tunables()};
    ASSERT_TRUE(settings.set("net_checksums", "on", SettingSource::command_line, "the test"));
    TestJob job{2};
    std::unique_ptr<Transport> nodes[2];
    Endpoint* endpoints[2];
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      static const DriverChoice kDrivers[] = {{.entry = &kShmDriver}};
      auto opened = Transport::open(
          {.bootstrap = &job.node(rank), .drivers = kDrivers, .settings = &settings});
      ASSERT_TRUE(opened.has_value());
      nodes[rank] = std::move(opened.value());
      endpoints[rank] = create_endpoint(*memory::Heap::process(), rank);
      endpoints[rank]->is_fixed = true;
      nodes[rank]->install(rank, endpoints[rank]);
      nodes[rank]->serve_one_caller(is_one_caller);
    }
    for (const std::size_t bytes : {1U, 3000U, 40'000U, 3'000'000U}) {
      std::vector<unsigned char> sent(bytes);
      std::vector<unsigned char> got(bytes);
      std::iota(sent.begin(), sent.end(), static_cast<unsigned char>(bytes));
      SendRequest send;
      RecvRequest receive;
      nodes[1]->receive(*endpoints[1], receive, {0, 1, 2}, Buffer::of(got.data(), bytes));
      nodes[0]->send(*endpoints[0], send, {1, 1, 2}, Buffer::of(sent.data(), bytes));
      for (int i = 0; i < 10'000'000 && !(send.done.done() && receive.done.done()); ++i) {
        (void)nodes[0]->poll();
        (void)nodes[1]->poll();
      }
      ASSERT_TRUE(send.done.done() && receive.done.done()) << bytes;
      EXPECT_EQ(got, sent);
    }
    EXPECT_EQ(nodes[0]->rails(1).size(), 1U);
    EXPECT_EQ(nodes[0]->statistics().bytes_direct + nodes[1]->statistics().bytes_direct, 0U);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      nodes[rank].reset();
      destroy_endpoint(endpoints[rank]);
    }
  }
}

}  // namespace
}  // namespace sterna::net
