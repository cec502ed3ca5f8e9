// What happens to a job: its start, orders to it, ends of processes, and how the verdict falls.
#include "launch/job.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "launch/describe.h"
#include "launch/report.h"

namespace sterna::launch {
Job::Job(Loop& loop, LineOutput& output, JobPlan plan, Clock& clock)
    : loop_{loop}, output_{output}, plan_{std::move(plan)}, clock_{clock} {
  nodes_.resize(plan_.job.map.node_count);
  ranks_.resize(plan_.job.map.rank_count);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank].node = plan_.job.map.node_of_rank[rank];
  }
  for (std::size_t crew = 0; crew < plan_.crews.size(); ++crew) {
    for (const ProcessOrder& order : plan_.crews[crew].processes) {
      nodes_[order.node].crew = crew;
    }
  }
  loop_.on_signals(*this);
}

void Job::add_crew(std::unique_ptr<Crew> crew) {
  crews_.push_back(std::move(crew));
}

void Job::start() {
  start_ns_ = clock_.now_ns();
  for (std::size_t crew = 0; crew < crews_.size(); ++crew) {
    Result<> started = crews_[crew]->start();
    if (started) {
      continue;
    }
    fail(1, started.error().text);
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      if (nodes_[node].crew >= crew) {
        on_process_end(node, {.exit_code = 127});  // Nobody needs to wait for these.
      }
    }
    return;
  }
}

void Job::warn(const std::string& text) {
  output_.add_message(plan_.options.command_name + ": warning: " + text);
}

void Job::broadcast(const Frame& frame, std::uint32_t but_node) {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    if (node != but_node && nodes_[node].state == NodeRecord::State::member) {
      crews_[nodes_[node].crew]->send(node, frame);
    }
  }
}

void Job::ask_status() {
  const Frame question = runtime::encode_empty(FrameKind::ask_status);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    NodeRecord& its = nodes_[node];
    if (its.state == NodeRecord::State::member && !its.is_asked) {
      its.is_asked = true;  // Questions do not pile up at a process that computes for an hour.
      crews_[its.crew]->send(node, question);
    }
  }
}

bool Job::order_move(std::uint32_t rank, std::uint32_t node) {
  if (!in_nodes() || rank >= ranks_.size() || node >= nodes_.size() ||
      nodes_[node].state != NodeRecord::State::member || ranks_[rank].is_ended) {
    return false;
  }
  const std::uint32_t from = ranks_[rank].node;
  crews_[nodes_[from].crew]->send(from, runtime::encode(runtime::MoveOrder{rank, node}));
  return true;
}

void Job::give_input(std::span<const std::byte> bytes) {
  crews_[nodes_[plan_.job.map.node_of_rank[0]].crew]->give_input(bytes);
}

std::size_t Job::input_bytes_waiting() const {
  return crews_[nodes_[plan_.job.map.node_of_rank[0]].crew]->input_bytes_waiting();
}

std::string Job::where(std::uint32_t node) const {
  return fmt::format("node {}, host {}, process {}", node, plan_.job.map.host_of_node[node],
                     nodes_[node].pid);
}

std::string Job::who(std::uint32_t rank) const {
  return fmt::format("rank {} ({})", rank, where(ranks_[rank].node));
}

void Job::on_started(std::uint32_t node, std::uint32_t pid) {
  nodes_[node].state = NodeRecord::State::started;
  nodes_[node].pid = pid;
}

void Job::on_start_failed(std::uint32_t node, std::string_view text) {
  fail(127, fmt::format("node {} on host {}: {}", node, plan_.job.map.host_of_node[node], text));
}

void Job::on_crew_lost(std::string_view host, std::string_view text) {
  lose(255, fmt::format("host {}: {}", host, text));
  for (std::uint32_t node = 0; node < nodes_.size() && !is_ending_; ++node) {
    if (plan_.crews[nodes_[node].crew].host == host) {
      on_process_end(node, {.exit_code = 255});  // Whether they are or not: nobody reaches them.
    }
  }
}

void Job::on_output(std::uint32_t node, OutputStream stream, std::span<const std::byte> bytes) {
  if (!in_nodes()) {
    output_.add(node, stream, bytes);
  } else {
    output_.add_plain(node, stream, bytes);  // The runtime's own words; no rank's.
  }
}

void Job::on_process_end(std::uint32_t node, const ProcessEnd& end) {
  NodeRecord& record = nodes_[node];
  if (record.state == NodeRecord::State::ended) {
    return;
  }
  const bool was_member = record.state == NodeRecord::State::member;
  record.state = NodeRecord::State::ended;
  record.end = end;
  ++ended_nodes_;
  // The end of who has done its part is no loss.
  const bool has_done = in_nodes() ? ended_ranks_ == ranks_.size() : ranks_[node].is_finalized;
  const bool must_tell = was_member && !is_ending_ && !has_done;
  if (must_tell && !in_nodes()) {
    tell_of_loss(node);
  }
  judge_node_end(node);
  // With a rank in it the job has ended: nobody should make a second failure of that.
  if (must_tell && in_nodes() && !is_ending_) {
    tell_of_loss(node);
  }
}

void Job::tell_places(std::uint32_t but_node) {
  tell_places_at_ns_ = 0;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankRecord& record = ranks_[rank];
    // Who waits for a rank that was lost with its node must know that it was there.
    const bool is_lost = nodes_[record.node].state == NodeRecord::State::ended;
    if (record.moves != 0 && (is_lost || !record.is_ended)) {
      broadcast(runtime::encode(runtime::RankMove{rank, record.node, record.moves}), but_node);
    }
  }
}

/// Nodes that all ranks have left hand over what is left of them: then they may end.
void Job::ask_flushes() {
  std::vector<bool> is_used(nodes_.size());
  for (const RankRecord& rank : ranks_) {
    is_used[rank.node] = is_used[rank.node] || !rank.is_ended;
  }
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    NodeRecord& record = nodes_[node];
    if (record.state == NodeRecord::State::member && !is_used[node] &&
        record.flush_asked != record.departures) {
      record.flush_asked = record.departures;
      crews_[record.crew]->send(node, runtime::encode_index(FrameKind::flush, record.departures));
    }
  }
}

void Job::note_departure(std::uint32_t node) {
  ++nodes_[node].departures;
  if (tell_places_at_ns_ == 0) {
    tell_places_at_ns_ = clock_.now_ns() + kTellPlacesNs;
  }
}

void Job::tell_of_loss(std::uint32_t node) {
  tell_places(node);
  broadcast(runtime::encode_index(FrameKind::peer_lost, node), node);
}

void Job::end_rank(std::uint32_t rank, int exit_code) {
  RankRecord& record = ranks_[rank];
  if (!record.is_ended) {
    record.is_ended = true;
    record.exit_code = exit_code;
    ++ended_ranks_;
  }
}

/// Process mode: the rank has ended with its process. Node mode: the node is lost, or has done.
void Job::judge_node_end(std::uint32_t node) {
  const NodeRecord& record = nodes_[node];
  std::string hosted;
  std::uint32_t hosted_count = 0;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].node == node && !ranks_[rank].is_ended) {
      hosted += (hosted_count < 8 ? (hosted_count == 0 ? "" : ", ") + std::to_string(rank)
                                  : (hosted_count == 8 ? ", ..." : ""));
      ++hosted_count;
    }
  }
  if (!in_nodes() && record.end.signal == 0) {
    judge_rank_end(node, record.end.exit_code);
    return;
  }
  const int exit_code = record.end.signal != 0 ? 128 + record.end.signal : record.end.exit_code;
  const std::string how = record.end.signal != 0
                              ? "was ended by " + signal_text(record.end.signal)
                              : fmt::format("exited with code {}", record.end.exit_code);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].node == node) {
      end_rank(rank, exit_code);
    }
  }
  if (!record.crash.empty()) {
    lose(exit_code != 0 ? exit_code : 1, record.crash);
  } else if (!in_nodes()) {
    lose(exit_code, fmt::format("{} {}", who(node), how));
  } else if (hosted_count > 0) {
    lose(exit_code != 0 ? exit_code : 1,
         fmt::format("the process of {} {}; {} {} on it", where(node), how,
                     hosted_count == 1 ? "rank" : "ranks", hosted));
  } else if (exit_code != 0 && record.flushed != record.departures &&
             ended_ranks_ < ranks_.size()) {
    fail(exit_code,  // What is lost are messages of ranks that live: nobody can go on without them.
         fmt::format("the process of {} {}; no rank was on it any more, but it had not yet handed "
                     "over all messages of and for those that were",
                     where(node), how));
  } else if (exit_code != 0 && !is_ending_) {
    warn(fmt::format("the process of {} {}; no rank was on it, the job goes on", where(node), how));
  }
  stop_if_all_have_ended();
}

/// A process that others may need has ended. Before all have met nobody can do without it.
void Job::lose(int exit_code, const std::string& text) {
  const bool have_met = members_ == 0 || (members_ == nodes_.size() && blobs_ == 0);
  if (plan_.options.on_loss == OnLoss::end || !have_met || is_ending_) {
    fail(exit_code, text);
    return;
  }
  note_failure(exit_code);
  warn(text + "; the job goes on without it (--on-loss go_on)");
}

/// Nodes, which have no ranks any more, may end.
void Job::stop_if_all_have_ended() {
  if (in_nodes() && !is_ending_ && stopped_at_ns_ == 0 && ended_ranks_ == ranks_.size()) {
    broadcast(runtime::encode_empty(FrameKind::stop), kNoNode);
    stopped_at_ns_ = clock_.now_ns();
  }
}

/// An end without a signal.
void Job::judge_rank_end(std::uint32_t rank, int exit_code) {
  end_rank(rank, exit_code);
  if (in_nodes()) {
    note_departure(ranks_[rank].node);
  }
  const RankRecord& record = ranks_[rank];
  const bool others_run = ended_ranks_ < ranks_.size();
  std::size_t initialized = 0;
  for (const RankRecord& other : ranks_) {
    initialized += other.is_initialized ? 1 : 0;
  }
  const bool others_use_mpi = initialized > (record.is_initialized ? 1u : 0u) ||
                              (!in_nodes() && members_ > 0 && !record.is_initialized);
  if (record.is_initialized && !record.is_finalized && (exit_code != 0 || others_run)) {
    const std::string text =
        fmt::format("{} exited with code {} before MPI_Finalize", who(rank), exit_code);
    // A rank that leaves a node which lives is told to nobody: who waits for it would do so for
    // ever.
    in_nodes() ? fail(exit_code != 0 ? exit_code : 1, text)
               : lose(exit_code != 0 ? exit_code : 1, text);
  } else if (!record.is_initialized && others_use_mpi && others_run) {
    fail(exit_code != 0 ? exit_code : 1,
         fmt::format("{} exited with code {} without MPI_Init, and others wait for it", who(rank),
                     exit_code));
  } else {
    note_failure(exit_code);  // The others may go on: they do not need it.
  }
  stop_if_all_have_ended();
}

/// Of several failures the first gives the exit code.
void Job::note_failure(int exit_code) noexcept {
  if (exit_code_ == 0) {
    exit_code_ = exit_code;
  }
}

}  // namespace sterna::launch
