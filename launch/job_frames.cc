// What the nodes of a job say: each frame is checked, then changes what is known of the job.
#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "launch/describe.h"
#include "launch/job.h"

namespace sterna::launch {

void Job::on_frame(std::uint32_t node, FrameHeader header, std::span<const std::byte> body) {
  if (!handle_frame(node, header, body)) {
    fail(1, fmt::format("{} sent a message that makes no sense (kind {}); are launcher and library "
                        "of one version?",
                        where(node), static_cast<int>(header.kind)));
  }
}

/// False: the frame breaks the protocol.
bool Job::handle_frame(std::uint32_t node, FrameHeader header, std::span<const std::byte> body) {
  if ((nodes_[node].state == NodeRecord::State::member) == (header.kind == FrameKind::hello)) {
    return false;
  }
  switch (header.kind) {
    case FrameKind::hello:
      return take_hello(node, body);
    case FrameKind::exchange:
      return take_blob(node, body);
    case FrameKind::initialized:
    case FrameKind::finalized:
    case FrameKind::moved:
    case FrameKind::ended:
    case FrameKind::abort:
    case FrameKind::output:
      return take_rank_event(node, header, body);
    case FrameKind::crash:
      return take_crash(node, body);
    case FrameKind::status:
      return take_status(node, body);
    case FrameKind::flushed:
      return take_flushed(node, body);
    case FrameKind::explained:
      return take_explained(node, body);
    default:
      return false;
  }
}

bool Job::take_hello(std::uint32_t node, std::span<const std::byte> body) {
  Result<runtime::Hello> hello = runtime::decode_hello(body);
  if (!hello) {
    return false;
  }
  if (hello.value().version != runtime::kControlVersion) {
    fail(1, fmt::format("{}: its library speaks version {} of the control channel, this launcher "
                        "version {}: use those of one installation",
                        where(node), hello.value().version, runtime::kControlVersion));
    return true;
  }
  nodes_[node].state = NodeRecord::State::member;
  nodes_[node].pid = hello.value().pid;  // Below a script it is not the process we started.
  ++members_;
  runtime::Job job = plan_.job;
  job.map.node_index = node;
  crews_[nodes_[node].crew]->send(node, runtime::encode(job));
  for (std::uint32_t other = 0; other < nodes_.size() && !is_ending_; ++other) {
    if (nodes_[other].state == NodeRecord::State::ended) {
      if (!in_nodes() && !ranks_[other].is_initialized) {
        fail(nodes_[other].end.exit_code != 0 ? nodes_[other].end.exit_code : 1,
             fmt::format("{} exited with code {} without MPI_Init, and others wait for it",
                         who(other), nodes_[other].end.exit_code));
      }
      crews_[nodes_[node].crew]->send(node, runtime::encode_index(FrameKind::peer_lost, other));
    }
  }
  return true;
}

bool Job::take_blob(std::uint32_t node, std::span<const std::byte> body) {
  if (nodes_[node].blob.has_value() || body.size() > runtime::kExchangeBlobBytesMax) {
    return false;
  }
  nodes_[node].blob.emplace(body.begin(), body.end());
  if (++blobs_ == nodes_.size()) {
    complete_exchange();
  }
  return true;
}

void Job::complete_exchange() {
  std::vector<std::vector<std::byte>> blobs;
  std::size_t bytes = 4;
  for (NodeRecord& record : nodes_) {
    bytes += 4 + record.blob->size();
    blobs.push_back(std::move(*record.blob));
    record.blob.reset();
    record.way_questions = 0;
    record.is_asked = false;  // What comes before the blobs is dropped (ControlClient::exchange).
  }
  blobs_ = 0;
  if (bytes > runtime::kFrameBodyBytesMax) {
    fail(1, fmt::format("the nodes exchange {} bytes of addresses, more than allowed", bytes));
    return;
  }
  broadcast(runtime::encode_blobs(blobs), runtime::kNoRank);
}

bool Job::take_rank_event(std::uint32_t node, FrameHeader header, std::span<const std::byte> body) {
  const auto is_rank = [&](std::uint32_t rank) { return rank < ranks_.size(); };
  switch (header.kind) {
    case FrameKind::ended: {
      Result<runtime::RankEnd> end = runtime::decode_ended(body);
      if (!end || !is_rank(end.value().rank)) {
        return false;
      }
      if (in_nodes() && end.value().exit_code != 0) {
        loop_.reap();  // As with an abort.
      }
      RankRecord& record = ranks_[end.value().rank];
      record.is_initialized = record.is_initialized || end.value().is_initialized;
      record.is_finalized = record.is_finalized || end.value().is_finalized;
      judge_rank_end(end.value().rank, end.value().exit_code);
      return true;
    }
    case FrameKind::abort: {
      Result<runtime::RankAbort> abort = runtime::decode_abort(body);
      if (!abort || !is_rank(abort.value().rank)) {
        return false;
      }
      if (in_nodes()) {
        loop_.reap();  // It may be the death of a node that made the rank abort: the cause is told
                       // first.
      }
      const int code = abort.value().code & 0xff;
      fail(code != 0 ? code : 1,
           fmt::format("{} called MPI_Abort with code {}{}{}", who(abort.value().rank),
                       abort.value().code, abort.value().text.empty() ? "" : ": ",
                       abort.value().text));
      return true;
    }
    case FrameKind::output: {
      Result<runtime::RankOutput> output = runtime::decode_output(body);
      if (!output || !is_rank(output.value().rank)) {
        return false;
      }
      output_.add(output.value().rank, output.value().stream, output.value().bytes);
      return true;
    }
    case FrameKind::moved: {
      Result<runtime::RankMove> move = runtime::decode_moved(body);
      if (!move || !is_rank(move.value().rank) || move.value().node >= nodes_.size()) {
        return false;
      }
      take_move(node, move.value());
      return true;
    }
    default: {
      Result<std::uint32_t> rank = runtime::decode_index(body);
      if (!rank || !is_rank(rank.value())) {
        return false;
      }
      RankRecord& record = ranks_[rank.value()];
      record.is_initialized = record.is_initialized || header.kind == FrameKind::initialized;
      record.is_finalized = record.is_finalized || header.kind == FrameKind::finalized;
      return true;
    }
  }
}

void Job::take_move(std::uint32_t node, const runtime::RankMove& move) {
  RankRecord& record = ranks_[move.rank];
  // Who says so had the rank, also when later news of it have come first.
  if (move.node != node) {
    note_departure(node);
  }
  // Different nodes' news of one rank come in any order.
  if (move.move <= record.moves) {
    return;
  }
  record.moves = static_cast<std::uint32_t>(move.move);
  if (record.is_ended) {
    // Its end came from there before the news of its last move.
    note_departure(move.node);
  }
  record.node = move.node;
  if (record.is_ended) {
    return;
  }
  if (nodes_[move.node].state == NodeRecord::State::ended && !is_ending_) {
    const ProcessEnd& end = nodes_[move.node].end;
    const int exit_code = end.signal != 0 ? 128 + end.signal : std::max(end.exit_code, 1);
    end_rank(move.rank, exit_code);
    lose(exit_code,
         fmt::format("rank {} was lost: it was moving to node {}, whose process has ended",
                     move.rank, move.node));
    stop_if_all_have_ended();
  }
}

bool Job::take_crash(std::uint32_t node, std::span<const std::byte> body) {
  Result<runtime::RankCrash> decoded = runtime::decode_crash(body);
  if (!decoded) {
    return false;
  }
  const runtime::RankCrash& crash = decoded.value();
  const bool has_rank = crash.rank < ranks_.size();
  nodes_[node].crashed_rank = has_rank ? crash.rank : runtime::kNoRank;
  const std::string place =
      crash.signal == SIGABRT && crash.instruction == 0  // A rank that called abort().
          ? ""
          : fmt::format(" at address {:#x}, instruction {:#x}", crash.address, crash.instruction);
  nodes_[node].crash =
      fmt::format("{} crashed: {}{}{}{}{}{}",
                  has_rank ? fmt::format("rank {} ({})", crash.rank, where(node))
                           : fmt::format("the process of {}", where(node)),
                  signal_text(crash.signal), place, crash.thread.empty() ? "" : ", thread ",
                  crash.thread, crash.text.empty() ? "" : "; ", crash.text);
  // The process is about to end; if its end does not come, the job ends all the same, unless it is
  // to go on: then it is lost when it ends.
  if (plan_.options.on_loss == OnLoss::end) {
    fail(128 + (crash.signal & 0x7f), nodes_[node].crash);
  }
  return true;
}

bool Job::take_flushed(std::uint32_t node, std::span<const std::byte> body) {
  Result<std::uint32_t> number = runtime::decode_index(body);
  if (!number || number.value() > nodes_[node].departures) {
    return false;
  }
  nodes_[node].flushed = number.value();
  return true;
}

bool Job::take_status(std::uint32_t node, std::span<const std::byte> body) {
  Result<runtime::NodeStatus> status = runtime::decode_status(body);
  if (!status || status.value().node != node) {
    return false;
  }
  for (const runtime::RankStatus& rank : status.value().ranks) {
    if (rank.rank >= ranks_.size()) {
      return false;
    }
  }
  nodes_[node].status = std::move(status.value());
  nodes_[node].status_at_ns = clock_.now_ns();
  nodes_[node].is_asked = false;
  return true;
}

std::uint32_t Job::ask_way(std::uint32_t from_node, std::uint32_t to_node, std::uint64_t bytes) {
  NodeRecord& record = nodes_[from_node];
  if (record.state != NodeRecord::State::member || record.way_questions >= kWayQuestionsMax) {
    return 0;
  }
  ++record.way_questions;
  way_questions_ += way_questions_ == ~std::uint32_t{0} ? 2 : 1;
  const runtime::WayQuestion question{.number = way_questions_, .node = to_node, .bytes = bytes};
  crews_[record.crew]->send(from_node, runtime::encode(question));
  return way_questions_;
}

std::optional<runtime::WayAnswer> Job::take_way_answer(std::uint32_t number) {
  const auto found = std::ranges::find(way_answers_, number, &runtime::WayAnswer::number);
  if (found == way_answers_.end()) {
    return std::nullopt;
  }
  std::optional<runtime::WayAnswer> answer{std::move(*found)};
  way_answers_.erase(found);
  return answer;
}

bool Job::take_explained(std::uint32_t node, std::span<const std::byte> body) {
  Result<runtime::WayAnswer> answer = runtime::decode_explained(body);
  if (!answer || answer.value().way.node >= nodes_.size()) {
    return false;
  }
  nodes_[node].way_questions -= nodes_[node].way_questions != 0 ? 1 : 0;
  way_answers_.push_back(std::move(answer.value()));
  if (way_answers_.size() > kWayAnswersMax) {
    way_answers_.pop_front();
  }
  return true;
}

}  // namespace sterna::launch
