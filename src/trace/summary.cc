// One pass over the events; what is under way at the end counts up to there.
#include "trace/summary.h"

#include <algorithm>

#include "base/trace_lane.h"

namespace sterna::trace {
namespace {

class Summing {
 public:
  explicit Summing(const Timeline& timeline) : timeline_{timeline} {}
  Summary run();

 private:
  enum class State : std::uint8_t { gone, running, ready, waiting, moving };
  struct Worker {
    WorkerTimes times;
    std::uint64_t running_since = 0;
    std::uint64_t asleep_since = 0;
    bool is_running = false;
    bool is_asleep = false;
  };
  struct Thread {
    ThreadTimes times;
    State state = State::gone;
    std::uint64_t since_ns = 0;
  };
  struct Call {
    std::uint64_t function = 0;
    std::uint64_t begin_ns = 0;
  };

  void event(const Event& event);
  void on_runs(const Event& event);
  void on_return(const Event& event);
  void on_move_end(const Event& event, bool is_done);
  Thread& thread(const Event& event, std::uint64_t key);
  void set_state(const Event& event, std::uint64_t key, State state);
  static void close(Thread& thread, std::uint64_t now_ns);
  Worker& worker(const Event& event);
  void finish();

  const Timeline& timeline_;
  Summary summary_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Worker> workers_;
  std::map<NameKey, Thread> threads_;
  std::map<std::uint64_t, std::vector<Call>> calls_open_;  // By rank.
  std::map<std::uint64_t, CallTimes> calls_;               // By function.
  std::map<std::uint64_t, Move> moves_open_;               // By rank.
};

Summing::Worker& Summing::worker(const Event& event) {
  Worker& its = workers_[{event.node, event.worker}];
  its.times.node = event.node;
  its.times.worker = event.worker;
  return its;
}

Summing::Thread& Summing::thread(const Event& event, std::uint64_t key) {
  Thread& its = threads_[name_key(event.node, key)];
  its.times.key = key;
  its.times.node = event.node;
  return its;
}

void Summing::close(Thread& thread, std::uint64_t now_ns) {
  const std::uint64_t passed = now_ns - thread.since_ns;
  switch (thread.state) {
    case State::running:
      thread.times.running_ns += passed;
      break;
    case State::ready:
      thread.times.ready_ns += passed;
      break;
    case State::waiting:
      thread.times.waiting_ns += passed;
      break;
    case State::moving:
      thread.times.moving_ns += passed;
      break;
    case State::gone:
      break;
  }
  thread.since_ns = now_ns;
}

void Summing::set_state(const Event& event, std::uint64_t key, State state) {
  if (class_of(key) != KeyClass::rank && class_of(key) != KeyClass::thread) {
    return;
  }
  Thread& its = thread(event, key);
  close(its, event.ns);
  its.state = state;
}

void Summing::on_runs(const Event& event) {
  Worker& its = worker(event);
  if (its.is_running) {
    its.times.running_ns += event.ns - its.running_since;
  }
  its.is_running = event.subject != kNobody;
  its.running_since = event.ns;
  ++its.times.switches;
  if (event.value != kNobody) {
    const auto before = threads_.find(name_key(event.node, event.value));
    if (before != threads_.end() && before->second.state == State::running) {
      set_state(event, event.value, State::waiting);
    }
  }
  if (event.subject != kNobody) {
    set_state(event, event.subject, State::running);
    ++thread(event, event.subject).times.turns;
  }
}

void Summing::on_return(const Event& event) {
  if (is_lane(event.subject)) {
    return;  // Of a driver, in no program's time.
  }
  std::vector<Call>& open = calls_open_[event.subject];
  if (open.empty() || open.back().function != event.value) {
    return;  // Its begin was not recorded.
  }
  const std::uint64_t passed = event.ns - open.back().begin_ns;
  open.pop_back();
  CallTimes& its = calls_[event.value];
  ++its.count;
  its.total_ns += passed;
  if (passed >= its.longest_ns) {
    its.longest_ns = passed;
    its.longest_rank = number_of(event.subject);
  }
}

void Summing::on_move_end(const Event& event, bool is_done) {
  set_state(event, event.subject, State::ready);
  const auto open = moves_open_.find(event.subject);
  if (open == moves_open_.end()) {
    return;  // Refused at once, or its begin was not recorded.
  }
  Move move = open->second;
  move.duration_ns = event.ns - move.begin_ns;
  move.is_done = is_done;
  thread(event, event.subject).times.moves += is_done ? 1 : 0;
  summary_.moves.push_back(move);
  moves_open_.erase(open);
}

void Summing::event(const Event& event) {
  switch (event.kind) {
    case Kind::runs:
      on_runs(event);
      break;
    case Kind::born:
    case Kind::queued:
      set_state(event, event.subject, State::ready);
      break;
    case Kind::wakes:
      if (thread(event, event.subject).state != State::running) {
        set_state(event, event.subject, State::ready);
      }
      break;
    case Kind::ended:
      set_state(event, event.subject, State::gone);
      break;
    case Kind::stolen:
      ++worker(event).times.stolen;
      break;
    case Kind::sleeps:
      worker(event).is_asleep = true;
      worker(event).asleep_since = event.ns;
      break;
    case Kind::awakes:
      if (Worker& its = worker(event); its.is_asleep) {
        its.is_asleep = false;
        its.times.asleep_ns += event.ns - its.asleep_since;
      }
      break;
    case Kind::polled:
      summary_.network_events += event.value;
      break;
    case Kind::sends:
      ++summary_.messages;
      summary_.message_bytes += message_bytes(event.value);
      break;
    case Kind::calls:
      calls_open_[event.subject].push_back({event.value, event.ns});
      break;
    case Kind::returns:
      on_return(event);
      break;
    case Kind::leaves:
      set_state(event, event.subject, State::moving);
      moves_open_[event.subject] = {.begin_ns = event.ns,
                                    .rank = number_of(event.subject),
                                    .from = event.node,
                                    .to = static_cast<std::uint32_t>(event.value)};
      break;
    case Kind::arrives:
      on_move_end(event, true);
      break;
    case Kind::stays:
      on_move_end(event, false);
      break;
    default:
      break;
  }
}

void Summing::finish() {
  const std::uint64_t end_ns = timeline_.duration_ns();
  for (auto& [place, its] : workers_) {
    if (place.second == kNoWorker) {
      continue;
    }
    its.times.running_ns += its.is_running ? end_ns - its.running_since : 0;
    its.times.asleep_ns += its.is_asleep ? end_ns - its.asleep_since : 0;
    summary_.workers.push_back(its.times);
  }
  for (auto& [key, its] : threads_) {
    close(its, end_ns);
    summary_.threads.push_back(its.times);
  }
  for (auto& [function, its] : calls_) {
    its.name = timeline_.name_of(0, function);
    summary_.calls.push_back(its);
  }
  std::ranges::stable_sort(summary_.threads, std::greater{}, &ThreadTimes::running_ns);
  std::ranges::stable_sort(summary_.calls, std::greater{}, &CallTimes::total_ns);
  std::ranges::stable_sort(summary_.moves, {}, &Move::begin_ns);
}

Summary Summing::run() {
  for (const Event& each : timeline_.events) {
    event(each);
  }
  finish();
  std::vector<std::uint64_t> latencies;
  for (const MessagePair& pair : pair_messages(timeline_.events)) {
    const std::uint64_t sent = timeline_.events[pair.sent].ns;
    const std::uint64_t received = timeline_.events[pair.received].ns;
    latencies.push_back(received > sent ? received - sent : 0);
  }
  summary_.messages_paired = latencies.size();
  if (!latencies.empty()) {
    const auto middle = latencies.begin() + static_cast<std::ptrdiff_t>(latencies.size() / 2);
    std::ranges::nth_element(latencies, middle);
    summary_.latency_median_ns = *middle;
  }
  return std::move(summary_);
}

}  // namespace

Summary summarise(const Timeline& timeline) {
  return Summing{timeline}.run();
}

}  // namespace sterna::trace
