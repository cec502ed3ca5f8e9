// How a job ends, and within what time: signals, deadlines, and the phases after the last process.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "launch/describe.h"
#include "launch/job.h"
#include "launch/report.h"

namespace sterna::launch {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// Counted from the cause of the end, when SIGTERM is sent.
constexpr std::uint64_t kGraceNs = kSecond;       // SIGKILL.
constexpr std::uint64_t kGiveUpNs = 3 * kSecond;  // On without who has not ended even so.
// Counted from their own beginnings, and cut off at kEndNs after the cause.
constexpr std::uint64_t kOutputGraceNs = kSecond;    // For pipes that somebody else holds open.
constexpr std::uint64_t kFarewellNs = kSecond / 2;   // For agents, to end what they have started.
constexpr std::uint64_t kDrainNs = kSecond;          // For the reader of a failed job's output.
constexpr std::uint64_t kStopNs = 10 * kSecond;      // For nodes without ranks, to end.
constexpr std::uint64_t kEndingTurnNs = 50'000'000;  // While ending we look so often.
constexpr int kTimeoutExitCode = 124;                // As timeout(1).

}  // namespace

int Job::run(FunctionRef<bool()> each_turn) {
  while (!is_over()) {
    bool is_busy = false;
    if (phase_ == Phase::running) {
      is_busy = each_turn();
      for (const std::unique_ptr<Crew>& crew : crews_) {
        crew->let_output_flow(!output_.is_full());
      }
    }
    const std::uint64_t soon_ns = is_busy ? clock_.now_ns() + kEndingTurnNs : kNever;
    loop_.run_once(std::min(soon_ns, next_deadline_ns()));
    step();
  }
  return exit_code_;
}

std::uint64_t Job::next_deadline_ns() const {
  if (phase_ == Phase::draining && !has_failed_) {
    return kNever;  // A slow reader gets all of a good job's output.
  }
  if (is_ending_ || phase_ != Phase::running) {
    return clock_.now_ns() + kEndingTurnNs;
  }
  std::uint64_t deadline_ns = output_.deadline_ns();
  if (tell_places_at_ns_ != 0) {
    deadline_ns = std::min(deadline_ns, tell_places_at_ns_);
  }
  if (plan_.options.timeout_ns != 0) {
    deadline_ns = std::min(deadline_ns, start_ns_ + plan_.options.timeout_ns);
  }
  return stopped_at_ns_ != 0 ? std::min(deadline_ns, stopped_at_ns_ + kStopNs) : deadline_ns;
}

void Job::step() {
  const std::uint64_t now_ns = clock_.now_ns();
  if (phase_ == Phase::running) {
    output_.step(now_ns);
    if (output_.is_unread() && !is_ending_) {
      fail(128 + SIGPIPE,  // As the shell tells it of a program alone.
           "nobody reads the output of the ranks any more, and they go on printing; the job ends");
    }
    if (tell_places_at_ns_ != 0 && now_ns >= tell_places_at_ns_) {
      tell_places(kNoNode);
      ask_flushes();
    }
    if (plan_.options.timeout_ns != 0 && now_ns >= start_ns_ + plan_.options.timeout_ns) {
      fail(kTimeoutExitCode, fmt::format("the job has not ended within {:g} s (--timeout)",
                                         static_cast<double>(plan_.options.timeout_ns) / 1e9));
    }
    step_ending();
  }
  step_phase();
}

void Job::step_ending() {
  const std::uint64_t now_ns = clock_.now_ns();
  if (ended_at_ns_ == 0 && ended_nodes_ == nodes_.size()) {
    is_ending_ = true;
    ended_at_ns_ = now_ns;
  }
  if (ended_at_ns_ == 0 && cause_ns_ == 0 && stopped_at_ns_ != 0 &&
      now_ns >= stopped_at_ns_ + kStopNs) {
    warn(fmt::format("all ranks have ended, but not their nodes within {} s; they are ended",
                     kStopNs / kSecond));
    begin_ending();
  }
  if (!is_killed_ && is_past(kGraceNs)) {
    kill_all();
  }
}

/// Each phase has an end that comes with time alone, once the job has failed.
void Job::step_phase() {
  const std::uint64_t now_ns = clock_.now_ns();
  const Phase before = phase_;
  if (phase_ == Phase::running && has_ended()) {
    tell_who_is_left();
    for (const std::unique_ptr<Crew>& crew : crews_) {
      crew->leave();
    }
    phase_ = Phase::leaving;
  } else if (phase_ == Phase::leaving &&
             (now_ns >= phase_since_ns_ + kFarewellNs || is_past(kEndNs) ||
              std::all_of(crews_.begin(), crews_.end(),
                          [](const auto& crew) { return crew->has_left(); }))) {
    for (const std::unique_ptr<Crew>& crew : crews_) {
      crew->close();
    }
    output_.finish();
    if (!write_report(*this, output_, exit_code_)) {
      warn("the report cannot be written to " + plan_.options.report_file);
    }
    phase_ = Phase::draining;
  } else if (phase_ == Phase::draining &&
             (output_.is_drained() || signals_ > 1 || is_past(kEndNs) ||
              (has_failed_ && now_ns >= phase_since_ns_ + kDrainNs))) {
    phase_ = Phase::over;
  }
  if (phase_ != before) {
    phase_since_ns_ = now_ns;
    step_phase();  // The next may have nothing to wait for.
  }
}

/// So long after the cause of the end; false if nothing has caused one.
bool Job::is_past(std::uint64_t after_cause_ns) const {
  return cause_ns_ != 0 && clock_.now_ns() >= cause_ns_ + after_cause_ns;
}

bool Job::has_ended() const {
  if (is_past(kGiveUpNs)) {
    return true;
  }
  if (ended_at_ns_ == 0) {
    return false;
  }
  const bool is_quiet =
      std::all_of(crews_.begin(), crews_.end(), [](const auto& crew) { return crew->is_over(); });
  // Somebody else holds a pipe open, or nobody reads the output of a job that has failed.
  return is_quiet ||
         ((has_failed_ || !output_.is_full()) && clock_.now_ns() >= ended_at_ns_ + kOutputGraceNs);
}

void Job::tell_who_is_left() {
  constexpr std::size_t kNamedMax = 4;
  std::string names;
  std::size_t count = 0;
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    const NodeRecord::State state = nodes_[node].state;
    if (state != NodeRecord::State::ended && state != NodeRecord::State::waiting) {
      names += count < kNamedMax ? (count == 0 ? "" : "; ") + where(node)
                                 : (count == kNamedMax ? "; ..." : "");
      ++count;
    }
  }
  if (count > 0) {
    warn(
        fmt::format("{} process{} did not end, not even killed (the kernel holds it, or its host "
                    "does not answer); look there: {}",
                    count, count == 1 ? "" : "es", names));
  }
}

void Job::fail(int exit_code, const std::string& text) {
  if (has_failed_) {
    return;
  }
  has_failed_ = true;
  note_failure(exit_code);
  output_.add_message(plan_.options.command_name + ": " + text);
  begin_ending();
}

/// From here on everything ends by time.
void Job::begin_ending() {
  is_ending_ = true;
  if (cause_ns_ == 0) {
    cause_ns_ = clock_.now_ns();
    for (const std::unique_ptr<Crew>& crew : crews_) {
      crew->signal(SIGTERM);
    }
  }
}

void Job::kill_all() {
  is_killed_ = true;
  for (const std::unique_ptr<Crew>& crew : crews_) {
    crew->signal(SIGKILL);
  }
}

void Job::on_signal(int signal) {
  ++signals_;
  fail(128 + signal, signal == SIGINT
                         ? "interrupted; the job ends"
                         : fmt::format("received {}; the job ends", signal_text(signal)));
  if (signals_ > 1) {
    kill_all();
  }
}

}  // namespace sterna::launch
