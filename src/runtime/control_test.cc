// The control channel: every message survives writing and reading, cut ones are refused; a node and
// a launcher over a socket pair.
#include "runtime/control.h"

#include <array>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/control_protocol.h"

namespace sterna::runtime {
namespace {

Job some_job() {
  Job job;
  job.mode = JobMode::node;
  job.map.node_index = 1;
  job.map.node_count = 2;
  job.map.rank_count = 3;
  job.map.job_id = 77;
  job.map.secret[5] = std::byte{9};
  job.map.node_of_rank = {0, 0, 1};
  job.map.host_of_node = {"a", "b"};
  job.program = "/bin/true";
  job.arguments = {"true", "x"};
  job.settings = {{"drivers", "tcp"}};
  return job;
}

std::span<const std::byte> body_of(const Frame& frame) {
  return std::span{frame}.subspan(kFrameHeaderBytes);
}

TEST(ControlProtocolTest, AJobArrivesAsItWasSent) {
  const Frame frame = encode(some_job());
  Result<FrameHeader> header = decode_header(std::span{frame}.first(kFrameHeaderBytes));
  ASSERT_TRUE(header);
  EXPECT_EQ(header.value().kind, FrameKind::job);
  EXPECT_EQ(header.value().body_bytes, frame.size() - kFrameHeaderBytes);
  Result<Job> job = decode_job(body_of(frame));
  ASSERT_TRUE(job);
  EXPECT_EQ(job.value().map.node_of_rank, some_job().map.node_of_rank);
  EXPECT_EQ(job.value().map.host_of_node, some_job().map.host_of_node);
  EXPECT_EQ(job.value().map.secret, some_job().map.secret);
  EXPECT_EQ(job.value().arguments, some_job().arguments);
  EXPECT_EQ(job.value().settings, some_job().settings);
}

TEST(ControlProtocolTest, AStatusArrivesAsItWasSent) {
  NodeStatus status{.node = 3,
                    .workers = 2,
                    .is_final = true,
                    .cpu_ns = 5,
                    .arrived = 6,
                    .left = 7,
                    .threads = 12,
                    .busy_ns = {13, 14},
                    .ranks = {{.rank = 1,
                               .state = "running",
                               .cpu_ns = 8,
                               .load = 0.5,
                               .messages = 9,
                               .moves = 2,
                               .activity = "waiting",
                               .worker = 1,
                               .refusal = "it holds a file"}},
                    .refusals = {{"it holds a file", 4}},
                    .entities = {{.depth = 0,
                                  .is_bubble = true,
                                  .name = "team",
                                  .state = "",
                                  .place = "numa 1",
                                  .last_place = "numa 0"},
                                 {.depth = 1,
                                  .name = "worker",
                                  .state = "ready",
                                  .place = "pu 2",
                                  .priority = 3,
                                  .key = 21,
                                  .holder = 22,
                                  .cpu_ns = 23,
                                  .load = 24,
                                  .memory = 25,
                                  .last_place = "pu 1",
                                  .threads = 26,
                                  .running = 27,
                                  .ready = 28}},
                    .faults = {"thread worker is lost"}};
  Result<NodeStatus> got = decode_status(body_of(encode(status)));
  ASSERT_TRUE(got);
  ASSERT_EQ(got.value().ranks.size(), 1u);
  EXPECT_EQ(got.value().ranks[0].refusal, "it holds a file");
  EXPECT_EQ(got.value().ranks[0].activity, "waiting");
  EXPECT_EQ(got.value().ranks[0].worker, 1u);
  EXPECT_EQ(got.value().busy_ns, status.busy_ns);
  EXPECT_EQ(got.value().threads, 12u);
  EXPECT_EQ(got.value().refusals, status.refusals);
  EXPECT_EQ(got.value().faults, status.faults);
  ASSERT_EQ(got.value().entities.size(), 2u);
  EXPECT_TRUE(got.value().entities[0].is_bubble);
  EXPECT_EQ(got.value().entities[0].name, "team");
  EXPECT_EQ(got.value().entities[1].depth, 1u);
  EXPECT_EQ(got.value().entities[1].state, "ready");
  EXPECT_EQ(got.value().entities[1].place, "pu 2");
  const EntityStatus& worker = got.value().entities[1];
  EXPECT_EQ(worker.priority, 3u);
  EXPECT_EQ(worker.key, 21u);
  EXPECT_EQ(worker.holder, 22u);
  EXPECT_EQ(worker.cpu_ns, 23u);
  EXPECT_EQ(worker.load, 24u);
  EXPECT_EQ(worker.memory, 25u);
  EXPECT_EQ(worker.last_place, "pu 1");
  EXPECT_EQ(worker.threads, 26u);
  EXPECT_EQ(worker.running, 27u);
  EXPECT_EQ(worker.ready, 28u);
}

TEST(ControlProtocolTest, EveryCutMessageIsRefused) {
  const Frame frame = encode(some_job());
  for (std::size_t bytes = 0; bytes + kFrameHeaderBytes < frame.size(); ++bytes) {
    EXPECT_FALSE(decode_job(body_of(frame).first(bytes))) << bytes;
  }
}

TEST(ControlProtocolTest, AHeaderOfNoKindOrTooLongIsRefused) {
  Frame frame = encode_empty(FrameKind::stop);
  frame[4] = std::byte{200};
  EXPECT_FALSE(decode_header(frame));
  frame = encode_empty(FrameKind::stop);
  frame[3] = std::byte{255};
  EXPECT_FALSE(decode_header(frame));
}

struct Launcher {
  FileDescriptor socket;
  void send(const Frame& frame) const {
    ASSERT_EQ(::write(socket.get(), frame.data(), frame.size()),
              static_cast<ssize_t>(frame.size()));
  }
};

/// A client that has been greeted, and the launcher's end of its socket.
std::pair<Launcher, std::unique_ptr<ControlClient>> connect() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  Launcher launcher{FileDescriptor{ends[0]}};
  launcher.send(
      encode(net::HostShare{.segment_fd = -1, .segment_bytes = 0, .nodes = {1}, .bell_fds = {-1}}));
  launcher.send(encode(some_job()));
  auto client = ControlClient::open(FileDescriptor{ends[1]});
  EXPECT_TRUE(client);
  return {std::move(launcher), std::move(client.value())};
}

struct Recorder final : ControlEvents {
  void on_peer_lost(std::uint32_t node) noexcept override { lost = static_cast<int>(node); }
  void on_status_wanted() noexcept override { ++asked; }
  void on_move_ordered(std::uint32_t rank, std::uint32_t node) noexcept override {
    moved = static_cast<int>(rank * 10 + node);
  }
  void on_stop() noexcept override { ++stopped; }
  int lost = -1;
  int asked = 0;
  int moved = -1;
  int stopped = 0;
};

TEST(ControlClientTest, HearsWhatTheLauncherSaysInPieces) {
  auto [launcher, client] = connect();
  EXPECT_EQ(client->job().node_index, 1u);
  Recorder events;
  EXPECT_EQ(client->poll(events), 0u);
  const Frame frame = encode_index(FrameKind::peer_lost, 0);
  for (const std::byte byte : frame) {
    EXPECT_EQ(events.lost, -1);
    launcher.send({byte});
    client->poll(events);
  }
  EXPECT_EQ(events.lost, 0);
  launcher.send(encode_empty(FrameKind::ask_status));
  launcher.send(encode(MoveOrder{.rank = 2, .node = 1}));
  EXPECT_EQ(client->poll(events), 2u);
  EXPECT_EQ(events.asked, 1);
  EXPECT_EQ(events.moved, 21);
}

TEST(ControlClientTest, ALauncherThatGoesStopsTheNodeOnce) {
  auto [launcher, client] = connect();
  Recorder events;
  launcher.socket = FileDescriptor{};
  client->poll(events);
  client->poll(events);
  EXPECT_EQ(events.stopped, 1);
}

TEST(ControlClientTest, AnOrderForNobodyStopsTheNode) {
  auto [launcher, client] = connect();
  Recorder events;
  launcher.send(encode(MoveOrder{.rank = 99, .node = 1}));
  client->poll(events);
  EXPECT_EQ(events.moved, -1);
  EXPECT_EQ(events.stopped, 1);
}

TEST(ControlClientTest, AnExchangeEndsWhenAPeerIsLost) {
  auto [launcher, client] = connect();
  launcher.send(encode_index(FrameKind::peer_lost, 0));
  auto blobs = client->exchange({});
  ASSERT_FALSE(blobs);
  EXPECT_EQ(blobs.error().code, Errc::closed);
  EXPECT_NE(blobs.error().text.find("node 0"), std::string::npos);
}

TEST(ControlClientTest, AnExchangeGivesAllBlobs) {
  auto [launcher, client] = connect();
  const std::vector<std::vector<std::byte>> all{{std::byte{1}}, {std::byte{2}, std::byte{3}}};
  launcher.send(encode_blobs(all));
  auto blobs = client->exchange(all[1]);
  ASSERT_TRUE(blobs);
  EXPECT_EQ(blobs.value(), all);
}

TEST(ControlClientTest, AloneIsAJobOfOneRank) {
  ::unsetenv(kControlVariable);
  auto client = ControlClient::open();
  ASSERT_TRUE(client);
  EXPECT_TRUE(client.value()->is_alone());
  const std::vector<std::byte> blob{std::byte{4}};
  auto blobs = client.value()->exchange(blob);
  ASSERT_TRUE(blobs);
  EXPECT_EQ(blobs.value().front(), blob);
}

TEST(ControlClientTest, AVariableThatNamesNoSocketIsAnError) {
  for (const char* text : {"0x", "9999", "-1", ""}) {
    ::setenv(kControlVariable, text, 1);
    EXPECT_FALSE(ControlClient::open()) << text;
  }
  ::unsetenv(kControlVariable);
}

}  // namespace
}  // namespace sterna::runtime
