// The status socket of a job. One that has no descriptor left: who asks waits, and the launcher
// does not turn round for him meanwhile. One that is being made while others ask.
#include "launch/status_server.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/job_client.h"
#include "launch/played_job.h"

namespace sterna::launch {
namespace {

bool connects(int client, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return ::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

FileDescriptor connect_to(const std::string& path) {
  FileDescriptor client{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  EXPECT_TRUE(connects(client.get(), path));
  return client;
}

/// As long as it lives, the process can open nothing.
struct NoDescriptors {
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = ::dup(0);
    ::close(next);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(next);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0); }
  rlimit before{};
};

/// A runtime folder of the test's own, as long as it lives.
struct RuntimeFolder {
  RuntimeFolder() {
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    EXPECT_EQ(::setenv("XDG_RUNTIME_DIR", path.c_str(), 1), 0);
  }
  ~RuntimeFolder() { std::filesystem::remove_all(path); }
  std::string path = "/tmp/sterna-status-test-XXXXXX";
};

TEST(StatusServer, WithoutADescriptorAClientWaitsAndIsServedLater) {
  const RuntimeFolder folder;
  Stage stage{runtime::JobMode::process, Temper::obedient, Temper::obedient};
  Loop& loop = stage.opened.value();
  {
    StatusServer server{loop, *stage.job};
    ASSERT_TRUE(server.open().has_value());
    const FileDescriptor client =
        connect_to(folder.path + "/sterna/job-" + std::to_string(::getpid()));
    ASSERT_EQ(::write(client.get(), "move 0 1\n", 9), 9);
    {
      const NoDescriptors none;
      loop.run_once(0);
      EXPECT_TRUE(server.is_busy()) << "it has said that it looks again";
      // The waiting client does not end the loop's sleep: only the deadline does.
      const std::uint64_t deadline_ns = now_ns() + 2'000'000;
      loop.run_once(deadline_ns);
      EXPECT_GE(now_ns(), deadline_ns);
      EXPECT_TRUE(server.is_busy());
    }
    std::string answer(256, '\0');
    ssize_t count = -1;
    while (count < 0) {  // Ends by the test's own limit of time, if it is never served.
      loop.run_once(now_ns() + 2'000'000);
      server.step();
      count = ::read(client.get(), answer.data(), answer.size());
    }
    EXPECT_NE(answer.find("ordered"), std::string::npos);
    EXPECT_FALSE(server.is_busy());
  }
}

TEST(JobClient, AJobIsFoundBehindWhatAKilledProgramOfItsNumberHasLeft) {
  const RuntimeFolder folder;
  constexpr unsigned kNumber = 4711;
  const std::string program = fmt::format("{}/program-{}", folder.path, kNumber);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(program.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, program.c_str(), program.size() + 1);
  {
    const FileDescriptor living{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    ASSERT_EQ(::bind(living.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(living.get(), 1), 0);
    EXPECT_EQ(job_socket(folder.path, kNumber), program);
  }
  ASSERT_EQ(::access(program.c_str(), F_OK), 0);
  EXPECT_EQ(job_socket(folder.path, kNumber), fmt::format("{}/job-{}", folder.path, kNumber));
  EXPECT_NE(::access(program.c_str(), F_OK), 0) << "it misleads nobody any more";
}

TEST(StatusServer, WhoAsksWhileASocketIsBeingMadeDoesNotRemoveIt) {
  const RuntimeFolder folder;
  Stage stage{runtime::JobMode::process, Temper::obedient, Temper::obedient};
  Loop& loop = stage.opened.value();
  const std::string path = job_socket(folder.path + "/sterna", static_cast<unsigned>(::getpid()));
  std::atomic<int> turns = 0;
  std::atomic<bool> may_look = true;  // Not while a job ends: here the next one has its number.
  std::atomic<bool> is_over = false;
  std::thread asker{[&] {
    for (; !is_over; ++turns) {
      if (!may_look) {
        std::this_thread::yield();
        continue;
      }
      // As ask(), which would wait for an answer.
      for (const std::string& found : job_sockets(folder.path + "/sterna")) {
        const FileDescriptor client{
            ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        if (!connects(client.get(), found) && errno == ECONNREFUSED) {
          ::unlink(found.c_str());
        }
      }
    }
  }};
  const auto wait_for_two_turns = [&] {  // The second has begun after the call.
    for (const int before = turns; turns < before + 2;) {
      std::this_thread::yield();
    }
  };
  int kept = 0;
  constexpr int kServers = 200;
  for (int i = 0; i < kServers; ++i) {
    may_look = true;
    StatusServer server{loop, *stage.job};
    EXPECT_TRUE(server.open().has_value());
    wait_for_two_turns();
    kept += ::access(path.c_str(), F_OK) == 0 ? 1 : 0;
    may_look = false;
    wait_for_two_turns();
  }
  is_over = true;
  asker.join();
  EXPECT_EQ(kept, kServers);
}

/// A server, and who asks it.
struct Asked {
  Asked() { EXPECT_TRUE(server.open().has_value()); }
  FileDescriptor ask(const std::string& request) {
    FileDescriptor client = connect_to(folder.path + "/sterna/job-" + std::to_string(::getpid()));
    EXPECT_EQ(::write(client.get(), request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
    for (int turns = 0; turns < 3; ++turns) {  // It is let in, read, and answered.
      turn();
    }
    return client;
  }
  void turn() {
    stage.opened.value().run_once(0);
    server.step();
  }
  std::string answer(const FileDescriptor& client) {
    std::string text(4096, '\0');
    ssize_t count = -1;
    while (count < 0) {  // Ends by the test's own limit of time, if it is never served.
      stage.opened.value().run_once(now_ns() + 2'000'000);
      server.step();
      count = ::read(client.get(), text.data(), text.size());
    }
    text.resize(static_cast<std::size_t>(count));
    return text;
  }
  /// What the job has asked its nodes so far.
  std::vector<std::pair<std::uint32_t, runtime::WayQuestion>> questions() {
    std::vector<std::pair<std::uint32_t, runtime::WayQuestion>> found;
    for (const PlayedCrew* const crew : stage.crews) {
      for (const auto& [node, frame] : crew->sent(FrameKind::explain)) {
        found.emplace_back(
            node,
            runtime::decode_explain(std::span{frame}.subspan(runtime::kFrameHeaderBytes)).value());
      }
    }
    return found;
  }
  void say(std::uint32_t node, std::uint32_t number, const std::string& protocol) {
    runtime::WayAnswer told;
    told.number = number;
    told.way.node = 2;
    told.way.driver = "link(tcp+tcp)";
    told.way.protocol = protocol;
    told.way.thresholds = {{"eager_bytes", 7}, {"direct_from_bytes", ~std::uint64_t{0}}};
    told.way.rails.resize(1);
    stage.say(node, runtime::encode(told));
  }

  RuntimeFolder folder;
  Stage stage{runtime::JobMode::process, Temper::obedient, Temper::obedient};
  StatusServer server{stage.opened.value(), *stage.job};
};

TEST(StatusServer, AQuestionAboutAWayGoesToTheNodeOfTheRankAndItsAnswerToWhoAsked) {
  Asked asked;
  const FileDescriptor first = asked.ask("why 1 2 4096\n");
  const FileDescriptor second = asked.ask("why 0 2 1\n");
  const auto questions = asked.questions();
  ASSERT_EQ(questions.size(), 2U);
  EXPECT_TRUE(asked.server.is_busy());
  const auto& of_node_0 = questions[questions[0].first == 0 ? 0 : 1];
  const auto& of_node_1 = questions[questions[0].first == 0 ? 1 : 0];
  EXPECT_EQ(of_node_1.first, 1U);
  EXPECT_EQ(of_node_1.second.node, 2U);
  EXPECT_EQ(of_node_1.second.bytes, 4096U);
  EXPECT_NE(of_node_0.second.number, of_node_1.second.number);
  asked.say(0, of_node_0.second.number, "this one");
  asked.say(1, of_node_1.second.number, "that one");
  const std::string that = asked.answer(first);
  EXPECT_NE(that.find("that one"), std::string::npos) << that;
  EXPECT_NE(that.find(R"("direct_from_bytes":null)"), std::string::npos) << that;
  EXPECT_NE(that.find(R"("from_node":1)"), std::string::npos) << that;
  EXPECT_NE(asked.answer(second).find("this one"), std::string::npos);
  EXPECT_FALSE(asked.server.is_busy());
}

TEST(StatusServer, WhatCannotBeAskedIsRefusedWithAReason) {
  Asked asked;
  EXPECT_NE(asked.answer(asked.ask("why 0 3 1\n")).find("no rank 3"), std::string::npos);
  EXPECT_NE(asked.answer(asked.ask("why 3 0 1\n")).find("no rank 3"), std::string::npos);
  EXPECT_EQ(asked.answer(asked.ask("why 0 1 1099511627777\n")), "");
  EXPECT_EQ(asked.answer(asked.ask("why 0 1\n")), "");
  EXPECT_TRUE(asked.questions().empty());
}

TEST(StatusServer, ANodeThatEndsOrOwesAnswersIsAskedNoMore) {
  Asked asked;
  for (int i = 0; i < 15; ++i) {  // Of those who have gone since.
    EXPECT_NE(asked.stage.job->ask_way(1, 0, 1), 0U);
  }
  const FileDescriptor last = asked.ask("why 1 0 1\n");
  EXPECT_EQ(asked.questions().size(), 16U);
  EXPECT_NE(asked.answer(asked.ask("why 1 0 1\n")).find("does not answer"), std::string::npos);
  EXPECT_EQ(asked.questions().size(), 16U);
  asked.stage.crews[1]->end(1, {.exit_code = 1});
  EXPECT_NE(asked.answer(last).find("ended before it answered"), std::string::npos);
  EXPECT_FALSE(asked.server.is_busy());
}

}  // namespace
}  // namespace sterna::launch
