// Where networks are polled: the setting, places by a machine that is not there (its devices are
// files, its NUMA nodes those of a synthetic topology), and messages of rails that are bound.
#include "net/opening/poll_place.h"

#include <array>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "memory/heap.h"
#include "net/drivers/builtin.h"
#include "net/drivers/tcp/address.h"
#include "net/drivers/test_job.h"
#include "net/endpoint.h"
#include "net/transport.h"
#include "progress/progress.h"
#include "topology/topology.h"

namespace sterna::net {
namespace {

namespace fs = std::filesystem;

DriverChoice choice_of(std::string_view text) {
  return std::move(choose_drivers(text).value().front());
}

TEST(PollAtTest, IsAPlaceForAllAndForSome) {
  for (const std::string_view good :
       {"any", "application", "device", "device,shm=any", "tcp@eth0=device,any",
        "drop(tcp@eth0)=application", "fabric@verbs:mlx5_0=device"}) {
    EXPECT_TRUE(verify_poll_at(good)) << good;
  }
  for (const std::string_view bad :
       {"", "near", "device,", ",device", "tcp=", "=device,", "tcp=near", "pigeon=device"}) {
    EXPECT_FALSE(verify_poll_at(bad)) << bad;
  }
}

TEST(PollAtTest, OfOneNetworkCountsBeforeThatOfItsDriverAndOfAll) {
  constexpr std::string_view kText = "tcp@eth1=application,device,tcp=any,shm=application";
  EXPECT_EQ(poll_at(kText, choice_of("fabric")), PollAt::device);
  EXPECT_EQ(poll_at(kText, choice_of("tcp")), PollAt::any);
  EXPECT_EQ(poll_at(kText, choice_of("tcp@eth0")), PollAt::any);
  EXPECT_EQ(poll_at(kText, choice_of("tcp@eth1")), PollAt::application);
  EXPECT_EQ(poll_at(kText, choice_of("shm")), PollAt::application);
  EXPECT_EQ(poll_at("tcp=device", choice_of("shm")), PollAt::any);
  EXPECT_EQ(poll_at("tcp=device", choice_of("drop(tcp@eth0,rate=10)")), PollAt::device);
  DriverChoice second = choice_of("tcp@eth1");
  second.name = "tcp@eth1*2";  // repeat_by_connections()
  EXPECT_EQ(poll_at(kText, second), PollAt::application);
  EXPECT_TRUE(wants_numa_nodes(kText, std::vector{second}));
  EXPECT_FALSE(wants_numa_nodes(kText, std::vector{choice_of("tcp")}));
}

/// A driver with two boards, and one with none.
const DriverEntry kBoards{
    .name = "boards", .summary = {}, .tunables = {}, .open = nullptr,
    .devices = [](const DriverOptions& options) noexcept {
      return options.instance.empty()
                 ? std::vector<std::string>{"class/net/eth0", "class/net/eth1"}
                 : std::vector<std::string>{"class/net/" + std::string{options.instance}};
    }};

class PollPlaceTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    machine.system = fs::temp_directory_path() / ("places" + std::to_string(::getpid()) + name);
    put("eth0", "0-1");
    put("eth1", "2");
    auto topology = topology::Topology::synthetic("node:2 core:2 pu:1");
    ASSERT_TRUE(topology);
    machine.usable = topology.value()->root().cpus;
    for (std::uint32_t i = 0; i < 2; ++i) {
      machine.numa_nodes.push_back(
          topology.value()->find(topology::PlaceKind::numa, i)->cpus);
    }
  }
  void TearDown() override { fs::remove_all(machine.system); }
  void put(const std::string& interface, const std::string& processors) const {
    const fs::path device = fs::path{machine.system} / "class/net" / interface / "device";
    fs::create_directories(device);
    std::ofstream{device / "local_cpulist"} << processors << "\n";
  }
  PollPlace at(PollAt place, const std::string& instance = {}) const {
    return find_poll_place(place, {.entry = &kBoards}, {.instance = instance}, machine);
  }

  PollMachine machine;
};

TEST_F(PollPlaceTest, NearADeviceIsWhereTheSystemSaysThatItIs) {
  const PollPlace near_first = at(PollAt::device, "eth0");
  EXPECT_EQ(near_first.where.places, (std::vector{topology::CpuSet{0, 1}}));
  EXPECT_FALSE(near_first.where.follows_callers);
  EXPECT_EQ(near_first.text, "on processors 0-1, near eth0");
  EXPECT_EQ(at(PollAt::device).text, "on processors 0-2, near eth0 and eth1");
  machine.usable = {1, 2, 3};
  EXPECT_EQ(at(PollAt::device, "eth0").text, "on processors 1, near eth0") << "what it may use";
}

TEST_F(PollPlaceTest, IsAnywhereWhereItIsNotKnownAndSaysWhy) {
  const auto expect_anywhere = [](const PollPlace& place, std::string_view why) {
    EXPECT_TRUE(place.where.places.empty());
    EXPECT_EQ(place.text, why);
  };
  expect_anywhere(at(PollAt::any), "anywhere");
  expect_anywhere(at(PollAt::device, "eth7"),
                  "anywhere: the system does not say which processors eth7 is near");
  expect_anywhere(find_poll_place(PollAt::device, choice_of("shm"), {}, machine),
                  "anywhere: shm has no device");
  put("eth2", "0-63");
  expect_anywhere(at(PollAt::device, "eth2"),
                  "anywhere: all processors that may be used are near eth2");
  machine.usable = {2, 3};
  expect_anywhere(at(PollAt::device, "eth0"),
                  "anywhere: of the processors near eth0, 0-1, none may be used");
  machine.numa_nodes.pop_back();
  expect_anywhere(at(PollAt::application),
                  "anywhere: the processors that may be used are in one NUMA node");
}

TEST_F(PollPlaceTest, OfTheApplicationIsAmongTheNumaNodes) {
  const PollPlace place = at(PollAt::application);
  EXPECT_EQ(place.where.places,
            (std::vector{topology::CpuSet{0, 1}, topology::CpuSet{2, 3}}));
  EXPECT_TRUE(place.where.follows_callers);
  EXPECT_EQ(place.text, "in that of 2 NUMA nodes where a thread called last");
}

TEST_F(PollPlaceTest, OfTcpIsNearTheInterfacesItListensOn) {
  const std::vector<std::string> interfaces = tcp::interface_names({});
  for (const std::string& name : interfaces) {
    EXPECT_NE(name, "lo");
    put(name, "3");
    const PollPlace place =
        find_poll_place(PollAt::device, choice_of("tcp"), {.instance = name}, machine);
    EXPECT_EQ(place.text, "on processors 3, near " + name);
  }
  EXPECT_TRUE(tcp::interface_names("127.0.0.1").empty());
  EXPECT_EQ(
      find_poll_place(PollAt::device, choice_of("tcp"), {.instance = "127.0.0.1"}, machine).text,
      "anywhere: tcp has no device");
}

/// Two nodes with shared memory that is said to be on a board near one processor.
TEST_F(PollPlaceTest, MessagesOfBoundRailsArriveWhoeverPolls) {
  static DriverEntry placed = kShmDriver;
  placed.devices = [](const DriverOptions&) noexcept {
    return std::vector<std::string>{"class/net/here"};
  };
  auto own = topology::current_thread_cpus();
  ASSERT_TRUE(own);
  put("here", std::to_string(own.value().list().front()));
  Settings settings{transport_tunables()};
  ASSERT_TRUE(settings.set("net_poll_at", "device", SettingSource::command_line, "test"));
  const std::vector<DriverChoice> drivers{{.entry = &placed}};
  TestJob job{2};
  std::array<std::unique_ptr<progress::Progress>, 2> progress;
  std::array<std::unique_ptr<Transport>, 2> nodes;
  std::array<Endpoint*, 2> endpoints{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto opened = Transport::open({.bootstrap = &job.node(i),
                                   .drivers = drivers,
                                   .settings = &settings,
                                   .system = machine.system});
    ASSERT_TRUE(opened);
    nodes[i] = std::move(opened.value());
    endpoints[i] = create_endpoint(*memory::Heap::process(), i);
    nodes[i]->install(i, endpoints[i]);
    progress[i] = std::move(progress::Progress::open().value());
    nodes[i]->add_to(*progress[i]);
  }
  std::vector<char> sent(300'000, 'x');
  for (const std::uint32_t cpu : own.value().list()) {
    ASSERT_TRUE(topology::bind_current_thread({cpu}));
    std::vector<char> got(sent.size());
    SendRequest send;
    RecvRequest receive;
    nodes[1]->receive(*endpoints[1], receive, {0, 5, 7}, Buffer::of(got.data(), got.size()));
    nodes[0]->send(*endpoints[0], send, {1, 5, 7}, Buffer::of(sent.data(), sent.size()));
    while (!send.done.done() || !receive.done.done()) {
      for (const auto& one : progress) {
        (void)one->poll(threads::SchedulingPoint::idle);
      }
    }
    EXPECT_EQ(got, sent);
  }
  ASSERT_TRUE(topology::bind_current_thread(own.value()));
  for (std::uint32_t i = 0; i < 2; ++i) {
    nodes[i]->remove_from(*progress[i]);
    nodes[i].reset();
    destroy_endpoint(endpoints[i]);
  }
}

TEST_F(PollPlaceTest, OfThisMachineIsWhatThisProcessMayUse) {
  const PollMachine here = this_machine(true);
  EXPECT_FALSE(here.usable.empty());
  topology::CpuSet all;
  for (const topology::CpuSet& node : here.numa_nodes) {
    all.add(node);
  }
  EXPECT_TRUE(here.numa_nodes.empty() || all.includes(here.usable));
  EXPECT_TRUE(this_machine(false).numa_nodes.empty());
}

}  // namespace
}  // namespace sterna::net
