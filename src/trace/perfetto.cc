// Events to slices: what each track shows is worked out in one pass over the events in their order.
#include "trace/perfetto.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/trace_lane.h"
#include "trace/proto.h"
#include "trace/track_writer.h"

namespace sterna::trace {
namespace {

// Numbers that Perfetto takes for processes: ours, for a rank is in many processes of the system.
constexpr std::uint64_t kRanksPid = 1'000'000;
constexpr std::uint64_t kThreadsPid = 2'000'000;
constexpr std::uint64_t kBubblesPid = 3'000'000;
// Of a node: tracks for more would only slow the view down; workers show them all the same.
constexpr std::size_t kThreadTracksMax = 4096;

enum class Track : std::uint64_t {
  node = 1,
  worker,
  ranks,
  rank,
  calls,
  threads,
  thread,
  queue,
  bubbles,
  bubble,
  bubble_use,
  lane
};

std::uint64_t uuid_of(Track track, std::uint64_t node, std::uint64_t number = 0) {
  // Of a thread: its key without the class. 2^24 nodes, 2^36 threads of each.
  return static_cast<std::uint64_t>(track) << 60 | (node & 0xff'ffff) << 36 |
         (number & 0xf'ffff'ffff);
}

/// What a track shows of a thread or a rank.
enum class State : std::uint8_t { none, running, ready, blocked, moving };

struct Subject {
  std::uint64_t track = 0;
  State state = State::none;
};

/// A bubble has a track with the place where it is, and one with how many of its threads run.
struct BubbleTracks {
  std::uint64_t place = 0;
  std::uint64_t use = 0;
  std::int64_t running = 0;
};

class Exporter {
 public:
  Exporter(const Timeline& timeline, std::ostream& to) : timeline_{timeline}, tracks_{to} {}
  void run();

 private:
  void describe_nodes();
  void describe_ranks();

  void event(std::size_t index);
  void on_runs(const Event& event);
  void on_message(std::size_t index);
  void on_queue(const Event& event, int change);
  void on_joins(const Event& event);
  void on_placed(const Event& event, bool is_there);
  BubbleTracks* bubble_of(std::uint32_t node, std::uint64_t key);
  void count_in_bubble(const Event& event, std::uint64_t thread, int change);
  void set_state(const Event& event, std::uint64_t key, State state, const std::string& text);
  Subject* subject_of(std::uint32_t node, std::uint64_t key);
  std::uint64_t calls_of(const Event& event);
  [[nodiscard]] std::uint64_t worker_track(const Event& event) const {
    return uuid_of(Track::worker, event.node, event.worker);
  }
  const Timeline& timeline_;
  TrackWriter tracks_;
  std::map<NameKey, Subject> subjects_;
  std::map<std::uint32_t, std::size_t> thread_tracks_;  // By node: how many there are.
  std::map<NameKey, std::int64_t> queued_;              // By place.
  std::map<NameKey, BubbleTracks> bubbles_;
  std::map<NameKey, std::uint64_t> holders_;                // By thread: the key of its bubble.
  std::map<std::uint32_t, std::size_t> bubble_tracks_;      // As thread_tracks_.
  std::unordered_map<std::size_t, std::uint64_t> flow_of_;  // By event.
};

void Exporter::describe_nodes() {
  std::map<std::uint32_t, std::set<std::uint32_t>> workers;
  for (const Event& event : timeline_.events) {
    if (event.worker != kNoWorker) {
      workers[event.node].insert(event.worker);
    }
  }
  for (const NodeInfo& node : timeline_.nodes) {
    const std::uint64_t pid = node.node + 1;
    tracks_.describe_process(
        uuid_of(Track::node, node.node), pid,
        fmt::format("node {} ({}, process {})", node.node, node.host, node.pid));
    for (const std::uint32_t worker : workers[node.node]) {
      tracks_.describe_track(uuid_of(Track::worker, node.node, worker),
                             uuid_of(Track::node, node.node), pid, worker + 1,
                             fmt::format("worker {}", worker));
    }
  }
}

void Exporter::describe_ranks() {
  std::set<std::uint64_t> ranks;
  std::set<std::uint64_t> callers;
  for (const Event& event : timeline_.events) {
    const bool is_message = event.kind == Kind::sends || event.kind == Kind::receives;
    if (is_message) {
      callers.insert(event.subject >> 32);
      callers.insert(event.subject & 0xffff'ffff);
    } else if (class_of(event.subject) == KeyClass::rank) {
      ranks.insert(number_of(event.subject));
      callers.insert(number_of(event.subject));
    }
  }
  if (callers.empty()) {
    return;
  }
  const std::uint64_t process = uuid_of(Track::ranks, 0);
  tracks_.describe_process(process, kRanksPid, "ranks");
  for (const std::uint64_t rank : callers) {
    tracks_.describe_track(uuid_of(Track::calls, 0, rank), process, kRanksPid, 2 * rank + 1,
                           fmt::format("rank {}: calls", rank));
    if (ranks.contains(rank)) {
      tracks_.describe_track(uuid_of(Track::rank, 0, rank), process, kRanksPid, 2 * rank + 2,
                             fmt::format("rank {}: where it runs", rank));
    }
  }
}

/// Null: it has no track.
Subject* Exporter::subject_of(std::uint32_t node, std::uint64_t key) {
  if (class_of(key) != KeyClass::rank && class_of(key) != KeyClass::thread) {
    return nullptr;
  }
  auto [place, is_new] = subjects_.try_emplace(name_key(node, key));
  Subject& subject = place->second;
  if (is_new && class_of(key) == KeyClass::rank) {
    subject.track = uuid_of(Track::rank, 0, number_of(key));
  } else if (is_new && thread_tracks_[node] < kThreadTracksMax) {
    const std::uint64_t process = uuid_of(Track::threads, node);
    if (thread_tracks_[node]++ == 0) {
      tracks_.describe_process(process, kThreadsPid + node,
                               fmt::format("threads of node {}", node));
    }
    const Track kind = is_lane(key) ? Track::lane : Track::thread;
    subject.track = uuid_of(kind, node, number_of(key));
    tracks_.describe_track(subject.track, process, kThreadsPid + node, thread_tracks_[node],
                           timeline_.name_of(node, key));
  }
  return subject.track != 0 ? &subject : nullptr;
}

/// The track of what the subject calls. 0: there is none.
std::uint64_t Exporter::calls_of(const Event& event) {
  if (is_lane(event.subject)) {
    const Subject* const lane = subject_of(event.node, event.subject);
    return lane != nullptr ? lane->track : 0;
  }
  const bool is_rank = class_of(event.subject) == KeyClass::rank;
  return is_rank ? uuid_of(Track::calls, 0, number_of(event.subject)) : 0;
}

void Exporter::set_state(const Event& event, std::uint64_t key, State state,
                         const std::string& text) {
  Subject* const subject = subject_of(event.node, key);
  if (subject == nullptr) {
    return;
  }
  if (subject->state != State::none) {
    tracks_.end(event.ns, subject->track);
  }
  subject->state = state;
  if (state != State::none) {
    tracks_.begin(event.ns, subject->track, text, "state");
  }
}

void Exporter::on_runs(const Event& event) {
  const std::uint64_t track = worker_track(event);
  tracks_.end_all(event.ns, track);
  if (event.subject != kNobody) {
    tracks_.begin(event.ns, track, timeline_.name_of(event.node, event.subject), "thread");
  }
  count_in_bubble(event, event.value, -1);
  count_in_bubble(event, event.subject, 1);
  // Who left the processor waits, until a wake-up says otherwise; one that yields is woken by
  // nobody, and its wait ends when it runs again.
  if (Subject* const before = subject_of(event.node, event.value);
      before != nullptr && before->state == State::running) {
    set_state(event, event.value, State::blocked, "waits");
  }
  if (event.subject != kNobody) {
    set_state(event, event.subject, State::running,
              fmt::format("runs on node {} worker {}", event.node, event.worker));
  }
}

void Exporter::on_message(std::size_t index) {
  const Event& event = timeline_.events[index];
  const bool is_sent = event.kind == Kind::sends;
  const std::uint64_t source = event.subject >> 32;
  const std::uint64_t destination = event.subject & 0xffff'ffff;
  const auto flow = flow_of_.find(index);
  tracks_.point(
      event.ns, uuid_of(Track::calls, 0, is_sent ? source : destination),
      is_sent ? fmt::format("to rank {}", destination) : fmt::format("from rank {}", source),
      {{"bytes", static_cast<std::int64_t>(message_bytes(event.value))},
       {"tag", static_cast<std::int32_t>(event.extra)}},
      flow == flow_of_.end() ? 0 : flow->second, !is_sent);
}

/// Null: it has no track.
BubbleTracks* Exporter::bubble_of(std::uint32_t node, std::uint64_t key) {
  auto [found, is_new] = bubbles_.try_emplace(name_key(node, key));
  BubbleTracks& bubble = found->second;
  if (is_new && bubble_tracks_[node] < kThreadTracksMax) {
    const std::uint64_t process = uuid_of(Track::bubbles, node);
    if (bubble_tracks_[node]++ == 0) {
      tracks_.describe_process(process, kBubblesPid + node,
                               fmt::format("bubbles of node {}", node));
    }
    const std::string name = timeline_.name_of(node, key);
    bubble.place = uuid_of(Track::bubble, node, number_of(key));
    bubble.use = uuid_of(Track::bubble_use, node, number_of(key));
    tracks_.describe_track(bubble.place, process, kBubblesPid + node, bubble_tracks_[node], name);
    tracks_.describe_counter(bubble.use, process, "running in " + name);
  }
  return bubble.place != 0 ? &bubble : nullptr;
}

void Exporter::on_joins(const Event& event) {
  const bool is_held = event.value != kNobody;
  const std::string text =
      is_held ? "joins " + timeline_.name_of(event.node, event.value) : "outermost";
  std::uint64_t track = 0;
  if (class_of(event.subject) == KeyClass::bubble) {
    const BubbleTracks* const bubble = bubble_of(event.node, event.subject);
    track = bubble != nullptr ? bubble->place : 0;
  } else {
    holders_[name_key(event.node, event.subject)] = event.value;
    const Subject* const thread = subject_of(event.node, event.subject);
    track = thread != nullptr && is_held ? thread->track : 0;
  }
  if (track != 0) {
    tracks_.point(event.ns, track, text, {}, 0, false);
  }
}

void Exporter::on_placed(const Event& event, bool is_there) {
  BubbleTracks* const bubble = bubble_of(event.node, event.subject);
  if (bubble == nullptr) {
    return;
  }
  tracks_.end(event.ns, bubble->place);
  if (is_there) {
    tracks_.begin(event.ns, bubble->place, "at " + timeline_.name_of(event.node, event.value),
                  "place");
  }
}

void Exporter::count_in_bubble(const Event& event, std::uint64_t thread, int change) {
  const auto holder = holders_.find(name_key(event.node, thread));
  if (holder == holders_.end() || holder->second == kNobody) {
    return;
  }
  if (BubbleTracks* const bubble = bubble_of(event.node, holder->second)) {
    bubble->running = std::max<std::int64_t>(0, bubble->running + change);
    tracks_.count(event.ns, bubble->use, bubble->running);
  }
}

void Exporter::on_queue(const Event& event, int change) {
  const NameKey place = name_key(event.node, event.value);
  const std::uint64_t track = uuid_of(Track::queue, event.node, number_of(event.value));
  auto [count, is_new] = queued_.try_emplace(place);
  if (is_new) {
    tracks_.describe_counter(track, uuid_of(Track::node, event.node),
                             "run queue of " + timeline_.name_of(event.node, event.value));
  }
  count->second = std::max<std::int64_t>(0, count->second + change);
  tracks_.count(event.ns, track, count->second);
  if (change > 0) {
    set_state(event, event.subject, State::ready,
              "ready in the queue of " + timeline_.name_of(event.node, event.value));
  }
}

void Exporter::event(std::size_t index) {
  const Event& event = timeline_.events[index];
  switch (event.kind) {
    case Kind::runs:
      on_runs(event);
      break;
    case Kind::born:
      set_state(event, event.subject, State::ready, "ready");
      break;
    case Kind::wakes:
      if (const Subject* subject = subject_of(event.node, event.subject);
          subject != nullptr && subject->state != State::running) {
        set_state(event, event.subject, State::ready, "ready");
      }
      break;
    case Kind::ended:
      if (class_of(event.subject) == KeyClass::bubble) {
        on_placed(event, false);
      } else {
        set_state(event, event.subject, State::none, "");
      }
      break;
    case Kind::joins:
      on_joins(event);
      break;
    case Kind::placed:
      on_placed(event, true);
      break;
    case Kind::queued:
      on_queue(event, 1);
      break;
    case Kind::taken:
      on_queue(event, -1);
      break;
    case Kind::sleeps:
      tracks_.begin(event.ns, worker_track(event), "asleep", "worker");
      break;
    case Kind::awakes:
      tracks_.end(event.ns, worker_track(event));
      break;
    case Kind::sends:
    case Kind::receives:
      on_message(index);
      break;
    case Kind::calls:
      if (const std::uint64_t track = calls_of(event)) {
        const bool is_lane_of_driver = is_lane(event.subject);
        tracks_.begin(event.ns, track,
                      timeline_.name_of(is_lane_of_driver ? event.node : 0, event.value),
                      is_lane_of_driver ? "driver" : "mpi");
      }
      break;
    case Kind::returns:
      if (const std::uint64_t track = calls_of(event)) {
        tracks_.end(event.ns, track);
      }
      break;
    case Kind::leaves:
      set_state(event, event.subject, State::moving, fmt::format("moves to node {}", event.value));
      break;
    case Kind::arrives:
    case Kind::stays:
      set_state(event, event.subject, State::ready, "ready");
      break;
    default:
      break;
  }
}

void Exporter::run() {
  std::uint64_t flow = 0;
  for (const MessagePair& pair : pair_messages(timeline_.events)) {
    flow_of_[pair.sent] = ++flow;
    flow_of_[pair.received] = flow;
  }
  describe_nodes();
  describe_ranks();
  for (std::size_t i = 0; i < timeline_.events.size(); ++i) {
    event(i);
  }
  tracks_.finish(timeline_.duration_ns());
}

}  // namespace

void write_tracks(const Timeline& timeline, std::ostream& to) {
  Exporter{timeline, to}.run();
}

}  // namespace sterna::trace
