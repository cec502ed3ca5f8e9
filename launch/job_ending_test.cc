// That a job ends within its time, whatever the cause and whoever does not obey: the clock is
// driven, the crews are played, each cause meets each way of not ending.
#include <csignal>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launch/job.h"

namespace sterna::launch {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint32_t kNodes = 3;
constexpr std::uint32_t kCulprit = 1;  // Whom the cause comes from.

/// How the processes of a crew, and its host, take their end.
enum class Temper {
  obedient,     // End at SIGTERM.
  deaf,         // End at SIGKILL only.
  immortal,     // Never end.
  loud,         // End at SIGTERM, but somebody holds their output open.
  unreachable,  // As immortal, and the host never says farewell.
};

class PlayedCrew final : public Crew {
 public:
  PlayedCrew(ManualClock& clock, std::uint32_t first, std::uint32_t count, Temper temper)
      : clock_{clock}, first_{first}, ended_(count), temper_{temper} {}
  void play(Job& job) { job_ = &job; }

  Result<> start() override {
    for (std::uint32_t i = 0; i < ended_.size(); ++i) {
      job_->on_started(first_ + i, 1000 + first_ + i);
    }
    return Done{};
  }
  void send(std::uint32_t /*node*/, const Frame& /*frame*/) override {}
  void signal(int number) override {
    (number == SIGTERM ? term_ns_ : kill_ns_) = clock_.now_ns();
    end_at_ = number == SIGKILL ? temper_ < Temper::immortal || temper_ == Temper::loud
                                : temper_ == Temper::obedient || temper_ == Temper::loud;
  }
  void give_input(std::span<const std::byte> /*bytes*/) override {}
  [[nodiscard]] std::size_t input_bytes_waiting() const noexcept override { return 0; }
  void let_output_flow(bool /*flows*/) override {}
  [[nodiscard]] bool is_over() const noexcept override { return temper_ != Temper::loud; }
  void leave() override { has_been_left_ = true; }
  [[nodiscard]] bool has_left() const noexcept override { return temper_ != Temper::unreachable; }
  void close() override { is_closed_ = true; }

  /// What the loop does for a real one. Never inside signal(): ends are told later.
  void turn() {
    for (std::uint32_t i = 0; end_at_ && i < ended_.size(); ++i) {
      end(first_ + i, {.signal = kill_ns_ != 0 ? SIGKILL : SIGTERM});
    }
  }
  void end(std::uint32_t node, const ProcessEnd& end) {
    if (!ended_[node - first_]) {
      ended_[node - first_] = true;
      job_->on_process_end(node, end);
    }
  }

  [[nodiscard]] std::uint64_t term_ns() const { return term_ns_; }
  [[nodiscard]] std::uint64_t kill_ns() const { return kill_ns_; }
  [[nodiscard]] bool was_left_and_closed() const { return has_been_left_ && is_closed_; }

 private:
  ManualClock& clock_;
  Job* job_ = nullptr;
  std::uint32_t first_;
  std::vector<bool> ended_;
  Temper temper_;
  bool end_at_ = false;
  std::uint64_t term_ns_ = 0;
  std::uint64_t kill_ns_ = 0;
  bool has_been_left_ = false;
  bool is_closed_ = false;
};

/// Standard error as a file, or as a pipe that is full and that nobody reads.
struct Sink {
  explicit Sink(bool is_read) {
    if (is_read) {
      fd = FileDescriptor{::memfd_create("messages", MFD_CLOEXEC)};
      return;
    }
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reader = FileDescriptor{ends[0]};
    fd = FileDescriptor{ends[1]};
    const std::string block(4096, 'x');
    while (::write(fd.get(), block.data(), block.size()) > 0) {
    }
  }
  [[nodiscard]] std::string text() const {
    std::string text(65536, '\0');
    const ssize_t count = ::pread(fd.get(), text.data(), text.size(), 0);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }
  FileDescriptor fd;
  FileDescriptor reader;
};

JobPlan plan_of(runtime::JobMode mode) {
  JobPlan plan;
  plan.job.mode = mode;
  plan.job.map.node_count = kNodes;
  plan.job.map.rank_count = kNodes;
  plan.job.map.node_of_rank = {0, 1, 2};
  plan.job.map.host_of_node = {"here", "there", "there"};
  plan.crews.resize(2);
  plan.crews[0].host = "here";
  plan.crews[1].host = "there";
  for (std::uint32_t node = 0; node < kNodes; ++node) {
    plan.crews[node == 0 ? 0 : 1].processes.emplace_back().node = node;
  }
  return plan;
}

struct Stage {
  explicit Stage(runtime::JobMode mode, Temper here, Temper there, bool is_read = true,
                 std::uint64_t timeout_ns = 0)
      : sink{is_read}, opened{Loop::open()} {
    JobPlan plan = plan_of(mode);
    plan.options.timeout_ns = timeout_ns;
    output.emplace(opened.value(), LineOutput::Options{.fds = {sink.fd.get(), sink.fd.get()}});
    job.emplace(opened.value(), *output, std::move(plan), clock);
    add(0, 1, here);
    add(1, 2, there);
    job->start();
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      say(node, runtime::encode(runtime::Hello{.pid = 1000 + node}));
      say(node, runtime::encode_index(FrameKind::initialized, node));
    }
  }
  void add(std::uint32_t first, std::uint32_t count, Temper temper) {
    auto crew = std::make_unique<PlayedCrew>(clock, first, count, temper);
    crew->play(*job);
    crews.push_back(crew.get());
    job->add_crew(std::move(crew));
  }
  void say(std::uint32_t node, const Frame& frame) {
    const FrameHeader header =
        runtime::decode_header(std::span{frame}.first(runtime::kFrameHeaderBytes)).value();
    job->on_frame(node, header, std::span{frame}.subspan(runtime::kFrameHeaderBytes));
  }
  /// One turn as in Job::run, but the time that it waits passes on our clock.
  void turn(std::uint64_t until_ns) {
    for (PlayedCrew* crew : crews) {
      crew->turn();
    }
    opened.value().run_once(0);
    job->step();
    const std::uint64_t next_ns = std::min(job->next_deadline_ns(), until_ns);
    if (!job->is_over() && next_ns > clock.now_ns()) {
      clock.advance(next_ns - clock.now_ns());
    }
  }
  /// Runs the job to its end; the time it took, or all of `limit_ns`.
  std::uint64_t end(std::uint64_t limit_ns) {
    const std::uint64_t begin_ns = clock.now_ns();
    while (!job->is_over() && clock.now_ns() < begin_ns + limit_ns) {
      turn(begin_ns + limit_ns);
    }
    return clock.now_ns() - begin_ns;
  }

  ManualClock clock{100 * kSecond};
  Sink sink;
  Result<Loop> opened;
  std::optional<LineOutput> output;
  std::optional<Job> job;
  std::vector<PlayedCrew*> crews;
};

enum class Cause { abort, crash, lost, exit, interrupt, timeout };

int give(Stage& stage, Cause cause) {
  switch (cause) {
    case Cause::abort:
      stage.say(kCulprit, runtime::encode(runtime::RankAbort{kCulprit, 42, "enough"}));
      return 42;
    case Cause::crash: {
      std::array<std::byte, runtime::kCrashFrameBytesMax> memory;
      const std::size_t bytes = runtime::encode_crash(
          {.rank = kCulprit, .signal = SIGSEGV, .thread = {}, .text = {}}, memory);
      stage.say(kCulprit, {memory.begin(), memory.begin() + bytes});
      return 128 + SIGSEGV;
    }
    case Cause::lost:
      stage.crews[1]->end(kCulprit, {.signal = SIGKILL});
      return 128 + SIGKILL;
    case Cause::exit:
      if (stage.job->plan().job.mode == runtime::JobMode::node) {
        stage.say(kCulprit, runtime::encode(runtime::RankEnd{kCulprit, 4}));
      } else {
        stage.crews[1]->end(kCulprit, {.exit_code = 4});
      }
      return 4;
    case Cause::interrupt:
      stage.job->on_signal(SIGINT);
      return 130;
    case Cause::timeout:
      stage.clock.advance(7 * kSecond);
      return 124;
  }
  return 0;
}

class Endings : public testing::TestWithParam<std::tuple<runtime::JobMode, Cause, Temper, bool>> {};

TEST_P(Endings, AreOverInTime) {
  const auto [mode, cause, temper, is_read] = GetParam();
  for (const Temper here : {Temper::obedient, temper}) {
    Stage stage{mode, here, temper, is_read, cause == Cause::timeout ? 7 * kSecond : 0};
    const std::uint64_t quiet_ns = stage.end(5 * kSecond);
    ASSERT_EQ(quiet_ns, 5 * kSecond) << "nothing ends a job without a cause";
    if (cause == Cause::timeout) {
      stage.clock.advance(2 * kSecond);
    }
    const std::uint64_t cause_ns = stage.clock.now_ns();
    const int exit_code = cause == Cause::timeout ? 124 : give(stage, cause);
    EXPECT_LE(stage.end(60 * kSecond), kEndNs);
    ASSERT_TRUE(stage.job->is_over());
    EXPECT_EQ(stage.job->exit_code(), exit_code);
    for (const PlayedCrew* crew : stage.crews) {
      EXPECT_EQ(crew->term_ns(), cause_ns);
      EXPECT_TRUE(crew->was_left_and_closed());
    }
    // Of the loud ones something is left too: whoever holds their output.
    EXPECT_EQ(stage.crews[1]->kill_ns() != 0, temper != Temper::obedient);
    if (is_read) {
      const std::string text = stage.sink.text();
      const bool names_rank = cause <= Cause::exit;
      EXPECT_EQ(
          text.find("rank 1 (node 1, host there, process 1001)") != std::string::npos ||
              text.find("the process of node 1, host there, process 1001") != std::string::npos,
          names_rank)
          << text;
      const bool stays = temper == Temper::immortal || temper == Temper::unreachable;
      EXPECT_EQ(text.find("did not end, not even killed") != std::string::npos, stays) << text;
      EXPECT_EQ(text.find("node 2, host there, process 1002") != std::string::npos, stays) << text;
    }
  }
}

std::string name_of(const testing::TestParamInfo<Endings::ParamType>& info) {
  const char* const causes[] = {"Abort", "Crash", "Lost", "Exit", "Interrupt", "Timeout"};
  const char* const tempers[] = {"Obedient", "Deaf", "Immortal", "Loud", "Unreachable"};
  return std::string{std::get<0>(info.param) == runtime::JobMode::node ? "Nodes" : "Processes"} +
         causes[static_cast<int>(std::get<1>(info.param))] +
         tempers[static_cast<int>(std::get<2>(info.param))] +
         (std::get<3>(info.param) ? "Read" : "Unread");
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Endings,
    testing::Combine(testing::Values(runtime::JobMode::process, runtime::JobMode::node),
                     testing::Values(Cause::abort, Cause::crash, Cause::lost, Cause::exit,
                                     Cause::interrupt, Cause::timeout),
                     testing::Values(Temper::obedient, Temper::deaf, Temper::immortal, Temper::loud,
                                     Temper::unreachable),
                     testing::Bool()),
    name_of);

TEST(JobEnding, ASecondSignalKillsAtOnce) {
  Stage stage{runtime::JobMode::process, Temper::deaf, Temper::deaf};
  stage.job->on_signal(SIGINT);
  stage.clock.advance(1);
  stage.job->on_signal(SIGINT);
  EXPECT_EQ(stage.crews[0]->kill_ns(), stage.clock.now_ns());
  EXPECT_LT(stage.end(60 * kSecond), kSecond);
  EXPECT_EQ(stage.job->exit_code(), 130);
}

TEST(JobEnding, NodesThatDoNotEndAfterTheirRanksAreEndedAndTheJobIsAGoodOne) {
  Stage stage{runtime::JobMode::node, Temper::obedient, Temper::deaf};
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    stage.say(rank, runtime::encode_index(FrameKind::finalized, rank));
    stage.say(rank, runtime::encode(runtime::RankEnd{rank, 0}));
  }
  EXPECT_LE(stage.end(60 * kSecond), 10 * kSecond + kEndNs);
  EXPECT_EQ(stage.job->exit_code(), 0);
  EXPECT_NE(stage.sink.text().find("all ranks have ended, but not their nodes"), std::string::npos);
}

TEST(JobEnding, ASlowReaderGetsAllOfAGoodJobsOutput) {
  Stage stage{runtime::JobMode::process, Temper::obedient, Temper::obedient, false};
  stage.job->warn("the last line");
  for (std::uint32_t rank = 0; rank < kNodes; ++rank) {
    stage.say(rank, runtime::encode_index(FrameKind::finalized, rank));
    stage.crews[rank == 0 ? 0 : 1]->end(rank, {});
  }
  EXPECT_EQ(stage.end(3600 * kSecond), 3600 * kSecond) << "it is still waiting";
  stage.job->on_signal(SIGINT);
  EXPECT_LE(stage.end(60 * kSecond), kEndNs) << "but a signal ends that";
}

}  // namespace
}  // namespace sterna::launch
