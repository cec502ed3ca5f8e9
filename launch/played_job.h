// For tests: a job whose processes are played and whose time is driven.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launch/job.h"

namespace sterna::launch {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::uint32_t kNodes = 3;

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
  void send(std::uint32_t node, const Frame& frame) override { sent_.push_back({node, frame}); }
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

  /// The frames of that kind that the job has sent, with the node.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Frame>> sent(FrameKind kind) const {
    std::vector<std::pair<std::uint32_t, Frame>> found;
    for (const auto& [node, frame] : sent_) {
      const FrameHeader header =
          runtime::decode_header(std::span{frame}.first(runtime::kFrameHeaderBytes)).value();
      if (header.kind == kind) {
        found.push_back({node, frame});
      }
    }
    return found;
  }
  [[nodiscard]] std::uint64_t term_ns() const { return term_ns_; }
  [[nodiscard]] std::uint64_t kill_ns() const { return kill_ns_; }
  [[nodiscard]] bool was_left_and_closed() const { return has_been_left_ && is_closed_; }

 private:
  ManualClock& clock_;
  Job* job_ = nullptr;
  std::uint32_t first_;
  std::vector<bool> ended_;
  std::vector<std::pair<std::uint32_t, Frame>> sent_;
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

inline JobPlan plan_of(runtime::JobMode mode, OnLoss on_loss = OnLoss::end) {
  JobPlan plan;
  plan.options.on_loss = on_loss;
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
                 std::uint64_t timeout_ns = 0, bool are_initialized = true,
                 OnLoss on_loss = OnLoss::end)
      : sink{is_read}, opened{Loop::open()} {
    JobPlan plan = plan_of(mode, on_loss);
    plan.options.timeout_ns = timeout_ns;
    output.emplace(opened.value(), LineOutput::Options{.fds = {sink.fd.get(), sink.fd.get()}});
    job.emplace(opened.value(), *output, std::move(plan), clock);
    add(0, 1, here);
    add(1, 2, there);
    job->start();
    for (std::uint32_t node = 0; node < kNodes; ++node) {
      say(node, runtime::encode(runtime::Hello{.pid = 1000 + node}));
      if (are_initialized) {
        say(node, runtime::encode_index(FrameKind::initialized, node));
      }
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

}  // namespace sterna::launch
