// A long piece that comes with its call: what the service sees, and what no message may say.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "net/endpoint.h"
#include "net/simulation/sim_cluster.h"
#include "rpc/filled.h"
#include "rpc/rpc.h"

namespace sterna::rpc {
namespace {

constexpr std::size_t kLong = 20'000;

/// It takes its piece: the reply is the short bytes, and behind them that.
Result<Bytes> take(void* rpc, const Request& request) {
  EXPECT_TRUE(request.is_in_poll);
  Bytes all{request.arguments.begin(), request.arguments.end()};
  EXPECT_NE(request.incoming, nullptr);
  Bytes piece(request.incoming->parts[0].bytes);
  net::RecvRequest receive;
  static_cast<Rpc*>(rpc)->receive_part(*request.incoming,
                                       net::Buffer::of(piece.data(), piece.size()), receive);
  EXPECT_TRUE(receive.done.done());
  EXPECT_EQ(receive.envelope.bytes, piece.size());
  all.insert(all.end(), piece.begin(), piece.end());
  return Bytes(all.begin(), all.begin() + 100);
}

Result<Bytes> leave(void*, const Request& request) {
  EXPECT_TRUE(request.is_in_poll);
  return filled(1);
}

Result<Bytes> see(void*, const Request& request) {
  EXPECT_TRUE(request.is_in_poll);
  EXPECT_TRUE(std::ranges::equal(request.arguments, filled(request.arguments.size())));
  return filled(2);
}

class Tails : public testing::Test {
 protected:
  Tails() {
    for (std::uint32_t node = 0; node < 2; ++node) {
      rpcs.push_back(std::make_unique<Rpc>(RpcOptions{.transport = cluster.nodes[node].get(),
                                                      .endpoint = cluster.endpoints[node],
                                                      .part_context = 77}));
      for (const bool takes_parts : {false, true}) {
        rpcs.back()->add_service({.name = takes_parts ? "leave" : "see",
                                  .service = takes_parts ? leave : see,
                                  .takes_parts = takes_parts});
      }
      rpcs.back()->add_service(
          {.name = "take", .service = take, .context = rpcs.back().get(), .takes_parts = true});
    }
  }
  Bytes call(const char* service, std::size_t short_bytes, std::size_t bytes) {
    const Bytes all = filled(short_bytes + bytes);
    OutPart part{.part = {.offset = static_cast<std::uint32_t>(short_bytes), .bytes = bytes},
                 .data = all.data() + short_bytes,
                 .send = {}};
    PendingCall call;
    rpcs[0]->start(1, service_number(service), std::span{all}.first(short_bytes), call,
                   {.parts = {&part, 1}});
    EXPECT_TRUE(part.send.done.done()) << "it goes with the call";
    cluster.settle();
    EXPECT_TRUE(call.done.done());
    EXPECT_TRUE(call.reply.has_value());
    EXPECT_EQ(rpcs[1]->loose_part_count(), 0U);
    return call.reply.has_value() ? call.reply.value() : Bytes{};
  }

  net::SimCluster cluster{{.node_count = 2, .delay_ns_max = 3000}, 2};
  std::vector<std::unique_ptr<Rpc>> rpcs;
};

TEST_F(Tails, ComeWithTheCall) {
  for (const std::size_t short_bytes : {0U, 1U, 8U, 192U}) {
    for (const std::size_t bytes : {kLong, std::size_t{64} << 10}) {
      EXPECT_EQ(call("see", short_bytes, bytes), filled(2));
      EXPECT_EQ(call("take", short_bytes, bytes), filled(100));
      EXPECT_EQ(call("leave", short_bytes, bytes), filled(1));
    }
  }
}

/// As it comes. False: it does not come, or not with that body.
bool comes(Message& message, const Bytes& body) {
  const MessageHead head{message};
  Bytes bytes{head.bytes().begin(), head.bytes().end()};
  bytes.insert(bytes.end(), body.begin(), body.end());
  message = {};
  return decode(bytes, message) && std::ranges::equal(message.body, body);
}

TEST(TailMessages, HaveOneFormAndFitTheirBodies) {
  const Bytes body = filled(50);
  const auto make = [](std::uint32_t tail_bytes, std::uint64_t id = 5) {
    Message message{.kind = MessageKind::request, .service = 7, .reply_to = {.id = id}};
    message.tail_bytes = tail_bytes;
    return message;
  };
  for (const std::uint32_t tail_bytes : {1U, 49U, 50U}) {
    Message message = make(tail_bytes);
    EXPECT_EQ(MessageHead{message}.bytes().size() % 16, 0U) << "the body is aligned";
    ASSERT_TRUE(comes(message, body));
    EXPECT_EQ(message.tail_bytes, tail_bytes);
    EXPECT_EQ(message.part_count, 0U);
  }
  Message too_long = make(51);
  EXPECT_FALSE(comes(too_long, body));
  Message without_reply = make(5, 0);
  EXPECT_FALSE(comes(without_reply, body));
  const Message good = make(5);
  const MessageHead head{good};
  for (std::size_t i = head.bytes().size() - 12; i < head.bytes().size(); ++i) {
    Bytes bytes{head.bytes().begin(), head.bytes().end()};
    bytes[i] = std::byte{1};
    bytes.insert(bytes.end(), body.begin(), body.end());
    Message message;
    EXPECT_FALSE(decode(bytes, message)) << i;
  }
}

}  // namespace
}  // namespace sterna::rpc
